import type { Pod, PodStatus } from "../../mod/kube/types.ts";

/** Conditions as `<type>=<status>`, in their order. */
export function podConditions(status: PodStatus | undefined): string[] {
  return (status?.conditions ?? []).map(({ type, status }) => `${type}=${status}`);
}

/** The pod's status; throws without one. */
export function statusOf(pod: Pod | undefined): PodStatus {
  if (!pod?.status) throw new Error("there is no such pod, or it has no status");
  return pod.status;
}
