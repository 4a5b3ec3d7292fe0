import { finished, type GroupSettings, type GroupSource, processesIn } from "./group_source.ts";
import { count, limitOf, lookUp, parseBlkio } from "./parse.ts";
import type { Detail, GroupSample, MemorySample, Throttling } from "./types.ts";

/** The kernel's clock ticks in a second, as user space sees them on every Linux. */
const nsPerTick = 1e9 / 100;

/** Reads a group of cgroup v1 (see GroupReader.sample). */
export function readV1(source: GroupSource, path: string, detail: Detail, at: number): GroupSample | undefined {
  const read = (controller: string, file: string) => source.read({ controller, path, file });
  const usage = read("cpuacct", "cpuacct.usage");
  const memoryUsage = read("memory", "memory.usage_in_bytes");
  if (usage === undefined && memoryUsage === undefined) return undefined;
  const settings = source.settings(path, () => settingsV1(read));
  const stat = read("memory", "memory.stat") ?? "";
  const most = detail === "cadvisor";
  const memory = memoryV1(memoryUsage, stat, settings, most ? read : undefined);
  const swapLimit = settings.swapLimit;
  const base = {
    at,
    cpuNs: count(usage),
    memory,
    swap: memory && { usage: swapIn(stat), ...(swapLimit === undefined ? {} : { limit: swapLimit }) },
    pids: detail === "resource" ? undefined : count(read("pids", "pids.current")),
  };
  if (!most) return { at, ...finished<GroupSample>(base) };
  const times = lookUp(read("cpuacct", "cpuacct.stat") ?? "");
  const ns = (key: string) => {
    const passed = times(key);
    return passed === undefined ? undefined : passed * nsPerTick;
  };
  const procs = read("memory", "cgroup.procs");
  const oom = read("memory", "memory.oom_control");
  // With the groups below, where the kernel tells that.
  const blkio = (name: string) => read("blkio", `${name}_recursive`) ?? read("blkio", name);
  const bytes = blkio("blkio.throttle.io_service_bytes");
  const moved = bytes?.includes("Read") ? blkio("blkio.throttle.io_serviced") ?? "" : "";
  return {
    at,
    ...finished<GroupSample>({
      ...base,
      userNs: ns("user"),
      systemNs: ns("system"),
      cpu: settings.cpu,
      // The kernel counts periods of groups with a quota only.
      throttling: settings.cpu.quotaUs === undefined ? undefined : throttlingV1(read("cpu", "cpu.stat") ?? ""),
      pidsLimit: settings.pidsLimit,
      processes: procs === undefined ? undefined : processesIn(procs),
      oomKills: oom === undefined ? undefined : lookUp(oom)("oom_kill"),
      devices: bytes === undefined ? undefined : parseBlkio(bytes, moved),
    }),
  };
}

type Read = (controller: string, file: string) => string | undefined;

function settingsV1(read: Read): GroupSettings {
  const limit = (controller: string, file: string) => limitOf(read(controller, file));
  return {
    cpu: finished({
      shares: count(read("cpu", "cpu.shares")),
      periodUs: count(read("cpu", "cpu.cfs_period_us")),
      quotaUs: count(read("cpu", "cpu.cfs_quota_us")),
    }),
    ...finished<Omit<GroupSettings, "cpu">>({
      memoryLimit: limit("memory", "memory.limit_in_bytes"),
      memoryReservation: limit("memory", "memory.soft_limit_in_bytes"),
      swapLimit: limit("memory", "memory.memsw.limit_in_bytes"),
      pidsLimit: limit("pids", "pids.max"),
    }),
  };
}

function throttlingV1(text: string): Throttling {
  const of = lookUp(text);
  return {
    periods: of("nr_periods") ?? 0,
    throttledPeriods: of("nr_throttled") ?? 0,
    throttledNs: of("throttled_time") ?? 0,
    bursts: of("nr_bursts") ?? 0,
    burstNs: of("burst_time") ?? 0,
  };
}

function swapIn(stat: string): number {
  const of = lookUp(stat);
  return of("total_swap") ?? of("swap") ?? 0;
}

/** @param read for what only the full page tells */
function memoryV1(
  usageText: string | undefined,
  stat: string,
  { memoryLimit, memoryReservation }: GroupSettings,
  read: Read | undefined,
): MemorySample | undefined {
  const usage = count(usageText);
  if (usage === undefined) return undefined;
  const of = lookUp(stat);
  // With the groups below; a kernel that does not tell those has no hierarchy.
  const all = (name: string) => of(`total_${name}`) ?? of(name) ?? 0;
  const inactiveFile = all("inactive_file");
  return {
    usage,
    workingSet: Math.max(0, usage - inactiveFile),
    rss: all("rss"),
    cache: all("cache"),
    mappedFile: all("mapped_file"),
    activeFile: all("active_file"),
    inactiveFile,
    pageFaults: of("pgfault") ?? 0,
    majorPageFaults: of("pgmajfault") ?? 0,
    allPageFaults: all("pgfault"),
    allMajorPageFaults: all("pgmajfault"),
    ...finished<MemorySample>({
      limit: memoryLimit,
      reservation: memoryReservation,
      maxUsage: count(read?.("memory", "memory.max_usage_in_bytes")),
      // Without a limit none can be hit.
      failCount: read && (memoryLimit === undefined ? 0 : count(read("memory", "memory.failcnt"))),
      kernelUsage: count(read?.("memory", "memory.kmem.usage_in_bytes")),
    }),
  };
}
