/** How memory requests protect pods on cgroup v2 (feature gate MemoryQoS, features.md F17). */
import type { BoundPod } from "../kube/types.ts";
import { podRequests, qosClass } from "./resources.ts";

/** What the gate's fields say. */
export interface MemoryQosPolicy {
  /** Where memory.high lies between request and limit: 0 is at the request, 1 at the limit. */
  readonly throttlingFactor: number;
  /** memoryReservationPolicy TieredReservation: requests are kept for those who made them. */
  readonly tiered: boolean;
  /** Bytes that pods may have, which stand for a limit that is not set; 0 when that is not known. */
  readonly allocatable: bigint;
}

/** Bytes of memory that a group keeps: `memory.min` whatever happens, `memory.low` as long as others have some to give. */
export interface MemoryReserve {
  readonly min?: bigint;
  readonly low?: bigint;
}

/** The kernel counts in pages of so many bytes. */
const pageBytes = 4096;

/** Files of a container's group, and their values. @param amounts bytes; 0 for none */
export function containerMemoryQos(
  pod: BoundPod,
  amounts: { readonly request: bigint; readonly limit: bigint },
  policy: MemoryQosPolicy,
): Record<string, string> {
  const { request, limit } = amounts;
  const high = request === limit ? undefined : memoryHigh(request, limit || policy.allocatable, policy);
  return { ...reserved(pod, request, policy), ...(high === undefined ? {} : { "memory.high": String(high) }) };
}

function reserved(pod: BoundPod, request: bigint, { tiered }: MemoryQosPolicy): Record<string, string> {
  if (!tiered || request === 0n) return { "memory.min": "0", "memory.low": "0" };
  return { [qosClass(pod) === "Guaranteed" ? "memory.min" : "memory.low"]: String(request) };
}

/** Whole pages; undefined when they would slow the container down within its request, or there is nothing to go by. */
function memoryHigh(request: bigint, most: bigint, { throttlingFactor }: MemoryQosPolicy): bigint | undefined {
  if (most <= 0n) return undefined;
  const bytes = Math.floor(Number(request) + (Number(most) - Number(request)) * throttlingFactor);
  const high = BigInt(Math.floor(bytes / pageBytes)) * BigInt(pageBytes);
  return high > request ? high : undefined;
}

/** What a pod's own group keeps for it. Throws BadPod on a bad quantity. */
export function podMemoryReserve(pod: BoundPod, policy: MemoryQosPolicy): MemoryReserve {
  const request = podRequests(pod).memory ?? 0n;
  if (!policy.tiered || request === 0n) return {};
  return qosClass(pod) === "Guaranteed" ? { min: request } : { low: request };
}

/**
 * What the groups above the pods keep: the kubepods group for all that is in it, as a group's protection is worth no
 * more than that of those above it, and the Burstable one for its pods.
 */
export function nodeMemoryReserve(
  pods: readonly BoundPod[],
  policy: MemoryQosPolicy,
): { readonly kubepods: MemoryReserve; readonly burstable: MemoryReserve; readonly guaranteedBytes: bigint } {
  const sum = { Guaranteed: 0n, Burstable: 0n, BestEffort: 0n };
  if (policy.tiered) { for (const pod of pods) sum[qosClass(pod)] += podRequests(pod).memory ?? 0n; }
  return {
    kubepods: { min: sum.Guaranteed + sum.Burstable },
    burstable: { low: sum.Burstable },
    guaranteedBytes: sum.Guaranteed,
  };
}
