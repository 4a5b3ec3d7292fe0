import type { BoundPod, ContainerKind } from "../kube/types.ts";
import type { ObservedPod } from "./observed.ts";
import type { ResizeAction, ResizeView } from "./resize/needs.ts";

/** Why an action is taken: a stable CamelCase reason and a sentence. */
export interface Why {
  readonly reason: string;
  readonly message: string;
}

/** What the prober knows of one container instance; undefined where there is no such probe or no result yet. */
export interface ProbeView {
  readonly liveness?: boolean;
  readonly startup?: boolean;
  readonly readiness?: boolean;
}

/** All that `decide` may look at. */
export interface DecideInput {
  readonly pod: BoundPod;
  readonly observed: ObservedPod;
  /** Wall time, milliseconds. */
  readonly now: number;
  /** Probe results by container id. */
  readonly probes: (containerId: string) => ProbeView;
  /**
   * Milliseconds that the restart back-off still holds the key, for an exit at `since`; 0 when it may start. By the
   * same clock as `now`.
   */
  readonly backOff: (key: string, since: number) => number;
  /** What of the pod's resources is carried out; without it nothing is resized. */
  readonly resize?: ResizeView;
}

export interface StartContainer extends Why {
  readonly kind: ContainerKind;
  readonly name: string;
  /** The back-off entry to step when it is started after an exit (time of that exit), or undefined for a first start. */
  readonly afterExit?: { readonly key: string; readonly at: number };
}

export interface KillContainer extends Why {
  readonly id: string;
  readonly name: string;
  /** Which probe's own grace period applies, where a probe is the cause. */
  readonly probe?: "liveness" | "startup";
  /** True when the container will be started again. */
  readonly restarts: boolean;
}

/** A container that must wait before its next start; shown as Waiting with this reason. */
export interface HeldContainer extends Why {
  readonly kind: ContainerKind;
  readonly name: string;
  readonly remainingMs: number;
}

/** What to do for a pod, decided without doing it (runtime-contract.md section 7). Applied in the order of the fields. */
export interface PodActions {
  /**
   * Kill every container of the pod and stop every sandbox; with `createSandbox` the pod is made anew afterwards,
   * without it nothing of the pod is to run any more. Unset when there is nothing left to kill or stop.
   */
  readonly killPod?: Why;
  /** Containers to kill one by one (only without killPod). */
  readonly kill: readonly KillContainer[];
  /**
   * Container instances to remove from the runtime after the kills and before anything starts: init containers that
   * ended, all but the newest of each name; with `createSandbox` every init container. A removal that fails is no
   * reason to stop.
   */
  readonly remove: readonly (Why & { readonly id: string; readonly name: string })[];
  /**
   * RestartAllContainers: kill (grace 0, where `live`) and remove each of these, in this order, keep logs and sandbox,
   * then go on with `start`. The containers whose exit asked for it come last, so that the reset is taken up again if
   * it is cut off; an error ends it for this time.
   */
  readonly resetContainers?: Why & {
    readonly containers: readonly { readonly id: string; readonly name: string; readonly live: boolean }[];
  };
  /**
   * Make a sandbox with this attempt number. `replaces` is the id of the sandbox before it; where it is set the event
   * SandboxChanged is due.
   */
  readonly createSandbox?: Why & { readonly attempt: number; readonly replaces?: string };
  /** The sandbox that containers go into, when none is made. */
  readonly sandboxId?: string;
  /** What has to change so that what runs has the resources that the pod was given; after the kills, before any start. */
  readonly resize?: ResizeAction;
  /**
   * Containers to start, in order: ephemeral, init (at most one that is not a sidecar), regular. When a regular init
   * container can't be started nothing after it is; a sidecar, ephemeral or regular one that can't stops no other.
   */
  readonly start: readonly StartContainer[];
  /** Containers held by their back-off; look again when the shortest `remainingMs` has passed. */
  readonly held: readonly HeldContainer[];
  /** True when no container of the pod runs, and by its restart policy none will. */
  readonly finished: boolean;
}
