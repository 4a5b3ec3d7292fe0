import type { BoundPod, PodCondition, PodStatus } from "../../kube/types.ts";
import type { HeldContainer, ProbeView } from "../actions.ts";
import type { ObservedPod } from "../observed.ts";
import type { ResizeView } from "../resize/needs.ts";

/** An end as Failed that the agent itself brings about. */
export interface ForcedEnd {
  readonly reason: string;
  readonly message: string;
  /** Message of the DisruptionTarget condition, where the cause is one (section 14). */
  readonly disruption?: string;
}

/** All that a pod's status is made from. */
export interface StatusInput {
  readonly pod: BoundPod;
  readonly observed: ObservedPod;
  /** The status that was reported last; without one, the status that came with the pod. */
  readonly previous?: PodStatus;
  /** Probe results by container id. */
  readonly probes: (containerId: string) => ProbeView;
  /** Why the container's last start failed, such as `ErrImagePull`; forgotten when it succeeds. */
  readonly startErrors: (containerName: string) => { readonly reason: string; readonly message: string } | undefined;
  /** What the present decision holds back; stands before `startErrors`. */
  readonly held?: readonly HeldContainer[];
  /** The node's addresses, primary first; empty for an agent without an API server, which reports none. */
  readonly hostIPs: readonly string[];
  /** Wall time, milliseconds. */
  readonly now: number;
  /** True once nothing of the pod is to run any more, so that containers count as ended whatever their policy. */
  readonly terminating: boolean;
  /** Ends the pod as Failed with this reason: a passed deadline, eviction, preemption, node shutdown. */
  readonly forced?: ForcedEnd;
  /** The pod was refused by admission: nothing of it was ever made. The message is without `Pod was rejected: `. */
  readonly rejected?: { readonly reason: string; readonly message: string };
  /** As the runtime names itself, such as `containerd`; opens container ids. */
  readonly runtimeName: string;
  /** Whether a new sandbox is needed; by default found from `observed`. */
  readonly createSandboxNeeded?: boolean;
  /** Conditions of a resize in place, whole; dropped when the pod has ended. */
  readonly resizes?: readonly PodCondition[];
  /** What of the pod's resources is carried out; without it, all of them. */
  readonly resize?: ResizeView;
  /** Whether statuses tell of stop signals (gate ContainerStopSignals). Default false. */
  readonly stopSignals?: boolean;
  /** Whether the pod's runtime handler can make mounts recursively read-only. Default false. */
  readonly recursiveReadOnly?: boolean;
}
