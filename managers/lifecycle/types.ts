import type { BoundPod, LifecycleHandler } from "../../mod/kube/types.ts";

/** One hook of one container. */
export interface HookRequest {
  readonly handler: LifecycleHandler;
  readonly pod: BoundPod;
  readonly containerName: string;
  readonly containerId: string;
  /** The address an httpGet goes to when it names no host; the node's for a pod on the host network. */
  readonly podIP: string | undefined;
  /** Ends the hook: the grace period is over, or the agent stops. */
  readonly signal: AbortSignal;
}

/** Runs one hook to its end. Rejects with code Runtime, Network or BadPod when it failed, Aborted when called off. */
export interface HookRunner {
  run(request: HookRequest): Promise<void>;
}
