import type { JournalRecord } from "../../base/journal.ts";
import type { BoundPod, PodStatus } from "../../kube/types.ts";

/** A pod as the agent tells of it on its local socket. */
export interface LocalPod {
  readonly pod: BoundPod;
  readonly status?: PodStatus;
  /** No source wants it any more, and it has not ended yet. */
  readonly leaving?: true;
}

/** How the agent is. */
export interface LocalState {
  readonly version: string;
  readonly pid: number;
  readonly nodeName: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** What the agent waits for before it can look after pods; absent when it does. */
  readonly waitingFor?: string;
  /** True once every source of pods has been read. */
  readonly sourcesReady: boolean;
  /** What is wrong with manifests, by file or URL. */
  readonly manifestProblems: readonly { readonly where: string; readonly problem: string }[];
  /** Why the runtime cannot be used, and why pods get no network. */
  readonly runtimeError?: string;
  readonly networkError?: string;
  /** Parts of /healthz that are not well, with the reason. */
  readonly unhealthy: readonly { readonly name: string; readonly reason: string }[];
}

/** An image of the node, and what becomes of it. */
export interface LocalImage {
  readonly id: string;
  /** Its tags and digests. */
  readonly names: readonly string[];
  /** Bytes. */
  readonly size: number;
  /** Whether the next collection removes it, and why or why not. */
  readonly remove: boolean;
  readonly message: string;
}

/** Answer of /images. */
export interface LocalImages {
  readonly images: readonly LocalImage[];
  /** How many images more there are than an answer holds. */
  readonly left: number;
  /** Use of the disk that images are on. */
  readonly usagePercent: number;
}

/** What the agent tells on its local socket. None of it may wait for anything, but for the images. */
export interface LocalBackend {
  pods(): readonly LocalPod[];
  /** Journal records kept in memory, oldest first; of one pod when a UID is given. */
  records(uid?: string): readonly JournalRecord[];
  /** The configuration in use, v1beta1; credentials in it are masked. */
  config(): unknown;
  state(): LocalState;
  /** Every image, those that would be removed now first. Asks the runtime; rejects when it does not answer. */
  images(signal: AbortSignal): Promise<Omit<LocalImages, "left">>;
}

/** Answer of /pods. */
export interface LocalPods {
  readonly pods: readonly LocalPod[];
  /** How many pods more there are than an answer holds. */
  readonly left: number;
}

/** Answer of /journal. */
export interface LocalRecords {
  readonly records: readonly JournalRecord[];
  /** How many older records there are than an answer holds. */
  readonly left: number;
}
