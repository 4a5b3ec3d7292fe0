import type { BoundPod } from "../kube/types.ts";

export type SourceName = "file" | "http" | "api";

/** The full state of one source: what it wants now. A source that could not be read says nothing. */
export interface SourceSnapshot {
  readonly source: SourceName;
  readonly pods: readonly BoundPod[];
}

/** A change of what is wanted, after merging all sources (features.md B4). */
export type PodChange =
  | { readonly op: "add" | "update" | "reconcile" | "delete"; readonly pod: BoundPod }
  | { readonly op: "remove"; readonly pod: BoundPod };

/** The merged stream. */
export interface PodSources {
  /** Changes, in order, in batches that arrived together. */
  changes(signal: AbortSignal): AsyncIterable<readonly PodChange[]>;
  /** True once every configured source has been read at least once: only then may unknown pods be cleaned up. */
  readonly allReady: boolean;
}
