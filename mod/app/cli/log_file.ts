import { KubeletError } from "../../base/errors.ts";
import type { PodRef } from "../../base/journal.ts";
import { podContainers } from "../../kube/pod.ts";
import type { ContainerStatus } from "../../kube/types.ts";
import { containerLogFile, restartCountOfLog } from "../../pod/config/paths.ts";
import { chooseLog } from "../../server/container_logs_choice.ts";
import type { LocalPod } from "../../server/local/types.ts";
import type { LogsRequest } from "./command.ts";

/** Throws for a container name that was not given and is needed, or is not one of the pod's. */
function containerNamed(
  wanted: string | undefined,
  names: readonly string[],
  first: string | undefined,
  pod: string,
): string {
  if (wanted === undefined) {
    const [only] = names;
    if (names.length === 1 && only !== undefined) return only;
    if (first !== undefined) return first;
  } else if (names.includes(wanted)) return wanted;
  throw new KubeletError(
    "BadConfig",
    wanted === undefined
      ? `pod ${pod} has ${names.length} containers; choose one with -c: ${names.join(", ")}`
      : `pod ${pod} has no container ${JSON.stringify(wanted.slice(0, 80))}; there are: ${names.join(", ")}`,
  );
}

/** The annotation that names the container whose log is meant when none is given. */
const defaultContainer = "kubectl.kubernetes.io/default-container";

/** A log file to read, and the container instance that writes it. */
export interface ChosenLog {
  readonly path: string;
  readonly container: string;
  /** The instance's id, as the status has it. */
  readonly id: string;
}

/**
 * The log file that a request means, by the status that the agent reports. Pure. Throws a KubeletError (BadConfig) when
 * the container is not named well, or has no log yet.
 */
export function logOfPod(request: LogsRequest, { pod, status }: LocalPod, podLogsDir: string): ChosenLog {
  const names = podContainers(pod).map(({ spec }) => spec.name);
  const regular = pod.spec.containers.map(({ name }) => name);
  const annotated = pod.metadata.annotations?.[defaultContainer];
  const first = annotated !== undefined && names.includes(annotated)
    ? annotated
    : regular.length === 1
    ? regular[0]
    : undefined;
  const name = containerNamed(request.container, names, first, pod.metadata.name);
  const choice = chooseLog(status, { pod: pod.metadata.name, container: name, previous: request.previous });
  if ("text" in choice) {
    throw new KubeletError("BadConfig", `${choice.text}; why: kubelet explain ${pod.metadata.name}`);
  }
  const lists = [status?.containerStatuses, status?.initContainerStatuses, status?.ephemeralContainerStatuses];
  const found = lists.flatMap((list) => list ?? []).find((one) => one.name === name);
  return {
    path: containerLogFile(podLogsDir, pod, name, instanceOf(found, choice.id)),
    container: name,
    id: choice.id,
  };
}

/** The number of an instance: the newest has the restart count, the one before it one less. */
function instanceOf(status: ContainerStatus | undefined, id: string): number {
  if (!status) return 0;
  const newest = status.state?.running ? status.containerID : status.state?.terminated?.containerID;
  return newest === undefined || newest === id ? status.restartCount : Math.max(0, status.restartCount - 1);
}

/** Pods that a directory of logs knows: `<namespace>_<name>_<uid>`. */
export function podsOfLogDirs(names: readonly string[]): PodRef[] {
  return names.flatMap((dir) => {
    const [namespace, name, uid, ...more] = dir.split("_");
    return namespace && name && uid && more.length === 0 ? [{ namespace, name, uid }] : [];
  });
}

/**
 * The log file that a request means, by the files alone: for an agent that does not run.
 * @param containers names of the pod's log directories, and of the files in each
 */
export function logOfFiles(
  request: LogsRequest,
  pod: PodRef,
  containers: ReadonlyMap<string, readonly string[]>,
  podLogsDir: string,
): ChosenLog {
  const name = containerNamed(request.container, [...containers.keys()], undefined, pod.name);
  const counts = [...new Set((containers.get(name) ?? []).flatMap((file) => restartCountOfLog(file) ?? []))];
  const count = counts.sort((a, b) => b - a)[request.previous ? 1 : 0];
  if (count === undefined) {
    throw new KubeletError(
      "BadConfig",
      `container ${name} of pod ${pod.name} has ${request.previous ? "no log of an earlier instance" : "no log"}`,
    );
  }
  return { path: containerLogFile(podLogsDir, { metadata: pod }, name, count), container: name, id: "" };
}
