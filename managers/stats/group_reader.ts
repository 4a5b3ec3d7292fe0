import type { Host } from "../../mod/base/host.ts";
import { errnoOf, isMissing } from "../../mod/base/host_error.ts";
import { count, flatKeys, limitOf, parseBlkio, parseIoStat, parsePsi } from "./parse.ts";
import type { Detail, GroupSample, MemorySample } from "./types.ts";

/** The cgroup hierarchies of the machine, as managers/cgroups finds them. */
export interface StatHierarchies {
  readonly version: 1 | 2;
  /** Controller → directory of its hierarchy. */
  readonly roots: ReadonlyMap<string, string>;
}

type Files = Pick<Host, "readText" | "cgroupRoot" | "procRoot">;

/** Reads a file of a group; undefined when the group or the file is not there. */
async function textOf(host: Files, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await host.readText(path);
  } catch (thrown) {
    // ENODEV: the group was removed; ENOTSUP: the kernel was told to do without (PSI).
    const code = errnoOf(thrown);
    if (isMissing(thrown) || code === "ENODEV" || code === "EOPNOTSUPP" || code === "ENOTSUP") return undefined;
    throw thrown;
  }
}

/** The kernel's clock ticks in a second, as user space sees them on every Linux. */
const ticks = 100;

/**
 * Reads one control group (metrics.md section 9, rules). `path` is below the hierarchies, `/` for the root. Undefined
 * when there is no such group. Rejects with code Host when a file is there but cannot be read.
 */
export function readGroup(options: {
  host: Files;
  hierarchies: StatHierarchies;
  path: string;
  detail: Detail;
  now: () => number;
}): Promise<GroupSample | undefined> {
  return options.hierarchies.version === 2 ? readUnified(options) : readV1(options);
}

type ReadOptions = Parameters<typeof readGroup>[0];

async function readV1({ host, hierarchies, path, detail, now }: ReadOptions): Promise<GroupSample | undefined> {
  const suffix = path === "/" ? "" : path;
  const read = (controller: string, file: string, wanted = true): Promise<string | undefined> => {
    const base = hierarchies.roots.get(controller);
    return textOf(host, base === undefined || !wanted ? undefined : `${base}${suffix}/${file}`);
  };
  const more = detail !== "resource", most = detail === "cadvisor";
  const at = now();
  const [usage, memoryUsage, stat, memsw, limit, pids, ...rest] = await Promise.all([
    read("cpuacct", "cpuacct.usage"),
    read("memory", "memory.usage_in_bytes"),
    read("memory", "memory.stat"),
    read("memory", "memory.memsw.limit_in_bytes"),
    read("memory", "memory.limit_in_bytes", more),
    read("pids", "pids.current", more),
    read("cpuacct", "cpuacct.stat", most),
    read("cpu", "cpu.shares", most),
    read("cpu", "cpu.cfs_period_us", most),
    read("cpu", "cpu.cfs_quota_us", most),
    read("memory", "memory.max_usage_in_bytes", most),
    read("memory", "memory.failcnt", most),
    read("memory", "memory.kmem.usage_in_bytes", most),
    read("memory", "memory.oom_control", most),
    read("blkio", "blkio.throttle.io_service_bytes", most),
    read("blkio", "blkio.throttle.io_serviced", most),
    read("pids", "pids.max", most),
  ]);
  if (usage === undefined && memoryUsage === undefined) return undefined;
  const [acct, shares, period, quota, maxUsage, failCount, kernel, oom, ioBytes, ioServed, pidsMax] = rest;
  const cpuNs = count(usage);
  const memory = memoryV1(memoryUsage, stat, { limit, maxUsage, failCount, kernel });
  const times = flatKeys(acct ?? "");
  const [user, system] = [times.get("user"), times.get("system")];
  const quotaUs = count(quota);
  // The kernel counts periods of groups with a quota only.
  const throttled = quotaUs === undefined ? undefined : flatKeys(await read("cpu", "cpu.stat") ?? "");
  const oomKills = flatKeys(oom ?? "").get("oom_kill");
  const numbers = { shares: count(shares), periodUs: count(period), quotaUs };
  const pidCount = count(pids), pidsLimit = limitOf(pidsMax);
  const swapLimit = limitOf(memsw);
  return {
    at,
    ...given({
      cpuNs,
      userNs: user === undefined ? undefined : user * (1e9 / ticks),
      systemNs: system === undefined ? undefined : system * (1e9 / ticks),
      memory,
      pids: pidCount,
      pidsLimit,
      oomKills,
      swap: memory ? { usage: memory.swap, ...given({ limit: swapLimit }) } : undefined,
      cpu: most ? given(numbers) : undefined,
      throttling: throttled && {
        periods: throttled.get("nr_periods") ?? 0,
        throttledPeriods: throttled.get("nr_throttled") ?? 0,
        throttledNs: throttled.get("throttled_time") ?? 0,
        bursts: throttled.get("nr_bursts") ?? 0,
        burstNs: throttled.get("burst_time") ?? 0,
      },
      devices: ioBytes === undefined ? undefined : parseBlkio(ioBytes, ioServed ?? ""),
    }),
  };
}

type Texts<K extends string> = Readonly<Record<K, string | undefined>>;

function memoryV1(
  usageText: string | undefined,
  statText: string | undefined,
  more: Texts<"limit" | "maxUsage" | "failCount" | "kernel">,
): MemorySample & { swap: number } | undefined {
  const usage = count(usageText);
  if (usage === undefined) return undefined;
  const stat = flatKeys(statText ?? "");
  // With the groups below; a kernel that does not tell those has no hierarchy.
  const all = (name: string) => stat.get(`total_${name}`) ?? stat.get(name) ?? 0;
  const inactiveFile = all("inactive_file");
  return {
    usage,
    workingSet: Math.max(0, usage - inactiveFile),
    rss: all("rss"),
    cache: all("cache"),
    mappedFile: all("mapped_file"),
    activeFile: all("active_file"),
    inactiveFile,
    pageFaults: stat.get("pgfault") ?? 0,
    majorPageFaults: stat.get("pgmajfault") ?? 0,
    allPageFaults: all("pgfault"),
    allMajorPageFaults: all("pgmajfault"),
    swap: all("swap"),
    ...given({
      limit: limitOf(more.limit),
      maxUsage: count(more.maxUsage),
      failCount: count(more.failCount),
      kernelUsage: count(more.kernel),
    }),
  };
}

async function readUnified({ host, hierarchies, path, detail, now }: ReadOptions): Promise<GroupSample | undefined> {
  const root = path === "/";
  const base = `${hierarchies.roots.get("memory") ?? host.cgroupRoot}${root ? "" : path}`;
  const read = (file: string, wanted = true) => textOf(host, wanted ? `${base}/${file}` : undefined);
  // The root group has no pressure of its own before Linux 6: the machine's is the same.
  const pressure = async (kind: string) => {
    if (detail === "resource") return undefined;
    const own = await read(`${kind}.pressure`);
    return parsePsi(own ?? (root ? await textOf(host, `${host.procRoot}/pressure/${kind}`) : undefined));
  };
  const more = detail !== "resource", most = detail === "cadvisor";
  const at = now();
  const [cpuText, usageText, statText, swapText, swapMax, limit, pids, psiCpu, psiMemory, psiIo, ...rest] =
    await Promise.all([
      read("cpu.stat"),
      read("memory.current", !root),
      read("memory.stat"),
      read("memory.swap.current", !root),
      read("memory.swap.max", !root),
      read("memory.max", more && !root),
      read("pids.current", more),
      pressure("cpu"),
      pressure("memory"),
      pressure("io"),
      read("cpu.weight", most && !root),
      read("cpu.max", most && !root),
      read("memory.peak", most && !root),
      read("memory.events", most && !root),
      read("io.stat", most),
      read("pids.max", most && !root),
    ]);
  if (cpuText === undefined && statText === undefined) return undefined;
  const [weight, max, peak, events, io, pidsMax] = rest;
  const cpu = flatKeys(cpuText ?? "");
  const stat = statText === undefined ? undefined : flatKeys(statText);
  // No file tells the root's usage: it is what the pages of all groups make up.
  const usage = root ? (stat?.get("anon") ?? 0) + (stat?.get("file") ?? 0) : count(usageText);
  const swap = root ? await nodeSwap(host) : count(swapText);
  const [quota, period] = max?.trim().split(" ") ?? [];
  const quotaUs = count(quota);
  const happened = flatKeys(events ?? "");
  const micro = (name: string) => scaled(cpu.get(name), 1000);
  const psi = given({ cpu: psiCpu, memory: psiMemory, io: psiIo });
  return {
    at,
    ...given({
      cpuNs: micro("usage_usec"),
      userNs: micro("user_usec"),
      systemNs: micro("system_usec"),
      memory: usage === undefined || !stat ? undefined : {
        ...memoryUnified(usage, stat),
        ...given({
          limit: limitOf(limit),
          maxUsage: count(peak),
          failCount: happened.get("max"),
          kernelUsage: stat.get("kernel"),
        }),
      },
      swap: swap === undefined ? undefined : { usage: swap, ...given({ limit: limitOf(swapMax) }) },
      pids: count(pids),
      pidsLimit: limitOf(pidsMax),
      oomKills: happened.get("oom_kill"),
      psi: Object.keys(psi).length > 0 ? psi : undefined,
      cpu: most ? given({ shares: sharesOf(count(weight)), periodUs: count(period), quotaUs }) : undefined,
      throttling: quotaUs === undefined ? undefined : {
        periods: cpu.get("nr_periods") ?? 0,
        throttledPeriods: cpu.get("nr_throttled") ?? 0,
        throttledNs: micro("throttled_usec") ?? 0,
        bursts: cpu.get("nr_bursts") ?? 0,
        burstNs: micro("burst_usec") ?? 0,
      },
      devices: io === undefined ? undefined : parseIoStat(io),
    }),
  };
}

function memoryUnified(usage: number, stat: ReadonlyMap<string, number>): MemorySample {
  const of = (name: string) => stat.get(name) ?? 0;
  const inactiveFile = of("inactive_file");
  return {
    usage,
    workingSet: Math.max(0, usage - inactiveFile),
    rss: of("anon"),
    cache: of("file"),
    mappedFile: of("file_mapped"),
    activeFile: of("active_file"),
    inactiveFile,
    pageFaults: of("pgfault"),
    majorPageFaults: of("pgmajfault"),
    allPageFaults: of("pgfault"),
    allMajorPageFaults: of("pgmajfault"),
  };
}

/** Swap in use on the machine, bytes. */
async function nodeSwap(host: Files): Promise<number | undefined> {
  const text = await textOf(host, `${host.procRoot}/meminfo`) ?? "";
  const kib = (name: string) => count(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(text)?.[1]);
  const [total, free] = [kib("SwapTotal"), kib("SwapFree")];
  return total === undefined || free === undefined ? undefined : (total - free) * 1024;
}

/** CPU shares that a weight stands for; weights 1…10000 lie over shares 2…262144. */
function sharesOf(weight: number | undefined): number | undefined {
  return weight === undefined ? undefined : Math.round(2 + (weight - 1) * 262_142 / 9999);
}

function scaled(value: number | undefined, by: number): number | undefined {
  return value === undefined ? undefined : value * by;
}

/** The object without what is undefined. */
function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
