/** What a pod asks for, and what the kernel is told of it (runtime-contract.md sections 5.1, 5.2 and 6). */
import { KubeletError } from "../base/errors.ts";
import { isCritical } from "../kube/pod.ts";
import { milliValueBig, parseQuantity, valueBig } from "../kube/quantity.ts";
import type { BoundPod, Container, ResourceRequirements } from "../kube/types.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/** Amounts by resource name: `cpu` in milli-CPU, everything else in its unit (bytes, pieces); fractions rounded up. */
export type Amounts = Record<string, bigint>;

/** The least CPU shares a group can have, which also stand for "no CPU requested". */
export const minCpuShares = 2;
/** The most CPU shares a group can have. */
export const maxCpuShares = 262_144;
/** Default CFS period, microseconds. */
export const defaultCpuPeriodUs = 100_000;
/** The least CFS quota, microseconds. */
export const minCpuQuotaUs = 1000;
/** The OOM score of Guaranteed and node-critical pods, and of BestEffort ones. */
const guaranteedOom = -997;
const bestEffortOom = 1000;

type Nanos = Map<string, bigint>;
type Side = "requests" | "limits";

function nanoOf(text: unknown, what: string): bigint {
  // Manifests are read without a schema for every leaf: what is no text or number has to fail here, by name.
  const readable = typeof text === "string" || typeof text === "number" ? text : JSON.stringify(text) ?? "";
  return parseQuantity(readable, { what, code: "BadPod" }).nano;
}

function readNanos(list: Readonly<Record<string, unknown>> | undefined, where: string): Nanos {
  const out: Nanos = new Map();
  for (const [name, text] of Object.entries(list ?? {})) out.set(name, nanoOf(text, `${where}.${name}`));
  return out;
}

function toAmounts(nanos: Nanos): Amounts {
  return Object.fromEntries(
    [...nanos].map(([name, nano]) => {
      const quantity = { nano, format: "DecimalSI" } as const;
      return [name, name === "cpu" ? milliValueBig(quantity) : valueBig(quantity)];
    }),
  );
}

function add(into: Nanos, what: Nanos): void {
  for (const [name, n] of what) into.set(name, (into.get(name) ?? 0n) + n);
}

function raise(into: Nanos, what: Nanos): void {
  for (const [name, n] of what) if (n > (into.get(name) ?? -1n)) into.set(name, n);
}

function containerNanos(pod: BoundPod, container: Container, side: Side): Nanos {
  const { namespace, name } = pod.metadata;
  return readNanos(container.resources?.[side], `pod ${namespace}/${name} container ${container.name} ${side}`);
}

/** True for resources that a pod as a whole can ask for. */
function isPodLevelResource(name: string): boolean {
  return name === "cpu" || name === "memory" || name.startsWith("hugepages-");
}

/** The pod-level list of one side without names that can't stand there, or undefined when nothing is left. */
function podLevel(pod: BoundPod, side: Side): Nanos | undefined {
  const all = readNanos(pod.spec.resources?.[side], `pod ${pod.metadata.namespace}/${pod.metadata.name} ${side}`);
  const kept = new Map([...all].filter(([name]) => isPodLevelResource(name)));
  return kept.size > 0 ? kept : undefined;
}

/** True when the pod as a whole asks for, or is limited in, something. */
export function hasPodLevelResources(pod: BoundPod): boolean {
  return podLevel(pod, "requests") !== undefined || podLevel(pod, "limits") !== undefined;
}

/**
 * The containers' sum: regular containers and sidecars run together, while each plain init container runs only
 * with the sidecars that stand before it; the greater of both counts.
 */
function sumContainers(pod: BoundPod, side: Side): Nanos {
  const sum: Nanos = new Map();
  for (const container of pod.spec.containers) add(sum, containerNanos(pod, container, side));
  const sidecars: Nanos = new Map();
  const initPeak: Nanos = new Map();
  for (const container of pod.spec.initContainers ?? []) {
    const own = containerNanos(pod, container, side);
    if (container.restartPolicy === "Always") {
      add(sum, own);
      add(sidecars, own);
      raise(initPeak, sidecars);
    } else {
      add(own, sidecars);
      raise(initPeak, own);
    }
  }
  raise(sum, initPeak);
  return sum;
}

function requestNanos(pod: BoundPod, withOverhead: boolean): Nanos {
  const sum = sumContainers(pod, "requests");
  for (const [name, n] of podLevel(pod, "requests") ?? []) sum.set(name, n);
  if (withOverhead) add(sum, overheadNanos(pod));
  return sum;
}

function limitNanos(pod: BoundPod, withOverhead: boolean): Nanos {
  const sum = sumContainers(pod, "limits");
  for (const [name, n] of podLevel(pod, "limits") ?? []) sum.set(name, n);
  if (withOverhead) {
    // Overhead widens a limit that is there; it never makes one.
    for (const [name, n] of overheadNanos(pod)) {
      const limit = sum.get(name);
      if (limit !== undefined && limit !== 0n) sum.set(name, limit + n);
    }
  }
  return sum;
}

function overheadNanos(pod: BoundPod): Nanos {
  return readNanos(pod.spec.overhead, `pod ${pod.metadata.namespace}/${pod.metadata.name} overhead`);
}

export interface SumOptions {
  /** Whether the RuntimeClass overhead counts; default true. */
  readonly overhead?: boolean;
}

/** What the pod requests in all, pod-level values winning over the containers' sum. Throws BadPod on a bad quantity. */
export function podRequests(pod: BoundPod, options: SumOptions = {}): Amounts {
  return toAmounts(requestNanos(pod, options.overhead ?? true));
}

/** What the pod is limited to in all; only resources that some container or the pod limits. Throws BadPod. */
export function podLimits(pod: BoundPod, options: SumOptions = {}): Amounts {
  return toAmounts(limitNanos(pod, options.overhead ?? true));
}

/** The requests and limits of one container, as they stand in its spec. Throws BadPod on a bad quantity. */
export function containerAmounts(
  resources: ResourceRequirements | undefined,
  where: string,
): { requests: Amounts; limits: Amounts } {
  return {
    requests: toAmounts(readNanos(resources?.requests, `${where} requests`)),
    limits: toAmounts(readNanos(resources?.limits, `${where} limits`)),
  };
}

/** The RuntimeClass overhead, or undefined when the pod has none. */
export function podOverhead(pod: BoundPod): Amounts | undefined {
  return pod.spec.overhead === undefined ? undefined : toAmounts(overheadNanos(pod));
}

const qosResources = ["cpu", "memory"] as const;
const positive = (list: Nanos) => qosResources.filter((name) => (list.get(name) ?? 0n) > 0n);

/**
 * The pod's quality-of-service class: the one in its status when the API has set it, else computed from CPU and memory
 * of all regular and init containers, or from the pod-level resources alone when there are any. Throws BadPod.
 */
export function qosClass(pod: BoundPod): QosClass {
  const set = pod.status?.qosClass;
  return set === "Guaranteed" || set === "Burstable" || set === "BestEffort" ? set : computeQosClass(pod);
}

/** The class by the spec alone (see qosClass). */
export function computeQosClass(pod: BoundPod): QosClass {
  const requests: Nanos = new Map();
  const limits: Nanos = new Map();
  let guaranteed = true;
  const count = (req: Nanos, lim: Nanos, needsBoth: boolean) => {
    for (const name of positive(req)) add(requests, new Map([[name, req.get(name) ?? 0n]]));
    for (const name of positive(lim)) add(limits, new Map([[name, lim.get(name) ?? 0n]]));
    if (needsBoth && positive(lim).length < qosResources.length) guaranteed = false;
  };
  if (pod.spec.resources !== undefined) {
    const where = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    const lim = readNanos(pod.spec.resources.limits, `${where} limits`);
    count(readNanos(pod.spec.resources.requests, `${where} requests`), lim, lim.size > 0);
  } else {
    for (const container of [...pod.spec.containers, ...pod.spec.initContainers ?? []]) {
      count(containerNanos(pod, container, "requests"), containerNanos(pod, container, "limits"), true);
    }
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const equal = requests.size === limits.size && [...requests].every(([name, n]) => limits.get(name) === n);
  return guaranteed && equal ? "Guaranteed" : "Burstable";
}

function clamp(value: bigint, low: number, high: number): number {
  return value < BigInt(low) ? low : value > BigInt(high) ? high : Number(value);
}

/** CPU shares (cgroup v1 cpu.shares) for an amount of milli-CPU. */
export function cpuShares(milli: bigint | number): number {
  return clamp(BigInt(milli) * 1024n / 1000n, minCpuShares, maxCpuShares);
}

/** CFS quota in microseconds for a limit in milli-CPU; 0 (no limit) for 0. */
export function cpuQuota(milli: bigint | number, periodUs: number = defaultCpuPeriodUs): number {
  if (BigInt(milli) === 0n) return 0;
  return clamp(BigInt(milli) * BigInt(periodUs) / 1000n, minCpuQuotaUs, Number.MAX_SAFE_INTEGER);
}

/** cgroup v2 cpu.weight for CPU shares; 0 when there are no shares to convert. */
export function cpuWeightOf(shares: number): number {
  if (shares <= 0) return 0;
  if (shares >= maxCpuShares) return 10_000;
  return 1 + Math.trunc((Math.max(shares, minCpuShares) - 2) * 9999 / 262_142);
}

/** CPU shares for a cgroup v2 cpu.weight. */
export function cpuSharesOfWeight(weight: number): number {
  return Math.trunc((weight - 1) * 262_142 / 9999) + 2;
}

/** Milli-CPU requested, from the shares that a runtime reports; 0 when there are none. */
export function milliOfShares(shares: number): number {
  return shares >= minCpuShares ? Math.ceil(shares * 1000 / 1024) : 0;
}

/** Milli-CPU limit from a quota and period as a runtime reports them; 0 when there is no limit. */
export function milliOfQuota(quotaUs: number, periodUs: number): number {
  return quotaUs <= 0 || periodUs <= 0 ? 0 : Math.trunc(quotaUs * 1000 / periodUs);
}

/** The kernel's name of a huge page size, such as `2MB`; undefined when the size has no such name. */
export function hugePageSizeName(bytes: bigint): string | undefined {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let size = bytes;
  let unit = 0;
  while (size > 0n && size % 1024n === 0n && unit < units.length - 1) {
    size /= 1024n;
    unit++;
  }
  return size <= 0n || (size > 1024n && unit < units.length - 1) ? undefined : `${size}${units[unit]}`;
}

/** The page size name of a resource such as `hugepages-2Mi`; undefined for other resources. Throws BadPod. */
export function hugePageResource(name: string): string | undefined {
  if (!name.startsWith("hugepages-")) return undefined;
  return hugePageSizeName(valueBig(parseQuantity(name.slice("hugepages-".length), { what: name, code: "BadPod" })));
}

/** Bytes by page size: each size of the node (0 when not asked for); sizes the node lacks are left out. */
export function hugePageLimits(amounts: Amounts, nodeSizes: readonly string[]): Record<string, bigint> {
  const limits = new Map(nodeSizes.map((size) => [size, 0n]));
  for (const [name, bytes] of Object.entries(amounts)) {
    const size = hugePageResource(name);
    if (size !== undefined && limits.has(size)) limits.set(size, (limits.get(size) ?? 0n) + bytes);
  }
  return Object.fromEntries(limits);
}

/** What the pod's own cgroup is set to; what is undefined is left as the kernel has it. */
export interface PodCgroupLimits {
  readonly cpuShares: number;
  /** Microseconds per period; −1 means none. */
  readonly cpuQuota?: number;
  readonly cpuPeriod?: number;
  /** Bytes. */
  readonly memoryLimit?: bigint;
  readonly pidsLimit?: number;
  /** Bytes by page size (`2MB`). */
  readonly hugepages: Record<string, bigint>;
}

export interface PodCgroupOptions {
  /** False when CFS quota is off, or the pod owns exclusive CPUs. */
  readonly cpuCfsQuota: boolean;
  /** Default 100000. */
  readonly cpuPeriodUs?: number;
  /** −1 or 0: none. */
  readonly podPidsLimit?: number;
  /** The node's huge page sizes in the kernel's words, such as `2MB`. */
  readonly hugePageSizes?: readonly string[];
}

/** The limits of a pod's cgroup (runtime-contract.md section 6). Throws BadPod on a bad quantity. */
export function podCgroupLimits(pod: BoundPod, options: PodCgroupOptions): PodCgroupLimits {
  const requests = podRequests(pod);
  const limits = podLimits(pod);
  const period = options.cpuPeriodUs ?? defaultCpuPeriodUs;
  const qos = qosClass(pod);
  const pids = options.podPidsLimit ?? 0;
  const rest = {
    ...(pids > 0 ? { pidsLimit: pids } : {}),
    hugepages: hugePageLimits(requests, options.hugePageSizes ?? []),
  };
  if (qos === "BestEffort") return { cpuShares: minCpuShares, ...rest };
  const capped = (name: "cpu" | "memory") =>
    qos === "Guaranteed" || (podLevel(pod, "limits")?.get(name) ?? 0n) !== 0n ||
    [...pod.spec.containers, ...pod.spec.initContainers ?? []]
      .every((c) => (containerNanos(pod, c, "limits").get(name) ?? 0n) !== 0n);
  const quota = options.cpuCfsQuota ? cpuQuota(limits.cpu ?? 0n, period) : -1;
  return {
    cpuShares: cpuShares(requests.cpu ?? 0n),
    ...(capped("cpu") ? { cpuQuota: quota, cpuPeriod: period } : {}),
    ...(capped("memory") ? { memoryLimit: limits.memory ?? 0n } : {}),
    ...rest,
  };
}

/** Shares of the QoS groups: Burstable has the sum of its pods' CPU requests, BestEffort the least. Throws BadPod. */
export function qosShares(pods: readonly BoundPod[]): { burstable: number; besteffort: number } {
  const milli = pods.filter((pod) => qosClass(pod) === "Burstable")
    .reduce((sum, pod) => sum + (podRequests(pod).cpu ?? 0n), 0n);
  return { burstable: cpuShares(milli), besteffort: minCpuShares };
}

/**
 * The OOM score adjustment of a container's processes (runtime-contract.md section 5.2).
 * @param nodeMemory the node's memory in bytes; must be more than 0
 */
export function oomScoreAdj(pod: BoundPod, container: Container, nodeMemory: bigint | number): number {
  if (isCritical(pod) && pod.spec.priorityClassName === "system-node-critical") return guaranteedOom;
  const qos = qosClass(pod);
  if (qos === "Guaranteed") return guaranteedOom;
  if (qos === "BestEffort") return bestEffortOom;
  const capacity = BigInt(nodeMemory);
  if (capacity <= 0n) throw new KubeletError("Internal", `node memory is ${nodeMemory} bytes; it must be known`);
  const memory = (c: Container) => toAmounts(containerNanos(pod, c, "requests")).memory ?? 0n;
  const share = unassignedShare(pod);
  const score = (bytes: bigint) => 1000n - 1000n * (bytes + share) / capacity;
  let adjust = score(memory(container));
  const sidecar = container.restartPolicy === "Always" &&
    (pod.spec.initContainers ?? []).some((c) => c.name === container.name);
  if (sidecar && pod.spec.containers.length > 0) {
    // A sidecar must not die before the containers that it serves.
    const least = pod.spec.containers.map(memory).reduce((a, b) => a < b ? a : b);
    const limit = score(least);
    if (limit < adjust) adjust = limit;
  }
  return clamp(adjust, 1000 + guaranteedOom, bestEffortOom - 1);
}

/** The part of the pod-level memory request that no container claims, split evenly; bytes. */
function unassignedShare(pod: BoundPod): bigint {
  const level = podLevel(pod, "requests");
  const total = toAmounts(level ?? new Map()).memory ?? 0n;
  if (total === 0n) return 0n;
  const claimed = toAmounts(sumContainers(pod, "requests")).memory ?? 0n;
  const containers = pod.spec.containers.length + (pod.spec.initContainers ?? []).length;
  return containers === 0 ? 0n : (total - claimed) / BigInt(containers);
}
