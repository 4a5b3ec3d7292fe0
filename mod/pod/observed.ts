import type { Mount } from "../../cri/gen/runtime_pb.ts";

/** A container's state as the runtime tells it. */
export type ContainerState = "created" | "running" | "exited" | "unknown";

/** One container instance that the runtime knows. Times are milliseconds since the epoch, 0 when not yet. */
export interface ObservedContainer {
  readonly id: string;
  readonly name: string;
  /** The restart count, which is also the CRI attempt. */
  readonly restartCount: number;
  readonly sandboxId: string;
  readonly state: ContainerState;
  readonly createdAt: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly exitCode: number;
  readonly reason: string;
  /** The runtime's message, joined with the termination message (runtime-contract.md section 3). */
  readonly message: string;
  /** CRI image.image, and CRI image_ref. */
  readonly image: string;
  readonly imageRef: string;
  /** The hash of the spec it was made from (label section 1), or undefined when it has none that can be read. */
  readonly hash: number | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly logPath: string;
  readonly mounts: readonly Mount[];
  /** Linux resources that the runtime reports, where it does. */
  readonly resources?: {
    readonly cpuShares: number;
    readonly cpuQuota: number;
    readonly cpuPeriod: number;
    readonly memoryLimit: number;
  };
  /** The signal that asks it to end, such as `SIGTERM`, where the runtime tells. */
  readonly stopSignal?: string;
  readonly user?: { readonly uid: number; readonly gid: number; readonly supplementalGroups: readonly number[] };
}

/** One sandbox that the runtime knows. */
export interface ObservedSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly ready: boolean;
  readonly createdAt: number;
  /** Pod IPs, primary first; empty for host network. */
  readonly ips: readonly string[];
  /** True when the sandbox uses the node's network namespace. */
  readonly hostNetwork: boolean;
  /** True when the runtime told of a network at all. */
  readonly hasNetwork: boolean;
  readonly handler: string;
}

/** All that the runtime knows of one pod at one moment. */
export interface ObservedPod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** Newest first. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** Newest first (by creation, then by restart count). */
  readonly containers: readonly ObservedContainer[];
  /** When the runtime was asked, milliseconds since the epoch. */
  readonly readAt: number;
}

/** The newest instance of the named container, or undefined. */
export function newest(observed: ObservedPod, name: string): ObservedContainer | undefined {
  return observed.containers.find((c) => c.name === name);
}

/** A pod of which the runtime knows nothing. */
export function unobserved(
  pod: { metadata: { uid: string; name: string; namespace: string } },
  at: number,
): ObservedPod {
  const { uid, name, namespace } = pod.metadata;
  return { uid, name, namespace, sandboxes: [], containers: [], readAt: at };
}
