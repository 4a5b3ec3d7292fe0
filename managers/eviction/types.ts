import type { Quantity } from "../../mod/kube/quantity.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { StatsSnapshot } from "../stats/types.ts";

/** What eviction watches: the contract's signals, and time lost for want of memory (PSI), which is this agent's own. */
export type Signal =
  | "memory.available"
  | "allocatableMemory.available"
  | "nodefs.available"
  | "nodefs.inodesFree"
  | "imagefs.available"
  | "imagefs.inodesFree"
  | "containerfs.available"
  | "containerfs.inodesFree"
  | "pid.available"
  | PsiSignal;

/** Which line of the memory's pressure file, and which of its averages. */
export type PsiSignal = `memory.${"some" | "full"}.avg${"10" | "60" | "300"}`;

/** An amount: fixed, or a share (0 to 1) of the whole. */
export type Amount = { readonly quantity: Quantity } | { readonly share: number };

/** Met when less is available than its value. One object each: it is known again by its identity. */
export interface Threshold {
  readonly signal: Signal;
  readonly value: Amount;
  /** How long it must be met before pods are evicted, milliseconds; 0 for a hard one. */
  readonly gracePeriodMs: number;
  /** What must be available beyond the value before the shortage counts as over. */
  readonly minReclaim?: Amount;
}

/** A reading of a signal. */
export interface Observation {
  readonly available: Quantity;
  readonly capacity: Quantity;
  /** When it was read, milliseconds since the epoch; 0 when that is not known. */
  readonly at: number;
}

export type Observations = ReadonlyMap<Signal, Observation>;

/** Node conditions of pressure, in the order in which the node shows them. */
export const pressureConditions = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;
export type PressureCondition = (typeof pressureConditions)[number];

/** What a signal is a shortage of, as messages name it. */
export type Resource = "memory" | "ephemeral-storage" | "inodes" | "pids";

/** Where images and writable layers lie: with the node's own files, all on a disk of their own, or only the images. */
export type DiskLayout = "single" | "imagefs" | "split";

/** Names under which evictions for a limit of the pod's own are counted. */
export type LimitSignal = "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit";

/** How eviction is configured. */
export interface EvictionPolicy {
  /** Without the copies that are made at run time; see `withCopies`. */
  readonly thresholds: readonly Threshold[];
  /** enforceNodeAllocatable has `pods`: hard memory.available holds for the pods' memory too. */
  readonly allocatableEnforced: boolean;
  /** evictionPressureTransitionPeriod, milliseconds. */
  readonly transitionMs: number;
  /** evictionMaxPodGracePeriod, seconds. */
  readonly maxPodGraceSeconds: number;
  /** localStorageCapacityIsolation: pods are evicted for their own storage limits. */
  readonly storageLimits: boolean;
  /** Ours: file cache that is in use counts as available memory, as the kernel takes it back when it must. */
  readonly ignorePageCache: boolean;
  /** Ours: nothing is evicted or removed; what would be is told. */
  readonly dryRun: boolean;
  /** Ours: pods from files and URLs count like others; else they are critical, as in the reference. */
  readonly staticPods: boolean;
}

/** How a pod is to end. */
export interface Eviction {
  readonly pod: BoundPod;
  readonly graceSeconds: number;
  readonly message: string;
  /** Message of the DisruptionTarget condition; limits of the pod's own set none. */
  readonly disruption?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** What the eviction is counted under. */
  readonly signal: Signal | LimitSignal;
}

/** The pods, as the manager sees them. */
export interface EvictionPods {
  /** Pods that were taken on and may run, in no order. */
  active(): readonly BoundPod[];
  /** Ends a pod as Failed with the reason Evicted; returns at once. */
  evict(eviction: Eviction): void;
  /** True when nothing of the pod runs and what it held is given back. */
  cleaned(uid: string): boolean;
}

/** What can be given back without ending a pod. Each rejects when not all could be done. */
export interface NodeReclaim {
  /** Removes dead containers and sandboxes, also those of pods that have ended and are kept. */
  containers(signal: AbortSignal): Promise<void>;
  /** Removes images that nothing uses. */
  images(signal: AbortSignal): Promise<void>;
}

/** Told for the metrics `evictions` and `eviction_stats_age_seconds`. */
export interface EvictionMeter {
  evicted(signal: string): void;
  evictionStatsAge(signal: string, seconds: number): void;
}

/** Where readings come from. */
export interface EvictionStats {
  collect(detail: "node" | "summary"): Promise<StatsSnapshot>;
}
