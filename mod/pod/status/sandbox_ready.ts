import type { BoundPod, PodCondition, PodStatus } from "../../kube/types.ts";
import { stamp } from "./time.ts";

const type = "PodReadyToStartContainers";

/**
 * The status with PodReadyToStartContainers true, as it is told between the making of a sandbox and the first start in it
 * (runtime-contract.md section 7, step 5); undefined when it says so already.
 */
export function withSandboxReady(pod: BoundPod, status: PodStatus, now: number): PodStatus | undefined {
  const conditions = status.conditions ?? [];
  const at = conditions.findIndex((c) => c.type === type);
  if (conditions[at]?.status === "True") return undefined;
  const generation = pod.metadata.generation ?? 0;
  const ready: PodCondition = {
    type,
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    status: "True",
    lastTransitionTime: stamp(now),
  };
  return { ...status, conditions: at < 0 ? [...conditions, ready] : conditions.with(at, ready) };
}
