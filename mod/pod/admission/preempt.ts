import { isCritical } from "../../kube/pod.ts";
import type { BoundPod } from "../../kube/types.ts";
import { qosClass } from "../resources.ts";
import { requestOf, type Shortage } from "./predicates.ts";

/** Reason and messages of a pod that is killed for a critical one (runtime-contract.md sections 14 and 17). */
export const preempted = {
  reason: "Preempting",
  message: "Preempted in order to admit critical pod",
  disruption: "Pod was preempted by Kubelet to accommodate a critical pod.",
} as const;

/** How much of a resource has to become free. */
interface Need {
  readonly resource: string;
  readonly amount: bigint;
}

/** True when the first pod may have the second one killed: only pods of lower rank. */
function mayPreempt(pod: BoundPod, other: BoundPod): boolean {
  if (isCritical(pod) && !isCritical(other)) return true;
  const [own, theirs] = [pod.spec.priority, other.spec.priority];
  return own !== undefined && theirs !== undefined && own > theirs;
}

/** What is still needed once these pods are gone. */
function without(needs: readonly Need[], pods: readonly BoundPod[]): Need[] {
  return needs.map(({ resource, amount }) => ({
    resource,
    amount: pods.reduce((left, pod) => left - requestOf(pod, resource), amount),
  })).filter(({ amount }) => amount > 0n);
}

/** How far the pod alone is from meeting the needs: 0 when it meets them all, each need weighing the same. */
function distance(needs: readonly Need[], pod: BoundPod): number {
  return needs.reduce((sum, { resource, amount }) => {
    const left = amount - requestOf(pod, resource);
    return left > 0n ? sum + (Number(left) / Number(amount)) ** 2 : sum;
  }, 0);
}

/** Orders pods by what they request, memory before CPU. */
function bySize(a: BoundPod, b: BoundPod): number {
  for (const resource of ["memory", "cpu"]) {
    const [left, right] = [requestOf(a, resource), requestOf(b, resource)];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/** The fewest of the pods that meet the needs, nearest first; all of them when they don't. */
function nearest(pods: readonly BoundPod[], needs: readonly Need[]): BoundPod[] {
  const left = [...pods];
  const chosen: BoundPod[] = [];
  let open: readonly Need[] = needs;
  while (open.length > 0 && left.length > 0) {
    const present = open;
    const best = left.reduce((best, pod) =>
      (distance(present, pod) - distance(present, best) || bySize(pod, best)) < 0 ? pod : best
    );
    left.splice(left.indexOf(best), 1);
    chosen.push(best);
    open = without(open, [best]);
  }
  return chosen;
}

/**
 * The pods to kill so that the critical pod fits: fewest Guaranteed, then fewest Burstable, then fewest BestEffort
 * ones. Gives the text of the reason when all that it may have killed would not do.
 */
export function chooseVictims(
  pod: BoundPod,
  active: readonly BoundPod[],
  shortages: readonly Shortage[],
): { readonly victims: BoundPod[] } | { readonly failure: string } {
  const needs = shortages.map(({ resource, requested, used, capacity }) => ({
    resource,
    amount: requested - (capacity - used),
  }));
  const candidates = active.filter((other) => mayPreempt(pod, other));
  const of = (qos: string) => candidates.filter((p) => qosClass(p) === qos);
  const [best, burstable, guaranteed] = [of("BestEffort"), of("Burstable"), of("Guaranteed")];
  const unmet = without(needs, candidates);
  if (unmet.length > 0) {
    const list = unmet.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join("");
    return { failure: `no set of running pods found to reclaim resources: [${list}]` };
  }
  const fromGuaranteed = nearest(guaranteed, without(needs, [...best, ...burstable]));
  const fromBurstable = nearest(burstable, without(needs, [...best, ...fromGuaranteed]));
  const fromBest = nearest(best, without(needs, [...fromBurstable, ...fromGuaranteed]));
  return { victims: [...fromBest, ...fromBurstable, ...fromGuaranteed] };
}
