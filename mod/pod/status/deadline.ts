import type { BoundPod, PodStatus } from "../../kube/types.ts";

/** Reason and message of a pod that ran past its active deadline (runtime-contract.md section 13). */
export const deadlineExceeded = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
} as const;

/**
 * Where the pod stands with its `activeDeadlineSeconds`, counted from the start time in its status: undefined when it
 * has none or has not started, else whether it is exceeded and how many milliseconds are left.
 */
export function activeDeadline(
  pod: BoundPod,
  status: Pick<PodStatus, "startTime"> | undefined,
  now: number,
): { readonly exceeded: boolean; readonly remainingMs: number } | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  const started = Date.parse(status?.startTime ?? pod.status?.startTime ?? "");
  if (seconds === undefined || !Number.isFinite(seconds) || Number.isNaN(started)) return undefined;
  const remainingMs = Math.max(0, started + seconds * 1000 - now);
  return { exceeded: remainingMs === 0, remainingMs };
}
