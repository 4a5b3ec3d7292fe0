import type { BoundPod } from "../kube/types.ts";
import type { SourceName } from "./types.ts";

/** One source of pods. */
export interface PodSource {
  readonly name: SourceName;
  /** Gives the source's full state whenever it was read, until the signal aborts. A failed read gives nothing. */
  run(signal: AbortSignal, emit: (pods: readonly BoundPod[]) => void): Promise<void>;
  /** What is wrong now, by file or URL, in words for an operator. */
  readonly problems: ReadonlyMap<string, string>;
  /** The file that a pod of its present state is from; undefined when there is none, or the pod is not one of them. */
  fileOf?(pod: Pick<BoundPod, "spec">): string | undefined;
}
