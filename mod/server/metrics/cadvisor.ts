import type { GroupSample, NetworkSample, StatsSnapshot } from "../../../managers/stats/types.ts";
import { type Labels, MetricsPage, type MetricType } from "./text.ts";

/** Facts of the machine that do not change, for the labels of its metrics. */
export interface MachineFacts {
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osVersion: string;
  /** Cores that are no siblings of one another, and packages; undefined when the kernel does not tell. */
  readonly physicalCores?: number;
  readonly sockets?: number;
}

const families: Readonly<Record<string, readonly [MetricType, string]>> = {
  cadvisor_version_info: ["gauge", "Versions of the kernel and the system; always 1"],
  container_last_seen: ["gauge", "When the container was last looked at, seconds since the epoch"],
  container_start_time_seconds: ["gauge", "When the container was made, seconds since the epoch"],
  container_cpu_user_seconds_total: ["counter", "CPU time in user mode, seconds"],
  container_cpu_system_seconds_total: ["counter", "CPU time in the kernel, seconds"],
  container_cpu_usage_seconds_total: ["counter", "CPU time, seconds"],
  container_cpu_cfs_periods_total: ["counter", "Periods of the CPU quota that have passed"],
  container_cpu_cfs_throttled_periods_total: ["counter", "Periods in which the quota ran out"],
  container_cpu_cfs_throttled_seconds_total: ["counter", "Time held up by the quota, seconds"],
  container_cpu_cfs_burst_periods_total: ["counter", "Periods in which more than the quota was used"],
  container_cpu_cfs_burst_seconds_total: ["counter", "CPU time used above the quota, seconds"],
  container_memory_cache: ["gauge", "Page cache, bytes"],
  container_memory_rss: ["gauge", "Anonymous memory, bytes"],
  container_memory_kernel_usage: ["gauge", "Memory of the kernel, bytes"],
  container_memory_mapped_file: ["gauge", "Files mapped into memory, bytes"],
  container_memory_swap: ["gauge", "Swap, bytes"],
  container_memory_usage_bytes: ["gauge", "Memory in use, all kinds, bytes"],
  container_memory_max_usage_bytes: ["gauge", "Most memory that was ever in use, bytes"],
  container_memory_working_set_bytes: ["gauge", "Working set, bytes"],
  container_memory_total_active_file_bytes: ["gauge", "Page cache in recent use, bytes"],
  container_memory_total_inactive_file_bytes: ["gauge", "Page cache not in recent use, bytes"],
  container_memory_failcnt: ["counter", "Times that the memory limit was hit"],
  container_memory_failures_total: ["counter", "Page faults"],
  container_fs_reads_bytes_total: ["counter", "Bytes read from the device"],
  container_fs_reads_total: ["counter", "Reads that the device has done"],
  container_fs_writes_bytes_total: ["counter", "Bytes written to the device"],
  container_fs_writes_total: ["counter", "Writes that the device has done"],
  container_fs_usage_bytes: ["gauge", "Bytes of the file system that the container uses"],
  container_fs_limit_bytes: ["gauge", "Bytes that the file system has"],
  container_fs_inodes_free: ["gauge", "Inodes that are free"],
  container_fs_inodes_total: ["gauge", "Inodes that the file system has"],
  container_blkio_device_usage_total: ["counter", "Bytes that went to and from the device"],
  container_network_receive_bytes_total: ["counter", "Bytes received"],
  container_network_receive_packets_total: ["counter", "Packets received"],
  container_network_receive_packets_dropped_total: ["counter", "Packets dropped when they came in"],
  container_network_receive_errors_total: ["counter", "Errors when receiving"],
  container_network_transmit_bytes_total: ["counter", "Bytes sent"],
  container_network_transmit_packets_total: ["counter", "Packets sent"],
  container_network_transmit_packets_dropped_total: ["counter", "Packets dropped when they went out"],
  container_network_transmit_errors_total: ["counter", "Errors when sending"],
  container_threads: ["gauge", "Tasks in the group"],
  container_threads_max: ["gauge", "Tasks that the group may have; 0 for no limit"],
  container_oom_events_total: ["counter", "Processes that were killed for want of memory"],
  container_pressure_cpu_waiting_seconds_total: ["counter", "Time in which some task waited for a CPU, seconds"],
  container_pressure_cpu_stalled_seconds_total: ["counter", "Time in which no task got a CPU, seconds"],
  container_pressure_memory_waiting_seconds_total: ["counter", "Time in which some task waited for memory, seconds"],
  container_pressure_memory_stalled_seconds_total: ["counter", "Time in which all tasks waited for memory, seconds"],
  container_pressure_io_waiting_seconds_total: ["counter", "Time in which some task waited for I/O, seconds"],
  container_pressure_io_stalled_seconds_total: ["counter", "Time in which all tasks waited for I/O, seconds"],
  container_spec_cpu_period: ["gauge", "Period of the CPU quota, microseconds"],
  container_spec_cpu_quota: ["gauge", "CPU quota in a period, microseconds"],
  container_spec_cpu_shares: ["gauge", "CPU shares"],
  container_spec_memory_limit_bytes: ["gauge", "Memory limit, bytes; 0 for none"],
  container_spec_memory_swap_limit_bytes: ["gauge", "Swap limit, bytes; 0 for none"],
  container_scrape_error: ["gauge", "1 when the statistics could not be collected, else 0"],
  machine_cpu_cores: ["gauge", "Logical CPUs"],
  machine_cpu_physical_cores: ["gauge", "Cores"],
  machine_cpu_sockets: ["gauge", "CPU packages"],
  machine_memory_bytes: ["gauge", "Memory, bytes"],
  machine_swap_bytes: ["gauge", "Swap, bytes"],
  machine_scrape_error: ["gauge", "1 when the machine could not be looked at, else 0"],
};

interface Shown {
  readonly labels: Labels;
  readonly startedAt: number;
  readonly sample: GroupSample | undefined;
  readonly network?: NetworkSample | undefined;
}

/** The page /metrics/cadvisor (metrics.md section 5). @param snapshot undefined when the collection failed */
export function cadvisorPage(snapshot: StatsSnapshot | undefined, facts: MachineFacts): string {
  const page = new MetricsPage();
  for (const [name, [type, help]] of Object.entries(families)) page.family(name, type, help);
  page.sample("container_scrape_error", {}, snapshot ? 0 : 1);
  page.sample("cadvisor_version_info", {
    cadvisorRevision: "",
    cadvisorVersion: "",
    dockerVersion: "",
    kernelVersion: facts.kernelVersion,
    osVersion: facts.osVersion,
  }, 1);
  machine(page, snapshot, facts);
  for (const shown of snapshot ? groupsOf(snapshot) : []) container(page, shown);
  for (const { name, namespace, containers } of snapshot?.pods ?? []) {
    for (const { name: own, id, image, group, rootfs } of containers) {
      if (group === undefined || !rootfs) continue;
      const labels = { container: own, device: "", id: group, image, name: id, namespace, pod: name };
      page.sample("container_fs_usage_bytes", labels, rootfs.used, rootfs.at);
      page.sample("container_fs_limit_bytes", labels, rootfs.capacity, rootfs.at);
      page.sample("container_fs_inodes_free", labels, rootfs.inodesFree, rootfs.at);
      page.sample("container_fs_inodes_total", labels, rootfs.inodes, rootfs.at);
    }
  }
  return page.text();
}

function machine(page: MetricsPage, snapshot: StatsSnapshot | undefined, facts: MachineFacts): void {
  page.sample("machine_scrape_error", {}, snapshot ? 0 : 1);
  const labels = { boot_id: facts.bootId, machine_id: facts.machineId, system_uuid: facts.systemUuid };
  page.sample("machine_cpu_physical_cores", labels, facts.physicalCores);
  page.sample("machine_cpu_sockets", labels, facts.sockets);
  if (!snapshot) return;
  const { cpus, memoryCapacity, swapCapacity } = snapshot.node;
  page.sample("machine_cpu_cores", labels, cpus);
  page.sample("machine_memory_bytes", labels, memoryCapacity);
  page.sample("machine_swap_bytes", labels, swapCapacity);
}

function* groupsOf({ node, pods }: StatsSnapshot): Iterable<Shown> {
  const base = { container: "", image: "", name: "", namespace: "", pod: "" };
  const labelled = (id: string, more: Labels) => sorted({ ...base, ...more, id });
  yield { labels: labelled("/", {}), startedAt: node.startedAt, sample: node.sample, network: node.network };
  for (const { group, startedAt, sample } of node.system) yield { labels: labelled(group, {}), startedAt, sample };
  for (const { name: pod, namespace, group, startedAt, sample, sandbox, network, containers } of pods) {
    if (group !== undefined) yield { labels: labelled(group, { namespace, pod }), startedAt, sample };
    if (sandbox) {
      const labels = labelled(sandbox.group, { name: sandbox.id, namespace, pod });
      yield { labels, startedAt, sample: sandbox.sample, network };
    }
    for (const { name: container, id, image, group: own, startedAt: made, sample: each } of containers) {
      if (own === undefined) continue;
      yield { labels: labelled(own, { container, image, name: id, namespace, pod }), startedAt: made, sample: each };
    }
  }
}

function sorted(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => a < b ? -1 : 1));
}

function container(page: MetricsPage, { labels, startedAt, sample, network }: Shown): void {
  if (startedAt > 0) page.sample("container_start_time_seconds", labels, startedAt / 1000);
  if (network) networkOf(page, labels, network);
  if (!sample) return;
  const { at } = sample;
  const add = (name: string, value: number | undefined, own = labels) =>
    page.sample(`container_${name}`, own, value, at);
  const besides = (more: Labels) => sorted({ ...labels, ...more });
  const seconds = (ns: number | undefined) => ns === undefined ? undefined : ns / 1e9;
  add("last_seen", Math.floor(at / 1000));
  add("cpu_usage_seconds_total", seconds(sample.cpuNs), besides({ cpu: "total" }));
  add("cpu_user_seconds_total", seconds(sample.userNs));
  add("cpu_system_seconds_total", seconds(sample.systemNs));
  const { throttling, memory, psi } = sample;
  if (throttling) {
    add("cpu_cfs_periods_total", throttling.periods);
    add("cpu_cfs_throttled_periods_total", throttling.throttledPeriods);
    add("cpu_cfs_throttled_seconds_total", seconds(throttling.throttledNs));
    add("cpu_cfs_burst_periods_total", throttling.bursts);
    add("cpu_cfs_burst_seconds_total", seconds(throttling.burstNs));
  }
  if (memory) {
    add("memory_cache", memory.cache);
    add("memory_rss", memory.rss);
    add("memory_kernel_usage", memory.kernelUsage);
    add("memory_mapped_file", memory.mappedFile);
    add("memory_swap", sample.swap?.usage);
    add("memory_usage_bytes", memory.usage);
    add("memory_max_usage_bytes", memory.maxUsage);
    add("memory_working_set_bytes", memory.workingSet);
    add("memory_total_active_file_bytes", memory.activeFile);
    add("memory_total_inactive_file_bytes", memory.inactiveFile);
    add("memory_failcnt", memory.failCount);
    add("memory_failures_total", memory.pageFaults, besides({ failure_type: "pgfault", scope: "container" }));
    add("memory_failures_total", memory.majorPageFaults, besides({ failure_type: "pgmajfault", scope: "container" }));
    add("memory_failures_total", memory.allPageFaults, besides({ failure_type: "pgfault", scope: "hierarchy" }));
    add(
      "memory_failures_total",
      memory.allMajorPageFaults,
      besides({ failure_type: "pgmajfault", scope: "hierarchy" }),
    );
  }
  for (const { device: number, readBytes, writtenBytes, reads, writes } of sample.devices ?? []) {
    const [major = "", minor = ""] = number.split(":");
    const traffic = { device: "", major, minor };
    add("blkio_device_usage_total", readBytes, besides({ ...traffic, operation: "Read" }));
    add("blkio_device_usage_total", writtenBytes, besides({ ...traffic, operation: "Write" }));
    const named = besides({ device: number });
    add("fs_reads_bytes_total", readBytes, named);
    add("fs_reads_total", reads, named);
    add("fs_writes_bytes_total", writtenBytes, named);
    add("fs_writes_total", writes, named);
  }
  add("threads", sample.pids);
  if (sample.pids !== undefined) add("threads_max", sample.pidsLimit ?? 0);
  add("oom_events_total", sample.oomKills);
  for (const kind of ["cpu", "memory", "io"] as const) {
    add(`pressure_${kind}_waiting_seconds_total`, seconds(psi?.[kind]?.some.total));
    add(`pressure_${kind}_stalled_seconds_total`, seconds(psi?.[kind]?.full.total));
  }
  spec(page, labels, sample);
}

/** Settings have no time of their own. */
function spec(page: MetricsPage, labels: Labels, { cpu, memory, swap }: GroupSample): void {
  page.sample("container_spec_cpu_period", labels, cpu?.periodUs);
  if (cpu?.quotaUs) page.sample("container_spec_cpu_quota", labels, cpu.quotaUs);
  page.sample("container_spec_cpu_shares", labels, cpu?.shares);
  if (!memory) return;
  page.sample("container_spec_memory_limit_bytes", labels, memory.limit ?? 0);
  page.sample("container_spec_memory_swap_limit_bytes", labels, swap?.limit ?? 0);
}

function networkOf(page: MetricsPage, labels: Labels, { at, interfaces }: NetworkSample): void {
  for (const each of interfaces) {
    const own = sorted({ ...labels, interface: each.name });
    for (const [way, key] of [["receive", "rx"], ["transmit", "tx"]] as const) {
      page.sample(`container_network_${way}_bytes_total`, own, each[`${key}Bytes`], at);
      page.sample(`container_network_${way}_packets_total`, own, each[`${key}Packets`], at);
      page.sample(`container_network_${way}_packets_dropped_total`, own, each[`${key}Dropped`], at);
      page.sample(`container_network_${way}_errors_total`, own, each[`${key}Errors`], at);
    }
  }
}
