import { cpuWeightOf } from "../../mod/pod/resources.ts";

/** What a group is to be set to; undefined fields are left as they are. */
export interface GroupLimits {
  readonly cpuShares?: number;
  /** Microseconds per period; −1 for none, 0 to leave it. */
  readonly cpuQuota?: number;
  readonly cpuPeriod?: number;
  /** Bytes; 0 to leave it. */
  readonly memoryLimit?: bigint;
  /** Bytes that the group keeps, in any case and as long as others have some; cgroup v2 alone has that. */
  readonly memoryMin?: bigint;
  readonly memoryLow?: bigint;
  readonly pidsLimit?: number;
  /** A CPU list such as `0-3`. */
  readonly cpus?: string;
  /** Bytes by page size (`2MB`). */
  readonly hugepages?: Readonly<Record<string, bigint>>;
}

/** One value to write: into which controller's file. */
export interface ControlWrite {
  readonly controller: string;
  readonly file: string;
  readonly value: string;
}

/** What to write for the limits, in order (runtime-contract.md sections 5.1 and 6). */
export function controlWrites(version: 1 | 2, limits: GroupLimits): ControlWrite[] {
  const writes: ControlWrite[] = [];
  const add = (controller: string, file: string, value: string | number | bigint) =>
    writes.push({ controller, file: `${controller}.${file}`, value: String(value) });
  const { cpuShares, cpuQuota = 0, cpuPeriod = 0, memoryLimit, pidsLimit, cpus, hugepages } = limits;
  if (cpus !== undefined && cpus !== "") add("cpuset", "cpus", cpus);
  if (cpuShares !== undefined && cpuShares > 0) {
    if (version === 1) add("cpu", "shares", cpuShares);
    else add("cpu", "weight", cpuWeightOf(cpuShares));
  }
  if (version === 1) {
    if (cpuPeriod !== 0) add("cpu", "cfs_period_us", cpuPeriod);
    if (cpuQuota !== 0) add("cpu", "cfs_quota_us", cpuQuota);
  } else if (cpuQuota !== 0 || cpuPeriod !== 0) {
    add("cpu", "max", `${cpuQuota > 0 ? cpuQuota : "max"} ${cpuPeriod || 100_000}`);
  }
  if (memoryLimit !== undefined && memoryLimit !== 0n) {
    if (version === 1) add("memory", "limit_in_bytes", memoryLimit);
    else add("memory", "max", memoryLimit < 0n ? "max" : memoryLimit);
  }
  if (version === 2) {
    if (limits.memoryMin !== undefined) add("memory", "min", limits.memoryMin);
    if (limits.memoryLow !== undefined) add("memory", "low", limits.memoryLow);
  }
  if (pidsLimit !== undefined && pidsLimit !== 0) add("pids", "max", pidsLimit < 0 ? "max" : pidsLimit);
  for (const [size, bytes] of Object.entries(hugepages ?? {})) {
    add("hugetlb", version === 1 ? `${size}.limit_in_bytes` : `${size}.max`, bytes);
  }
  return writes;
}

/** A CPU list (`0-3,8`) as the little-endian bit mask that systemd's AllowedCPUs takes. */
export function cpuMask(list: string): number[] {
  const mask: number[] = [];
  for (const range of list.trim().split(",").filter((r) => r !== "")) {
    const [first, last = first] = range.split("-").map(Number);
    if (first === undefined || last === undefined || !(first >= 0 && last < 65536)) continue;
    for (let cpu = first; cpu <= last; cpu++) {
      const at = cpu >> 3;
      while (mask.length <= at) mask.push(0);
      mask[at] = (mask[at] ?? 0) | (1 << (cpu & 7));
    }
  }
  return mask;
}
