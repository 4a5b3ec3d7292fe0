import type { Pod, PodSpec } from "../../../kube/types.ts";

/** What an explanation needs to know of a pod; the spec is not known of a pod that is gone. */
export interface ExplainedPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly annotations?: NonNullable<Pod["metadata"]>["annotations"];
    /** When the grace of a deleted pod is over. */
    readonly deletionTimestamp?: NonNullable<Pod["metadata"]>["deletionTimestamp"];
    readonly deletionGracePeriodSeconds?: NonNullable<Pod["metadata"]>["deletionGracePeriodSeconds"];
  };
  readonly spec?: PodSpec;
  /** No source wants it any more, and it has not ended yet. */
  readonly leaving?: true;
}

/** One reason why a pod is not as it should be, and what somebody can do. */
export interface Finding {
  /** A sentence. */
  readonly cause: string;
  /** A sentence; empty when there is nothing to do but to wait. */
  readonly remedy: string;
  /** What is wrong comes before what only happened: 0 for the former. */
  readonly rank: 0 | 1 | 2;
}
