import { ContainerState, PodSandboxState, RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { statusWord } from "../../mod/app/run_once.ts";
import type { PodStatus } from "../../mod/kube/types.ts";
import { namesIn } from "../lib/files.ts";
import { BareCri } from "./bare_cri.ts";

/** A container as the runtime knows it; only the latest of each name. */
export interface SeenContainer {
  readonly name: string;
  readonly id: string;
  readonly state: "created" | "running" | "exited" | "unknown";
  /** How often it was started again: the attempt of its newest container. */
  readonly restarts: number;
  readonly exitCode: number | undefined;
  readonly reason: string;
}

/** A pod as the runtime knows it: the newest sandbox of each pod UID with its containers. */
export interface SeenPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly sandbox: string;
  /** Whether the sandbox is ready. */
  readonly ready: boolean;
  readonly ip: string;
  /** Nanoseconds since the epoch. */
  readonly createdAt: bigint;
  readonly containers: readonly SeenContainer[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const label = { uid: "io.kubernetes.pod.uid", name: "io.kubernetes.container.name" };
const states: Record<ContainerState, SeenContainer["state"]> = {
  [ContainerState.CONTAINER_CREATED]: "created",
  [ContainerState.CONTAINER_RUNNING]: "running",
  [ContainerState.CONTAINER_EXITED]: "exited",
  [ContainerState.CONTAINER_UNKNOWN]: "unknown",
};

/** Reads every pod of a runtime, ordered by namespace and name. What vanishes while it is read is left out. */
export async function readPods(socket: string): Promise<SeenPod[]> {
  using cri = new BareCri(socket);
  const { listPodSandbox, podSandboxStatus, listContainers, containerStatus } = RuntimeService.method;
  const sandboxes = (await cri.call(listPodSandbox, {})).items;
  const containers = (await cri.call(listContainers, {})).containers;
  const newest = newestBy(
    sandboxes,
    (one) => one.metadata?.uid ?? one.id,
    (one) => one.metadata?.attempt ?? 0,
    (one) => one.createdAt,
  );
  const pods = await Promise.all(newest.map(async (sandbox) => {
    const status = await orGone(cri.call(podSandboxStatus, { podSandboxId: sandbox.id }));
    const own = newestBy(
      containers.filter((one) => one.labels[label.uid] === sandbox.metadata?.uid || one.podSandboxId === sandbox.id),
      (one) => one.metadata?.name ?? one.id,
      (one) => one.metadata?.attempt ?? 0,
      (one) => one.createdAt,
    );
    const seen = await Promise.all(own.map(async (one): Promise<SeenContainer> => {
      const detail = (await orGone(cri.call(containerStatus, { containerId: one.id })))?.status;
      const state = states[detail?.state ?? one.state] ?? "unknown";
      return {
        name: one.labels[label.name] ?? one.metadata?.name ?? one.id,
        id: one.id,
        state,
        restarts: one.metadata?.attempt ?? 0,
        exitCode: state === "exited" ? detail?.exitCode : undefined,
        reason: detail?.reason ?? "",
      };
    }));
    return {
      namespace: sandbox.metadata?.namespace ?? "",
      name: sandbox.metadata?.name ?? "",
      uid: sandbox.metadata?.uid ?? "",
      sandbox: sandbox.id,
      ready: sandbox.state === PodSandboxState.SANDBOX_READY,
      ip: status?.status?.network?.ip ?? "",
      createdAt: sandbox.createdAt,
      containers: seen.sort((a, b) => compare(a.name, b.name)),
      labels: sandbox.labels,
      annotations: sandbox.annotations,
    };
  }));
  return pods.sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function newestBy<T>(
  all: readonly T[],
  key: (one: T) => string,
  attempt: (one: T) => number,
  at: (one: T) => bigint,
): T[] {
  const newest = new Map<string, T>();
  for (const one of all) {
    const other = newest.get(key(one));
    if (!other || attempt(one) > attempt(other) || (attempt(one) === attempt(other) && at(one) > at(other))) {
      newest.set(key(one), one);
    }
  }
  return [...newest.values()];
}

/** Undefined when the runtime says that there is no such thing (any more). */
async function orGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === 5) return undefined;
    throw thrown;
  }
}

/** The statuses that an agent keeps in a directory, by pod UID; what vanishes while it is read is left out. */
export async function readStatuses(directory: string): Promise<Map<string, PodStatus>> {
  const statuses = new Map<string, PodStatus>();
  for (const name of await namesIn(directory)) {
    const uid = /^(.+)\.json$/.exec(name)?.[1];
    if (uid === undefined || name.startsWith(".")) continue;
    try {
      statuses.set(uid, JSON.parse(await Deno.readTextFile(`${directory}/${name}`)));
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    }
  }
  return statuses;
}

/** What the agent knows of pods, by UID. */
export interface AgentsWord {
  readonly statuses?: ReadonlyMap<string, PodStatus>;
  /** Pods that are ending. */
  readonly leaving?: ReadonlySet<string>;
}

/** Rows for `table`: one a pod, by its status, or by what the runtime says while there is none. Age counts from `now`. */
export function podRows(pods: readonly SeenPod[], now: number, { statuses, leaving }: AgentsWord = {}): string[][] {
  return pods.map((pod) => {
    const status = statuses?.get(pod.uid);
    const { ready, what, restarts } = status ? byStatus(status) : byRuntime(pod);
    return [
      `${pod.namespace}/${pod.name}`,
      ready,
      leaving?.has(pod.uid) ? "Terminating" : what,
      String(restarts),
      age(now - Number(pod.createdAt / 1_000_000n)),
      status?.podIP || pod.ip || "-",
    ];
  });
}

interface Words {
  readonly ready: string;
  readonly what: string;
  readonly restarts: number;
}

function byStatus(status: PodStatus): Words {
  const inits = status.initContainerStatuses ?? [];
  // of the init containers only sidecars run on once they are ready
  const counted = [...inits.filter((one) => one.state?.running && one.ready), ...status.containerStatuses ?? []];
  const all = [...inits, ...status.containerStatuses ?? []];
  return {
    ready: `${counted.filter((one) => one.ready).length}/${counted.length}`,
    what: statusWord(status),
    restarts: all.reduce((sum, one) => sum + one.restartCount, 0),
  };
}

function byRuntime(pod: SeenPod): Words {
  const running = pod.containers.filter((one) => one.state === "running").length;
  const failed = pod.containers.find((one) => one.exitCode !== undefined && one.exitCode !== 0);
  const what = running > 0 && !failed
    ? "Running"
    : failed
    ? `${failed.name}: ${failed.reason || "Error"} (exit code ${failed.exitCode})`
    : pod.containers.length > 0 && pod.containers.every((one) => one.state === "exited")
    ? "Completed"
    : pod.ready
    ? "Starting"
    : "Ended";
  const restarts = pod.containers.reduce((sum, one) => sum + one.restarts, 0);
  return { ready: `?/${pod.containers.length}`, what, restarts };
}

/** The header that belongs to `podRows`. */
export const podHeader = ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"] as const;

/** A span of milliseconds as kubectl writes it, roughly: 42s, 7m, 3h, 2d. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
