import {
  ContainerState as CriContainerState,
  type ContainerStatus,
  NamespaceMode,
  type PodSandbox,
  PodSandboxState,
  type PodSandboxStatus,
  Signal,
} from "../../cri/gen/runtime_pb.ts";
import type { ContainerState, ObservedContainer, ObservedSandbox } from "../pod/observed.ts";

/** Label and annotation keys by which the agent finds its own again (runtime-contract.md section 1). */
export const label = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  container: "io.kubernetes.container.name",
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
} as const;

const states: Record<CriContainerState, ContainerState> = {
  [CriContainerState.CONTAINER_CREATED]: "created",
  [CriContainerState.CONTAINER_RUNNING]: "running",
  [CriContainerState.CONTAINER_EXITED]: "exited",
  [CriContainerState.CONTAINER_UNKNOWN]: "unknown",
};

/** The state of a listed container; one the runtime has no word for is unknown. */
export function containerState(state: CriContainerState): ContainerState {
  return states[state] ?? "unknown";
}

/** CRI nanoseconds to milliseconds. */
export function millis(nanoseconds: bigint): number {
  return Number(nanoseconds / 1_000_000n);
}

/** Reads a hash label: lower-case hex without prefix; undefined for anything else. */
export function parseHash(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9a-f]{1,8}$/.test(text) ? parseInt(text, 16) : undefined;
}

/** The restart count from the annotation, or the CRI attempt where the annotation is missing or damaged. */
export function restartCountOf(annotations: Record<string, string>, attempt: number): number {
  const text = annotations[label.restartCount];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : attempt;
}

/** A sandbox from its full status. */
export function observeSandbox(status: PodSandboxStatus): ObservedSandbox {
  const first = status.network?.ip ?? "";
  const more = (status.network?.additionalIps ?? []).map((a) => a.ip);
  return {
    id: status.id,
    attempt: status.metadata?.attempt ?? 0,
    ready: status.state === PodSandboxState.SANDBOX_READY,
    createdAt: millis(status.createdAt),
    ips: [first, ...more].filter((ip) => ip !== ""),
    hostNetwork: status.linux?.namespaces?.options?.network === NamespaceMode.NODE,
    hasNetwork: status.network !== undefined,
    handler: status.runtimeHandler,
  };
}

/** A sandbox from the list alone: what is known when its status can no longer be read. */
export function observeListedSandbox(listed: PodSandbox): ObservedSandbox {
  return {
    id: listed.id,
    attempt: listed.metadata?.attempt ?? 0,
    ready: listed.state === PodSandboxState.SANDBOX_READY,
    createdAt: millis(listed.createdAt),
    ips: [],
    hostNetwork: false,
    hasNetwork: false,
    handler: listed.runtimeHandler,
  };
}

/** A container from its full status; the list names its sandbox, which the status does not. */
export function observeContainer(status: ContainerStatus, sandboxId: string, message: string): ObservedContainer {
  const linux = status.resources?.linux;
  const user = status.user?.linux;
  return {
    id: status.id,
    name: status.labels[label.container] ?? status.metadata?.name ?? "",
    restartCount: restartCountOf(status.annotations, status.metadata?.attempt ?? 0),
    sandboxId,
    state: containerState(status.state),
    createdAt: millis(status.createdAt),
    startedAt: millis(status.startedAt),
    finishedAt: millis(status.finishedAt),
    exitCode: status.exitCode,
    reason: status.reason,
    message,
    image: status.image?.image ?? "",
    imageRef: status.imageRef,
    hash: parseHash(status.annotations[label.hash]),
    annotations: status.annotations,
    logPath: status.logPath,
    mounts: status.mounts,
    ...(linux
      ? {
        resources: {
          cpuShares: Number(linux.cpuShares),
          cpuQuota: Number(linux.cpuQuota),
          cpuPeriod: Number(linux.cpuPeriod),
          memoryLimit: Number(linux.memoryLimitInBytes),
        },
      }
      : {}),
    ...(status.stopSignal === Signal.RUNTIME_DEFAULT || Signal[status.stopSignal] === undefined
      ? {}
      : { stopSignal: Signal[status.stopSignal] }),
    ...(user
      ? {
        user: { uid: Number(user.uid), gid: Number(user.gid), supplementalGroups: user.supplementalGroups.map(Number) },
      }
      : {}),
  };
}

/** The pod that a sandbox or container belongs to, from its labels; undefined when it is not one of the kubelet's. */
export function ownerOf(listed: { labels: Record<string, string> }): {
  uid: string;
  name: string;
  namespace: string;
} | undefined {
  const uid = listed.labels[label.podUid];
  const name = listed.labels[label.podName];
  const namespace = listed.labels[label.podNamespace];
  return uid && name && namespace ? { uid, name, namespace } : undefined;
}

/**
 * Newest first: by attempt, which each new instance has one higher than the last, and of the same attempt by creation
 * time; the order that every reader of an ObservedPod relies on. Not by time first: the wall clock may be set back, and
 * an instance that runs must not look older than one that has ended before it.
 */
export function newestFirst(a: ObservedContainer | ObservedSandbox, b: ObservedContainer | ObservedSandbox): number {
  const attempt = (x: ObservedContainer | ObservedSandbox) => "restartCount" in x ? x.restartCount : x.attempt;
  return attempt(b) - attempt(a) || b.createdAt - a.createdAt;
}
