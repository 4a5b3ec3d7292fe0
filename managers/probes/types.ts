import type { BoundPod } from "../../mod/kube/types.ts";
import type { ProbeView } from "../../mod/pod/actions.ts";

export type ProbeType = "liveness" | "readiness" | "startup";

/** A probe's result crossed its threshold. */
export interface ProbeUpdate {
  readonly podUid: string;
  readonly container: string;
  readonly containerId: string;
  readonly type: ProbeType;
  readonly ok: boolean;
  readonly message: string;
}

/** Where a container that is probed stands; the prober is told, it never asks the runtime. */
export interface ProbeTarget {
  readonly containerId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly running: boolean;
}

/** Runs a pod's probes (runtime-contract.md section 18). */
export interface ProbeManager {
  /** Starts workers for the probes of the pod's containers that have none yet. */
  addPod(pod: BoundPod): void;
  /** Tells where the pod's containers stand now, by container name, and the address that probes go to. */
  observe(podUid: string, podIP: string | undefined, targets: ReadonlyMap<string, ProbeTarget>): void;
  /** Liveness and startup probes end when termination begins; readiness goes on. */
  stopLivenessAndStartup(podUid: string): void;
  /** Ends every probe of the pod and forgets its results. */
  removePod(podUid: string): void;
  /** Results of a container instance. */
  results(containerId: string): ProbeView;
}
