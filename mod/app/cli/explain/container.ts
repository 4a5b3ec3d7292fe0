import type { JournalRecord } from "../../../base/journal.ts";
import type { Container, ContainerStateTerminated, ContainerStatus } from "../../../kube/types.ts";
import type { ExplainedPod, Finding } from "./types.ts";
import { isPodEnd } from "./ending.ts";
import { objectRemedy } from "./objects.ts";
import { explainRuntimeError } from "./runtime_errors.ts";
import { ago, exitText, line, since, span, timeOf } from "./words.ts";

/** What is known of one container. */
export interface ContainerCase {
  readonly pod: ExplainedPod;
  readonly kind: "container" | "init container";
  readonly status: ContainerStatus;
  readonly spec: Container | undefined;
  /** The pod's records, oldest first. */
  readonly records: readonly JournalRecord[];
  readonly now: number;
}

const unknownFailure = "Correct what the message names; when it is about the runtime itself: kubelet check; its log.";
const notRunnable =
  "Correct command or args in the manifest; the program must be in the image, executable and for this machine.";

/** Reasons to stop a container that a probe gave. */
const probeOf: Readonly<Record<string, string>> = { LivenessProbe: "liveness", StartupProbe: "startup" };

/** Why a container is not running as it should; undefined when nothing is to be said of it. */
export function explainContainer(one: ContainerCase): Finding | undefined {
  const { waiting, running, terminated } = one.status.state ?? {};
  if (waiting) return explainWaiting(one, waiting.reason ?? "", waiting.message ?? "");
  if (terminated) return explainEnded(one, terminated);
  if (running) return explainRunning(one, timeOf(running.startedAt) ?? one.now);
  return undefined;
}

function logsCommand({ pod, status }: ContainerCase, previous: boolean): string {
  return `kubelet logs ${previous ? "-p " : ""}-c ${status.name} ${pod.metadata.name}`;
}

function subject({ kind, status }: ContainerCase): string {
  return `${kind} ${status.name}`;
}

function explainWaiting(one: ContainerCase, reason: string, message: string): Finding | undefined {
  const image = one.spec?.image ?? one.status.image;
  const said = message === "" ? "" : `: ${line(message)}`;
  const stuck = (cause: string, remedy: string): Finding => ({ cause: `${subject(one)} ${cause}`, remedy, rank: 0 });
  switch (reason) {
    case "CrashLoopBackOff":
      return crashLoop(one, message);
    case "ErrImageNeverPull":
      return stuck(
        `needs the image ${image}, which is not on this node, and its imagePullPolicy is Never`,
        `Bring the image to the node (ctr -n k8s.io images import FILE), or set imagePullPolicy: IfNotPresent.`,
      );
    case "ErrImagePull":
    case "ImagePullBackOff":
      return stuck(
        `waits for its image ${image}, which cannot be pulled${said}`,
        `${
          pullRemedy(message, image)
        } The pull is tried again by itself, at longer and longer intervals (5 minutes at most).`,
      );
    case "InvalidImageName":
      return stuck(`has an image name that is none: ${image}${said}`, `Correct the container's image in the manifest.`);
    case "ImageInspectError":
      return stuck(
        `waits, as the runtime could not look up its image ${image}${said}`,
        `Look at the runtime: kubelet check; its log; the image may have to be removed and pulled anew.`,
      );
    case "CreateContainerConfigError":
      return stuck(
        `cannot be made from its definition${said}`,
        objectRemedy(message) ??
          `Correct what the message names in the manifest: an environment variable, a volume mount, the user, a security setting.`,
      );
    case "CreateContainerError":
      return stuck(
        `could not be made by the runtime${said}`,
        explainRuntimeError(message)?.remedy ?? unknownFailure,
      );
    case "RunContainerError":
    case "StartError":
      return stuck(
        `was made but could not be started${said}`,
        explainRuntimeError(message)?.remedy ?? unknownFailure,
      );
    case "PostStartHookError":
      return stuck(`was ended, as its postStart hook failed${said}`, `Correct lifecycle.postStart in the manifest.`);
    case "PodInitializing":
    case "ContainerCreating":
    case "":
      return undefined;
    default:
      return stuck(`waits: ${reason}${said}`, "");
  }
}

function pullRemedy(message: string, image: string): string {
  if (/not found|manifest unknown|does not exist|404/i.test(message)) {
    return `Check the image's name and tag (${image}): the registry has none of that name.`;
  }
  if (/unauthorized|denied|forbidden|401|403/i.test(message)) {
    return `Give the node credentials for the registry (config.json in its root directory, or a credential provider ` +
      `plugin), or the pod a pull secret (imagePullSecrets): the registry refuses the pull.`;
  }
  if (/no such host|timeout|connection refused|unreachable|dial|deadline/i.test(message)) {
    return `Check that the node reaches the registry: name resolution, proxy, firewall.`;
  }
  return `Check the image's name and that the node reaches its registry.`;
}

/** The record of the stop that ended the newest instance; undefined when the container ended by itself. */
function stopOf({ records, status }: ContainerCase, finishedAt: number | undefined): JournalRecord | undefined {
  const last = records.findLast((r) => r.action === "StopContainer" && r.container === status.name);
  if (!last) return undefined;
  // A stop that ended long before this instance's end was another's.
  const end = last.at + (last.tookMs ?? 0);
  return finishedAt === undefined || Math.abs(finishedAt - end) < 60_000 || (last.at <= finishedAt && finishedAt <= end)
    ? last
    : undefined;
}

/** How the last instance ended: by a probe, by memory, by itself. */
function whyEnded(one: ContainerCase, end: ContainerStateTerminated): { how: string; remedy: string } {
  const stop = stopOf(one, timeOf(end.finishedAt));
  const probe = stop === undefined ? undefined : probeOf[stop.reason];
  if (probe !== undefined) {
    return {
      how: `the agent ended it, as its ${probe} probe failed (${exitText(end)})`,
      remedy: `Find out why the ${probe} probe fails: ${
        logsCommand(one, true)
      }; if the program is only slow, raise ${probe}Probe.${
        probe === "startup" ? "failureThreshold" : "timeoutSeconds or failureThreshold, or add a startupProbe"
      }.`,
    };
  }
  if (end.reason === "OOMKilled") {
    return {
      how: `it ended with ${exitText(end)}`,
      remedy: `Raise resources.limits.memory of ${subject(one)}, or make the program take less.`,
    };
  }
  if (
    end.reason === "StartError" || end.reason === "ContainerCannotRun" || end.exitCode === 126 || end.exitCode === 127
  ) {
    const known = end.message ? explainRuntimeError(end.message) : undefined;
    const byRuntime = end.reason === "StartError" || end.reason === "ContainerCannotRun";
    return {
      how: `it could not be started: ${end.message ? line(end.message) : exitText(end)}`,
      remedy: known?.remedy ?? (byRuntime && end.message ? unknownFailure : notRunnable),
    };
  }
  if (stop) {
    return { how: `the agent ended it: ${line(stop.message)} (${exitText(end)})`, remedy: "" };
  }
  const said = end.message ? `; its last words: ${line(end.message)}` : "";
  if (end.exitCode === 0) {
    return {
      how: `its command ended by itself, with success${said}`,
      remedy:
        `A container that is to go on must not end: run its program in the foreground; for work with an end set restartPolicy: OnFailure.`,
    };
  }
  return {
    how: `its command ended with ${exitText(end)}${said}`,
    remedy: `Read what it wrote: ${logsCommand(one, true)}`,
  };
}

function crashLoop(one: ContainerCase, message: string): Finding {
  const { status, now } = one;
  const end = status.lastState?.terminated;
  const delay = /back-off (\S+) restarting/.exec(message)?.[1];
  const ended = timeOf(end?.finishedAt);
  const when = ended === undefined ? "" : ` (${ago(ended, now)})`;
  const next = delay === undefined ? "" : ` It is started again ${delay} after its last end.`;
  const times = status.restartCount + 1;
  const count = `was started ${times === 1 ? "once" : `${times} times`} and ended each time`;
  if (!end) {
    return {
      cause: `${subject(one)} ends again and again: it ${count}.${next}`,
      remedy: `Read what it wrote: ${logsCommand(one, true)}`,
      rank: 0,
    };
  }
  const { how, remedy } = whyEnded(one, end);
  return { cause: `${subject(one)} ends again and again: ${how}${when}; it ${count}.${next}`, remedy, rank: 0 };
}

function explainEnded(one: ContainerCase, end: ContainerStateTerminated): Finding | undefined {
  if (end.exitCode === 0) return undefined;
  const at = timeOf(end.finishedAt);
  const { how, remedy } = whyEnded(one, end);
  return {
    cause: `${subject(one)} has ended: ${how}${at === undefined ? "" : ` (${ago(at, one.now)})`}`,
    remedy: remedy.replace("kubelet logs -p ", "kubelet logs "),
    rank: 0,
  };
}

/** The runtime was asked to end the container, which runs all the same; undefined when that is not so. */
function unconfirmedStop(one: ContainerCase, startedAt: number): Finding | undefined {
  const { records, status, now } = one;
  const stops = records.filter((r) =>
    r.at > startedAt && r.container === status.name && (r.action === "StopContainer" || r.action === "CgroupKill")
  );
  const last = stops.findLast((r) => r.action === "StopContainer");
  // What ends the whole pod is told of the pod.
  if (last?.error === undefined || isPodEnd(last.reason)) return undefined;
  const killed = stops.some((r) => r.action === "CgroupKill" && r.error === undefined)
    ? "; the agent killed its processes itself"
    : "";
  return {
    cause: `${subject(one)} is to be ended${since(stops[0]?.at ?? last.at, now)} (${
      line(last.message, 200)
    }), but the runtime has not confirmed its end: ${line(last.error)}${killed}`,
    remedy: explainRuntimeError(last.error)?.remedy ??
      "The agent tries again by itself; when that goes on, look at the runtime: kubelet check; its log.",
    rank: 0,
  };
}

function explainRunning(one: ContainerCase, startedAt: number): Finding | undefined {
  const { status, spec, now, kind } = one;
  const since = span(now - startedAt);
  const stuck = unconfirmedStop(one, startedAt);
  if (stuck) return stuck;
  const sidecar = spec?.restartPolicy === "Always";
  const mayWait = kind === "container" || sidecar;
  if (mayWait && spec?.startupProbe && status.started === false) {
    return {
      cause: `${subject(one)} runs since ${since}, and its startup probe has not succeeded yet`,
      remedy: `Wait, or find out what the program does: ${logsCommand(one, false)}`,
      rank: 0,
    };
  }
  if (kind === "init container" && !sidecar) {
    return {
      cause: `${subject(one)} runs since ${since}; what comes after it waits for its end`,
      remedy: `Wait, or find out what it does: ${logsCommand(one, false)}`,
      rank: 0,
    };
  }
  if (!status.ready && spec?.readinessProbe) {
    return {
      cause: `${subject(one)} runs since ${since}, but its readiness probe does not succeed`,
      remedy: `Find out why: ${logsCommand(one, false)}; check readinessProbe in the manifest (path, port, command).`,
      rank: 0,
    };
  }
  const end = status.lastState?.terminated;
  if (status.restartCount === 0 || !end) return undefined;
  const at = timeOf(end.finishedAt);
  const { how, remedy } = whyEnded(one, end);
  return {
    cause: `${subject(one)} was restarted ${
      status.restartCount === 1 ? "once" : `${status.restartCount} times`
    }; the last time${at === undefined ? "" : `, ${ago(at, now)},`} ${how}`,
    remedy,
    rank: 1,
  };
}
