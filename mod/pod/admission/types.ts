import type { BoundPod, Taint } from "../../kube/types.ts";

/** What admission needs to know of the node. */
export interface NodeFacts {
  readonly name: string;
  /** Quantities by resource name: `cpu`, `memory`, `pods`, `ephemeral-storage`, `hugepages-2Mi`, … What is missing counts as 0. */
  readonly allocatable: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
  /** As the label `kubernetes.io/os` has it. */
  readonly os: string;
  readonly arch: string;
  /** The kernel's release, such as `6.8.0-45-generic`; unknown counts as too old for the sysctls that need one. */
  readonly kernelVersion?: string;
  readonly features: {
    /** The runtime honours `supplementalGroupsPolicy: Strict`. */
    readonly supplementalGroupsPolicy?: boolean;
    /** AppArmor is enabled on the host. */
    readonly appArmor?: boolean;
    /** Gate PodLevelResources; default on. */
    readonly podLevelResources?: boolean;
  };
  /** Node conditions of pressure that hold now, such as `MemoryPressure`. */
  readonly pressure?: readonly string[];
}

/** What the configuration says about admission. */
export interface AdmissionPolicy {
  /** Sysctls and patterns that end in `*`, allowed besides the safe ones. */
  readonly allowedUnsafeSysctls?: readonly string[];
  /** Static pods below the critical priority are turned away under pressure like others (an option of this agent). */
  readonly staticPodsEvictable?: boolean;
  /** True from the start of a graceful node shutdown. */
  readonly shuttingDown?: boolean;
}

export interface AdmissionInput {
  readonly pod: BoundPod;
  readonly node: NodeFacts;
  /** Pods that are admitted and have not ended. The pod itself, and an older one of its static name, do not count. */
  readonly active: readonly BoundPod[];
  readonly policy?: AdmissionPolicy;
}

/** Why a pod is refused. The status shows the message after `Pod was rejected: `. */
export interface Rejection {
  readonly admit: false;
  readonly reason: string;
  readonly message: string;
}

/** The pod may run once `victims` are killed, which is mostly nobody. */
export interface Admitted {
  readonly admit: true;
  readonly victims: readonly BoundPod[];
  /** What was short, when there are any. */
  readonly short?: string;
}

export type Admission = Admitted | Rejection;

/** Short for a rejection. */
export function reject(reason: string, message: string): Rejection {
  return { admit: false, reason, message };
}
