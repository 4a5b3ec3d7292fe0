import type { PodCgroupLimits } from "../resources.ts";
import type { ResizeAction, ResizedResource } from "./needs.ts";

/** The limits of a pod's control group as the kernel has them. */
export interface GroupState {
  /** Bytes; a very large number, or undefined, for none. */
  readonly memoryLimit: bigint | undefined;
  /** Microseconds per period; −1 for none. */
  readonly cpuQuota: number;
  readonly cpuPeriod: number;
  readonly cpuShares: number;
}

/** One step of a resize: a write to the pod's group, or the update of its containers. */
export type ResizeStep =
  | { readonly do: "limit"; readonly resource: ResizedResource }
  | { readonly do: "shares" }
  | { readonly do: "containers"; readonly resource: ResizedResource };

/** No quota is the greatest. */
const asQuota = (quota: number) => quota <= 0 ? Infinity : quota;

/**
 * The order of a resize (features.md section 13): memory before CPU; of each, the pod's limit is raised first and its
 * shares next, then the containers are updated, then shares and limit are lowered. A limit that the pod no longer has is
 * left as it is.
 */
export function resizeSteps(action: ResizeAction, now: GroupState, wanted: PodCgroupLimits): ResizeStep[] {
  const steps: ResizeStep[] = [];
  const whole = action.podLevel || action.restarts;
  if (whole || action.memory.length > 0) {
    const limit = wanted.memoryLimit || undefined;
    const has = now.memoryLimit;
    if (limit !== undefined && has !== undefined && limit > has) steps.push({ do: "limit", resource: "memory" });
    if (action.memory.length > 0) steps.push({ do: "containers", resource: "memory" });
    if (limit !== undefined && (has === undefined || limit < has)) steps.push({ do: "limit", resource: "memory" });
  }
  if (whole || action.cpu.length > 0) {
    const quota = wanted.cpuQuota;
    const more = quota !== undefined && asQuota(quota) > asQuota(now.cpuQuota);
    const less = quota !== undefined && asQuota(quota) < asQuota(now.cpuQuota);
    if (more) steps.push({ do: "limit", resource: "cpu" });
    if (wanted.cpuShares > now.cpuShares) steps.push({ do: "shares" });
    if (action.cpu.length > 0) steps.push({ do: "containers", resource: "cpu" });
    if (wanted.cpuShares < now.cpuShares) steps.push({ do: "shares" });
    if (less) steps.push({ do: "limit", resource: "cpu" });
  }
  return steps;
}

/** Memory in use, bytes; undefined where it cannot be read. */
export interface MemoryUse {
  readonly pod: bigint | undefined;
  readonly containers: ReadonlyMap<string, bigint | undefined>;
}

/** The containers' names whose memory limit gets lower, or is new, with the limit that they get. */
export function loweredLimits(action: ResizeAction): Map<string, bigint> {
  return new Map(
    action.memory.filter(({ from, to }) =>
      to.memoryLimit !== 0n && (from.memoryLimit === 0n || to.memoryLimit < from.memoryLimit)
    ).map(({ name, to }) => [name, to.memoryLimit]),
  );
}

/** True when the pod's memory limit gets lower, or is new. */
export function lowersPodLimit(now: GroupState, wanted: PodCgroupLimits): boolean {
  const limit = wanted.memoryLimit || undefined;
  return limit !== undefined && (now.memoryLimit === undefined || limit < now.memoryLimit);
}

/** Why memory limits cannot be lowered now, for more than that is in use; undefined when they can. */
export function memoryObstacle(
  action: ResizeAction,
  now: GroupState,
  wanted: PodCgroupLimits,
  use: MemoryUse,
): string | undefined {
  const faults: string[] = [];
  if (lowersPodLimit(now, wanted)) {
    if (use.pod === undefined) faults.push("missing pod memory usage");
    else if (use.pod >= (wanted.memoryLimit ?? 0n)) {
      faults.push(`attempting to set pod memory limit (${wanted.memoryLimit}) below current usage (${use.pod})`);
    }
  }
  for (const [name, limit] of loweredLimits(action)) {
    const used = use.containers.get(name);
    const what = JSON.stringify(name);
    if (used === undefined) faults.push(`missing container ${what} memory usage`);
    else if (used >= limit) {
      faults.push(`attempting to set container ${what} memory limit (${limit}) below current usage (${used})`);
    }
  }
  if (faults.length === 0) return undefined;
  return `cannot decrease memory limits: ${faults.length === 1 ? faults[0] : `[${faults.join(", ")}]`}`;
}
