import type { PodStatus } from "../../mod/kube/types.ts";
import { isTerminal } from "../../mod/pod/status/phase.ts";
import type { StatusEntry } from "./status_manager.ts";

/** What a container waits for while its pod is only on its way. */
const onTheWay = new Set(["ContainerCreating", "PodInitializing"]);

/**
 * False for a status that tells nothing but a start or an end under way: more follows soon, and one write can carry both.
 * A pod that runs, has ended, or cannot start is not kept waiting.
 */
export function isUrgent({ pod, status, finished }: Pick<StatusEntry, "pod" | "status" | "finished">): boolean {
  if (finished || isTerminal(status.phase)) return true;
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (status.phase !== "Pending") return true;
  return containersOf(status).some(({ state }) => !onTheWay.has(state?.waiting?.reason ?? ""));
}

function containersOf(status: PodStatus) {
  return [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []];
}
