import { finished, type GroupSettings, type GroupSource, processesIn } from "./group_source.ts";
import { count, limitOf, lookUp, parseIoStat, parsePsi } from "./parse.ts";
import type { Detail, GroupSample, MemorySample, Psi } from "./types.ts";

/** Reads a group of cgroup v2 (see GroupReader.sample). */
export function readUnified(source: GroupSource, path: string, detail: Detail, at: number): GroupSample | undefined {
  const root = path === "/";
  const read = (file: string, wanted = true) => wanted ? source.read({ controller: "memory", path, file }) : undefined;
  const cpuText = read("cpu.stat"), statText = read("memory.stat");
  if (cpuText === undefined && statText === undefined) return undefined;
  const cpu = lookUp(cpuText ?? "");
  const stat = statText === undefined ? undefined : lookUp(statText);
  const settings = root ? { cpu: {} } : source.settings(path, () => settingsUnified(read));
  // No file tells the root's usage: it is what the pages of all groups make up.
  const usage = root ? (stat?.("anon") ?? 0) + (stat?.("file") ?? 0) : count(read("memory.current"));
  const swap = root ? nodeSwap(source.host) : count(read("memory.swap.current"));
  const most = detail === "cadvisor", more = detail !== "resource";
  const happened = lookUp(read("memory.events", most && !root) ?? "");
  const micro = (name: string) => {
    const value = cpu(name);
    return value === undefined ? undefined : value * 1000;
  };
  const { memoryLimit, memoryReservation, swapLimit, pidsLimit } = settings as GroupSettings;
  const procs = read("cgroup.procs", most);
  const io = read("io.stat", most);
  return {
    at,
    ...finished<GroupSample>({
      cpuNs: micro("usage_usec"),
      userNs: micro("user_usec"),
      systemNs: micro("system_usec"),
      memory: usage === undefined || !stat ? undefined : {
        ...memoryUnified(usage, stat),
        ...finished<MemorySample>({
          limit: memoryLimit,
          reservation: memoryReservation,
          maxUsage: count(read("memory.peak", most && !root)),
          failCount: happened("max"),
          kernelUsage: most ? stat("kernel") : undefined,
        }),
      },
      swap: swap === undefined ? undefined : { usage: swap, ...(swapLimit === undefined ? {} : { limit: swapLimit }) },
      pids: count(read("pids.current", more)),
      pidsLimit: most ? pidsLimit : undefined,
      processes: procs === undefined ? undefined : processesIn(procs),
      oomKills: happened("oom_kill"),
      psi: more ? pressures(source, read, root) : undefined,
      cpu: most ? settings.cpu : undefined,
      throttling: settings.cpu.quotaUs === undefined || !most ? undefined : {
        periods: cpu("nr_periods") ?? 0,
        throttledPeriods: cpu("nr_throttled") ?? 0,
        throttledNs: micro("throttled_usec") ?? 0,
        bursts: cpu("nr_bursts") ?? 0,
        burstNs: micro("burst_usec") ?? 0,
      },
      devices: io === undefined ? undefined : parseIoStat(io),
    }),
  };
}

type Read = (file: string) => string | undefined;

function settingsUnified(read: Read): GroupSettings {
  const [quota, period] = read("cpu.max")?.trim().split(" ") ?? [];
  const reservation = limitOf(read("memory.low"));
  return {
    cpu: finished({ shares: sharesOf(count(read("cpu.weight"))), periodUs: count(period), quotaUs: count(quota) }),
    ...finished<Omit<GroupSettings, "cpu">>({
      memoryLimit: limitOf(read("memory.max")),
      memoryReservation: reservation === 0 ? undefined : reservation,
      swapLimit: limitOf(read("memory.swap.max")),
      pidsLimit: limitOf(read("pids.max")),
    }),
  };
}

/** The root group has no pressure of its own before Linux 6: the machine's is the same. */
function pressures({ host }: GroupSource, read: Read, root: boolean): GroupSample["psi"] {
  const of = (kind: string): Psi | undefined => {
    const own = read(`${kind}.pressure`);
    return parsePsi(own ?? (root ? host.readTextNow(`${host.procRoot}/pressure/${kind}`) : undefined));
  };
  const psi = finished({ cpu: of("cpu"), memory: of("memory"), io: of("io") });
  return Object.keys(psi).length > 0 ? psi : undefined;
}

function memoryUnified(usage: number, stat: (name: string) => number | undefined): MemorySample {
  const of = (name: string) => stat(name) ?? 0;
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
function nodeSwap(host: GroupSource["host"]): number | undefined {
  const text = host.readTextNow(`${host.procRoot}/meminfo`) ?? "";
  const kib = (name: string) => count(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(text)?.[1]);
  const [total, free] = [kib("SwapTotal"), kib("SwapFree")];
  return total === undefined || free === undefined ? undefined : (total - free) * 1024;
}

/** CPU shares that a weight stands for; weights 1…10000 lie over shares 2…262144. */
function sharesOf(weight: number | undefined): number | undefined {
  return weight === undefined ? undefined : Math.round(2 + (weight - 1) * 262_142 / 9999);
}
