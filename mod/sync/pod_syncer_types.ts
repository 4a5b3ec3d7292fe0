import type { ActuatedResources, PodResizes } from "../../managers/allocation/types.ts";
import type { CgroupManager } from "../../managers/cgroups/types.ts";
import type { ImageManager } from "../../managers/images/types.ts";
import type { PodObjects } from "../../managers/objects/types.ts";
import type { ProbeManager } from "../../managers/probes/types.ts";
import type { PodRunner } from "../../managers/runtime/runner.ts";
import type { StatusManager } from "../../managers/status/status_manager.ts";
import type { VolumeManager } from "../../managers/volumes/types.ts";
import type { Backoff } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Journal } from "../base/journal.ts";
import type { Logger } from "../base/log.ts";
import type { EventSink } from "../kube/events.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import type { PodActions } from "../pod/actions.ts";
import type { ObservedPod } from "../pod/observed.ts";
import type { ForcedEnd } from "../pod/status/input.ts";
import type { Pleg } from "./pleg.ts";

/** What a status is computed from besides the pod and its picture. */
export interface StatusSituation {
  readonly previous: PodStatus | undefined;
  readonly startErrors: ReadonlyMap<string, { reason: string; message: string }>;
  readonly actions: PodActions | undefined;
  readonly terminating: boolean;
  /** Nothing of the pod runs any more, and nothing will. */
  readonly stopped: boolean;
  readonly failed: ForcedEnd | undefined;
  readonly podIPs: readonly string[];
}

export interface PodSyncerOptions {
  pleg: Pick<Pleg, "get" | "refresh" | "readAnew">;
  runner: PodRunner;
  volumes: VolumeManager;
  /** Keeps the Secrets and ConfigMaps of pods that run here; none without an API server. */
  objects?: Pick<PodObjects, "register" | "unregister"> | undefined;
  cgroups: CgroupManager;
  probes: ProbeManager;
  images: Pick<ImageManager, "heldMs">;
  statuses: StatusManager;
  backoff: Backoff;
  host: Pick<Host, "mkdir" | "removeTree">;
  clock: Clock;
  /** Gets what takes long of a pod's end; runtime calls leave their own records. */
  journal: Pick<Journal, "note">;
  events: EventSink;
  log: Logger;
  /** Resizes in place; none without it. */
  resizes?: (PodResizes & Pick<ActuatedResources, "setPod">) | undefined;
  /** Computes a pod's status; pure. */
  status: (pod: BoundPod, observed: ObservedPod, situation: StatusSituation) => PodStatus;
  /** Milliseconds left of the pod's active deadline; undefined without one. */
  deadlineMs: (pod: BoundPod, status: PodStatus | undefined) => number | undefined;
  /** Why pods without the node's own network cannot start now, or undefined. */
  networkError: () => string | undefined;
  /** The node's addresses, which host-network pods have. */
  nodeIPs: readonly string[];
  /** `<root>/pods/<uid>`, and the pod's log directory if its names allow one. */
  podDir: (uid: string) => string;
  logDir: (pod: BoundPod) => string | undefined;
  /** Removes the legacy links of the pod's containers. */
  /** Makes the log links of the pod's running containers that an earlier agent may not have come to. */
  linkLogs: (pod: BoundPod, observed: ObservedPod) => Promise<void>;
  removeLogLinks: (pod: BoundPod, observed: ObservedPod) => Promise<void>;
  /** Told when a pod has gone for good. */
  onGone: (uid: string) => void;
}
