import type { Host } from "../../base/host.ts";
import type { MetricsPage, MetricType } from "./text.ts";

/** Memory that the program's own collector looks after, bytes. */
export interface HeapFacts {
  readonly heapTotal: number;
  readonly heapUsed: number;
  /** Held outside of it by its objects. */
  readonly external: number;
}

/** What the page about the process is made of. */
export interface ProcessOptions {
  readonly host: Pick<Host, "readTextNow" | "readDir" | "procRoot">;
  readonly heap?: () => HeapFacts;
  /** Tasks of the agent that go on. */
  readonly tasks?: () => number;
  /** Such as `deno2.9.3`. */
  readonly runtime?: string;
}

export const startHelp = "When the agent started, seconds since the epoch";
/** What Linux shows to programs, on every machine that this agent runs on. */
const ticks = 100, pageBytes = 4096;

/** Fields of /proc/self/stat from the third on: the name before them may hold anything. */
function statOf(host: ProcessOptions["host"]): readonly number[] {
  const text = host.readTextNow(`${host.procRoot}/self/stat`) ?? "";
  return text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
}

/** When the process started, seconds since the epoch. */
export function startOf(host: ProcessOptions["host"], stat: readonly number[] = statOf(host)): number | undefined {
  const [, boot] = /^btime (\d+)$/m.exec(host.readTextNow(`${host.procRoot}/stat`) ?? "") ?? [];
  const ticksAfter = stat[19];
  return boot === undefined || ticksAfter === undefined ? undefined : Number(boot) + ticksAfter / ticks;
}

/** Puts in what the kernel tells of the agent's process, and what of the Go runtime's metrics has a counterpart here. */
export async function writeProcess(page: MetricsPage, options: ProcessOptions): Promise<void> {
  const { host } = options;
  const self = `${host.procRoot}/self`;
  const put = (name: string, type: MetricType, help: string, value: number | undefined, labels = {}) => {
    page.family(name, type, help);
    page.sample(name, labels, value);
  };
  const stat = statOf(host);
  const files = await host.readDir(`${self}/fd`);
  const limits = host.readTextNow(`${self}/limits`) ?? "";
  const limit = (name: string) => {
    const [, text] = new RegExp(`^${name}\\s+(\\S+)`, "m").exec(limits) ?? [];
    return text === undefined ? undefined : text === "unlimited" ? Infinity : Number(text);
  };
  const [user = 0, system = 0] = stat.slice(11, 13);
  const resident = (stat[21] ?? 0) * pageBytes;
  put("process_cpu_seconds_total", "counter", "CPU time of the agent, seconds", (user + system) / ticks);
  put("process_virtual_memory_bytes", "gauge", "Address space of the agent, bytes", stat[20] ?? 0);
  put("process_resident_memory_bytes", "gauge", "Resident memory of the agent, bytes", resident);
  put("process_open_fds", "gauge", "Files that the agent has open", files.length);
  put("process_max_fds", "gauge", "Files that the agent may have open", limit("Max open files"));
  put("process_virtual_memory_max_bytes", "gauge", "Address space that it may have, bytes", limit("Max address space"));
  put("process_start_time_seconds", "gauge", startHelp, startOf(host, stat));
  const network = networkOf(host.readTextNow(`${self}/net/dev`) ?? "");
  put(
    "process_network_receive_bytes_total",
    "counter",
    "Bytes that the agent's network has received",
    network.received,
  );
  put("process_network_transmit_bytes_total", "counter", "Bytes that the agent's network has sent", network.sent);
  writeGo(page, options, { threads: stat[17], resident });
}

/** Counters of all interfaces of the process's network. */
function networkOf(text: string): { received: number; sent: number } {
  let received = 0, sent = 0;
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(":");
    if (at < 0) continue;
    const fields = line.slice(at + 1).trim().split(/\s+/).map(Number);
    received += fields[0] || 0;
    sent += fields[8] || 0;
  }
  return { received, sent };
}

/**
 * The Go names that dashboards of kubelets ask for, with what stands for them in this program: V8's heap for Go's, tasks
 * for goroutines. docs/metrics.md says so to readers; all other Go names are left out.
 */
function writeGo(
  page: MetricsPage,
  { heap, tasks, runtime }: ProcessOptions,
  { threads, resident }: { threads: number | undefined; resident: number },
): void {
  const put = (name: string, help: string, value: number | undefined, labels = {}) => {
    page.family(name, "gauge", help);
    page.sample(name, labels, value);
  };
  put("go_info", "What the agent runs on, which is not Go; always 1", 1, { version: runtime ?? "" });
  put("go_threads", "Threads of the agent", threads);
  put("go_sched_threads_total_threads", "Threads of the agent", threads);
  put("go_goroutines", "Tasks of the agent that go on", tasks?.());
  put("go_sched_goroutines_goroutines", "Tasks of the agent that go on", tasks?.());
  const facts = heap?.();
  if (!facts) return;
  const { heapTotal, heapUsed, external } = facts;
  put("go_memstats_alloc_bytes", "Heap in use, bytes", heapUsed);
  put("go_memstats_heap_alloc_bytes", "Heap in use, bytes", heapUsed);
  put("go_memstats_heap_inuse_bytes", "Heap in use, bytes", heapUsed);
  put("go_memstats_heap_idle_bytes", "Heap that is free, bytes", Math.max(0, heapTotal - heapUsed));
  put("go_memstats_heap_sys_bytes", "Heap, bytes", heapTotal);
  put("go_memstats_other_sys_bytes", "Memory held by objects outside of the heap, bytes", external);
  put("go_memstats_sys_bytes", "Resident memory, bytes", resident);
  put("go_memory_classes_heap_objects_bytes", "Heap in use, bytes", heapUsed);
  put("go_memory_classes_heap_free_bytes", "Heap that is free, bytes", Math.max(0, heapTotal - heapUsed));
  put("go_memory_classes_total_bytes", "Resident memory, bytes", resident);
}
