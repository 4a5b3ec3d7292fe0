/** CPU, memory, swap and huge page settings of containers and sandboxes for the runtime (section 5.1). */
import { isCritical } from "../../kube/pod.ts";
import type { BoundPod, Container } from "../../kube/types.ts";
import {
  type Amounts,
  containerAmounts,
  cpuQuota,
  cpuShares,
  defaultCpuPeriodUs,
  hasPodLevelResources,
  hugePageLimits,
  oomScoreAdj,
  podLimits,
  podOverhead,
  podRequests,
  qosClass,
} from "../resources.ts";
import { containerMemoryQos, type MemoryQosPolicy } from "../memory_qos.ts";
import { describePod } from "./errors.ts";
import type { LinuxResourcesInit } from "./init.ts";

/** How the node limits containers. */
export interface ResourcePolicy {
  readonly cpuCfsQuota: boolean;
  /** Default 100000. */
  readonly cpuPeriodUs?: number;
  readonly cgroupVersion: 1 | 2;
  /** Default false on cgroup v2; v1 has no choice. */
  readonly singleProcessOOMKill?: boolean;
  readonly memorySwap: "NoSwap" | "LimitedSwap";
  /** True when the kernel has a swap controller for groups. */
  readonly swapAvailable: boolean;
  /** Bytes. */
  readonly nodeMemory: bigint | number;
  /** Bytes. */
  readonly nodeSwap: bigint | number;
  /** The node's huge page sizes, such as `2MB`. */
  readonly hugePageSizes: readonly string[];
  /** Set when memory requests protect containers (feature gate MemoryQoS); on cgroup v2 only. */
  readonly memoryQos?: MemoryQosPolicy;
}

interface Basics {
  readonly policy: ResourcePolicy;
  /** Milli-CPU; undefined when not requested. */
  readonly cpuRequest: bigint | undefined;
  /** Milli-CPU; 0 for none. */
  readonly cpuLimit: bigint;
  /** Bytes; 0 for none. */
  readonly memoryLimit: bigint;
  readonly exclusiveCpus: boolean;
}

interface LinuxResources {
  cpuShares: bigint;
  cpuQuota?: bigint;
  cpuPeriod?: bigint;
  memoryLimitInBytes?: bigint;
  unified?: Record<string, string>;
}

function basics({ policy, cpuRequest, cpuLimit, memoryLimit, exclusiveCpus }: Basics): LinuxResources {
  const period = policy.cpuPeriodUs ?? defaultCpuPeriodUs;
  const quota = exclusiveCpus ? -1 : cpuQuota(cpuLimit, period);
  return {
    cpuShares: BigInt(cpuShares(cpuRequest ?? cpuLimit)),
    ...(policy.cpuCfsQuota ? { cpuQuota: BigInt(quota), cpuPeriod: BigInt(period) } : {}),
    ...(memoryLimit === 0n ? {} : { memoryLimitInBytes: memoryLimit }),
    ...(policy.cgroupVersion === 2 && policy.singleProcessOOMKill !== true
      ? { unified: { "memory.oom.group": "1" } }
      : {}),
  };
}

/** Bytes of swap that the container may use (cgroup v2). */
function swapLimit(input: ContainerResourcesInput, requests: Amounts, limits: Amounts): bigint {
  const { pod, policy } = input;
  const request = requests.memory ?? 0n;
  const limit = limits.memory ?? 0n;
  const node = BigInt(policy.nodeMemory);
  const limited = policy.memorySwap === "LimitedSwap" && !isCritical(pod) && qosClass(pod) === "Burstable" &&
    request !== limit && request <= node && node > 0n;
  return limited ? request * BigInt(policy.nodeSwap) / node : 0n;
}

export interface ContainerResourcesInput {
  readonly pod: BoundPod;
  readonly container: Container;
  readonly policy: ResourcePolicy;
  /** True when the CPU manager gave the container CPUs of its own. */
  readonly exclusiveCpus?: boolean;
}

/** A container's resources; the pod's own limits stand in for those that the container lacks. Throws BadPod. */
export function containerResources(input: ContainerResourcesInput): LinuxResourcesInit {
  const { pod, container, policy } = input;
  const { requests, limits } = containerAmounts(
    container.resources,
    `pod ${describePod(pod)} container ${container.name}`,
  );
  const level = hasPodLevelResources(pod)
    ? containerAmounts({ limits: pod.spec.resources?.limits ?? {} }, `pod ${describePod(pod)}`).limits
    : {};
  const resources = basics({
    policy,
    cpuRequest: requests.cpu,
    cpuLimit: (limits.cpu ?? 0n) || (level.cpu ?? 0n),
    memoryLimit: (limits.memory ?? 0n) || (level.memory ?? 0n),
    exclusiveCpus: input.exclusiveCpus ?? false,
  });
  const pages = hugePageLimits({ ...level, ...limits }, policy.hugePageSizes);
  const own = { request: requests.memory ?? 0n, limit: limits.memory ?? 0n };
  const protection = policy.cgroupVersion === 2 && policy.memoryQos
    ? { unified: { ...resources.unified, ...containerMemoryQos(pod, own, policy.memoryQos) } }
    : {};
  const result: LinuxResources & LinuxResourcesInit = {
    ...resources,
    ...protection,
    oomScoreAdj: BigInt(oomScoreAdj(pod, container, policy.nodeMemory)),
    hugepageLimits: Object.entries(pages).map(([pageSize, limit]) => ({ pageSize, limit })),
  };
  if (!policy.swapAvailable) return result;
  if (policy.cgroupVersion === 1) {
    // v1 counts memory and swap together: the same limit leaves no swap.
    return { ...result, memorySwapLimitInBytes: resources.memoryLimitInBytes ?? 0n };
  }
  const swap = String(swapLimit(input, requests, limits));
  return { ...result, unified: { ...result.unified, "memory.swap.max": swap } };
}

/** The sandbox's picture of the pod: the sum without the overhead, and the overhead apart. Throws BadPod. */
export function sandboxResources(input: {
  readonly pod: BoundPod;
  readonly policy: ResourcePolicy;
  readonly exclusiveCpus?: boolean;
}): { resources: LinuxResourcesInit; overhead: LinuxResourcesInit } {
  const { pod, policy } = input;
  const requests = podRequests(pod, { overhead: false });
  const limits = podLimits(pod, { overhead: false });
  const overhead = podOverhead(pod);
  return {
    resources: basics({
      policy,
      cpuRequest: requests.cpu,
      cpuLimit: limits.cpu ?? 0n,
      memoryLimit: limits.memory ?? 0n,
      exclusiveCpus: input.exclusiveCpus ?? false,
    }),
    overhead: overhead === undefined ? {} : basics({
      policy,
      cpuRequest: overhead.cpu ?? 0n,
      cpuLimit: overhead.cpu ?? 0n,
      memoryLimit: overhead.memory ?? 0n,
      exclusiveCpus: false,
    }),
  };
}
