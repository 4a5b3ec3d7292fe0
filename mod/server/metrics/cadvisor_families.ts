import type {
  DeviceTraffic,
  DiskTraffic,
  GroupSample,
  InterfaceSample,
  MemorySample,
  NetworkSample,
  NodeDisk,
  Psi,
  Throttling,
} from "../../../managers/stats/types.ts";
import { labelPairs, type MetricType } from "./text.ts";

/** What a file system's use is told of. */
export interface ShownDisk {
  readonly device: string;
  readonly used?: number | undefined;
  readonly capacity?: number | undefined;
  readonly inodes?: number | undefined;
  readonly inodesFree?: number | undefined;
  readonly traffic?: DiskTraffic | undefined;
  readonly at: number;
}

/** A group as the page shows it. */
export interface ShownGroup {
  readonly startedAt: number;
  readonly sample: GroupSample | undefined;
  readonly network?: NetworkSample | undefined;
  readonly disks?: readonly ShownDisk[] | undefined;
}

/** Takes one value. @param more labels besides the base ones, as `name="value"`, sorted @param at none: no time */
export type Emit = (value: number | undefined, more?: string, at?: number) => void;

/** A family: its type, what it is, and how its values are found in a group. */
export type GroupFamily = readonly [type: MetricType, help: string, values: (group: ShownGroup, emit: Emit) => void];

type OfSample = (sample: GroupSample) => number | undefined;

/** One value of a group, with the time at which it was read. */
function one(type: MetricType, help: string, of: OfSample, more?: string): GroupFamily {
  return [type, help, ({ sample }, emit) => {
    if (sample) emit(of(sample), more, sample.at);
  }];
}

function ofMemory(type: MetricType, help: string, of: (memory: MemorySample) => number | undefined): GroupFamily {
  return one(type, help, ({ memory }) => memory && of(memory));
}

function throttled(help: string, of: (throttling: Throttling) => number): GroupFamily {
  return one("counter", help, ({ throttling }) => throttling && of(throttling));
}

function pressed(kind: "cpu" | "memory" | "io", which: keyof Psi, help: string): GroupFamily {
  return one("counter", help, ({ psi }) => seconds(psi?.[kind]?.[which].total));
}

/** A setting: it has no time of its own. */
function set(help: string, of: OfSample): GroupFamily {
  return ["gauge", help, ({ sample }, emit) => sample && emit(of(sample))];
}

/** Of each device: what the group itself did, and what the file system's device did. */
function ofDevices(
  help: string,
  own: ((traffic: DeviceTraffic) => number | undefined) | undefined,
  whole: ((traffic: DiskTraffic) => number) | undefined,
  type: MetricType = "counter",
): GroupFamily {
  return [type, help, ({ sample, disks }, emit) => {
    if (own) {
      for (const each of sample?.devices ?? []) emit(own(each), labelPairs({ device: each.device }), sample?.at);
    }
    if (!whole) return;
    for (const { device, traffic, at } of disks ?? []) {
      if (traffic) emit(whole(traffic), labelPairs({ device }), at);
    }
  }];
}

function ofDisks(help: string, of: (disk: ShownDisk) => number | undefined): GroupFamily {
  return ["gauge", help, ({ disks }, emit) => {
    for (const disk of disks ?? []) emit(of(disk), labelPairs({ device: disk.device }), disk.at);
  }];
}

function ofInterfaces(help: string, of: (each: InterfaceSample) => number): GroupFamily {
  return ["counter", help, ({ network }, emit) => {
    for (const each of network?.interfaces ?? []) emit(of(each), labelPairs({ interface: each.name }), network?.at);
  }];
}

function seconds(ns: number | undefined): number | undefined {
  return ns === undefined ? undefined : ns / 1e9;
}

/** Tasks by state come from a kernel interface that the reference leaves switched off as well: always 0. */
const states = ["iowaiting", "running", "sleeping", "stopped", "uninterruptible"].map((state) => `state="${state}"`);

const faults = [
  [`failure_type="pgfault",scope="container"`, (m: MemorySample) => m.pageFaults],
  [`failure_type="pgmajfault",scope="container"`, (m: MemorySample) => m.majorPageFaults],
  [`failure_type="pgfault",scope="hierarchy"`, (m: MemorySample) => m.allPageFaults],
  [`failure_type="pgmajfault",scope="hierarchy"`, (m: MemorySample) => m.allMajorPageFaults],
] as const;

const inSectors = 512;

/** Everything that is told of a group (metrics.md section 5). */
export const groupFamilies: Readonly<Record<string, GroupFamily>> = {
  container_last_seen: one("gauge", "When the group was read, seconds since the epoch", (s) => Math.floor(s.at / 1000)),
  container_health_state: one("gauge", "-1: the container has no health check of its own", () => -1),
  container_start_time_seconds: ["gauge", "When the container was made, seconds since the epoch", (group, emit) => {
    if (group.startedAt > 0) emit(group.startedAt / 1000);
  }],
  container_cpu_user_seconds_total: one("counter", "CPU time in user mode, seconds", (s) => seconds(s.userNs)),
  container_cpu_system_seconds_total: one("counter", "CPU time in the kernel, seconds", (s) => seconds(s.systemNs)),
  container_cpu_usage_seconds_total: one("counter", "CPU time, seconds", (s) => seconds(s.cpuNs), `cpu="total"`),
  container_cpu_cfs_periods_total: throttled("Periods of the CPU quota that have passed", (t) => t.periods),
  container_cpu_cfs_throttled_periods_total: throttled("Periods in which the quota ran out", (t) => t.throttledPeriods),
  container_cpu_cfs_throttled_seconds_total: throttled(
    "Time held up by the quota, seconds",
    (t) => t.throttledNs / 1e9,
  ),
  container_cpu_cfs_burst_periods_total: throttled("Periods in which more than the quota was used", (t) => t.bursts),
  container_cpu_cfs_burst_seconds_total: throttled("CPU time used above the quota, seconds", (t) => t.burstNs / 1e9),
  container_cpu_load_average_10s: one("gauge", "Always 0: the load of groups is not measured", () => 0),
  container_cpu_load_d_average_10s: one("gauge", "Always 0: the load of groups is not measured", () => 0),
  container_tasks_state: ["gauge", "Always 0: tasks are not counted by state", ({ sample }, emit) => {
    if (sample) { for (const state of states) emit(0, state, sample.at); }
  }],
  container_memory_cache: ofMemory("gauge", "Page cache, bytes", (m) => m.cache),
  container_memory_rss: ofMemory("gauge", "Anonymous memory, bytes", (m) => m.rss),
  container_memory_kernel_usage: ofMemory("gauge", "Memory of the kernel, bytes", (m) => m.kernelUsage),
  container_memory_mapped_file: ofMemory("gauge", "Files mapped into memory, bytes", (m) => m.mappedFile),
  container_memory_swap: one("gauge", "Swap, bytes", ({ swap }) => swap?.usage),
  container_memory_usage_bytes: ofMemory("gauge", "Memory in use, all kinds, bytes", (m) => m.usage),
  container_memory_max_usage_bytes: ofMemory("gauge", "Most memory that was ever in use, bytes", (m) => m.maxUsage),
  container_memory_working_set_bytes: ofMemory("gauge", "Working set, bytes", (m) => m.workingSet),
  container_memory_total_active_file_bytes: ofMemory("gauge", "Page cache in recent use, bytes", (m) => m.activeFile),
  container_memory_total_inactive_file_bytes: ofMemory(
    "gauge",
    "Page cache not in recent use, bytes",
    (m) => m.inactiveFile,
  ),
  container_memory_failcnt: ofMemory("counter", "Times that the memory limit was hit", (m) => m.failCount),
  container_memory_failures_total: ["counter", "Page faults", ({ sample }, emit) => {
    const memory = sample?.memory;
    if (memory) { for (const [labels, of] of faults) emit(of(memory), labels, sample.at); }
  }],
  container_fs_inodes_free: ofDisks("Inodes that are free", (disk) => disk.inodesFree),
  container_fs_inodes_total: ofDisks("Inodes that the file system has", (disk) => disk.inodes),
  container_fs_limit_bytes: ofDisks("Bytes that the file system has", (disk) => disk.capacity),
  container_fs_usage_bytes: ofDisks("Bytes of the file system that are used", (disk) => disk.used),
  container_fs_reads_bytes_total: ofDevices("Bytes read from the device", (t) => t.readBytes, undefined),
  container_fs_reads_total: ofDevices("Reads that the device has done", (t) => t.reads, (d) => d.reads),
  container_fs_sector_reads_total: ofDevices(
    "Sectors read",
    (t) => Math.floor(t.readBytes / inSectors),
    (d) => d.sectorsRead,
  ),
  container_fs_reads_merged_total: ofDevices("Reads that were merged", undefined, (d) => d.readsMerged),
  container_fs_read_seconds_total: ofDevices("Time spent reading, seconds", undefined, (d) => d.readMs / 1000),
  container_fs_writes_bytes_total: ofDevices("Bytes written to the device", (t) => t.writtenBytes, undefined),
  container_fs_writes_total: ofDevices("Writes that the device has done", (t) => t.writes, (d) => d.writes),
  container_fs_sector_writes_total: ofDevices(
    "Sectors written",
    (t) => Math.floor(t.writtenBytes / inSectors),
    (d) => d.sectorsWritten,
  ),
  container_fs_writes_merged_total: ofDevices("Writes that were merged", undefined, (d) => d.writesMerged),
  container_fs_write_seconds_total: ofDevices("Time spent writing, seconds", undefined, (d) => d.writeMs / 1000),
  container_fs_io_current: ofDevices("Reads and writes under way", undefined, (d) => d.inFlight, "gauge"),
  container_fs_io_time_seconds_total: ofDevices("Time with I/O under way, seconds", undefined, (d) => d.ioMs / 1000),
  container_fs_io_time_weighted_seconds_total: ofDevices(
    "Time with I/O under way, times what was under way, seconds",
    undefined,
    (d) => d.weightedMs / 1000,
  ),
  container_fs_io_cost_usage_seconds_total: cost("Device time by the I/O cost model, seconds", (c) => c.usageUs),
  container_fs_io_cost_wait_seconds_total: cost("Time waited for I/O budget, seconds", (c) => c.waitUs),
  container_fs_io_cost_indebt_seconds_total: cost("Time in debt of I/O, seconds", (c) => c.indebtUs),
  container_fs_io_cost_indelay_seconds_total: cost("Time held up for its debt of I/O, seconds", (c) => c.indelayUs),
  container_blkio_device_usage_total: ["counter", "Bytes that went to and from the device", ({ sample }, emit) => {
    for (const { device, readBytes, writtenBytes } of sample?.devices ?? []) {
      const [major = "", minor = ""] = device.split(":");
      const labels = `device="",major="${major}",minor="${minor}",operation=`;
      emit(readBytes, `${labels}"Read"`, sample?.at);
      emit(writtenBytes, `${labels}"Write"`, sample?.at);
    }
  }],
  container_network_receive_bytes_total: ofInterfaces("Bytes received", (i) => i.rxBytes),
  container_network_receive_packets_total: ofInterfaces("Packets received", (i) => i.rxPackets),
  container_network_receive_packets_dropped_total: ofInterfaces(
    "Packets dropped when they came in",
    (i) => i.rxDropped,
  ),
  container_network_receive_errors_total: ofInterfaces("Errors when receiving", (i) => i.rxErrors),
  container_network_transmit_bytes_total: ofInterfaces("Bytes sent", (i) => i.txBytes),
  container_network_transmit_packets_total: ofInterfaces("Packets sent", (i) => i.txPackets),
  container_network_transmit_packets_dropped_total: ofInterfaces(
    "Packets dropped when they went out",
    (i) => i.txDropped,
  ),
  container_network_transmit_errors_total: ofInterfaces("Errors when sending", (i) => i.txErrors),
  container_processes: one("gauge", "Processes in the group itself", (s) => s.processes?.length),
  container_file_descriptors: one("gauge", "Files that its processes have open", (s) => s.open?.descriptors),
  container_sockets: one("gauge", "Sockets that its processes have open", (s) => s.open?.sockets),
  container_threads: one("gauge", "Tasks in the group and below", (s) => s.pids),
  container_threads_max: one(
    "gauge",
    "Tasks that the group may have; 0 for no limit",
    (s) => s.pids === undefined ? undefined : s.pidsLimit ?? 0,
  ),
  container_ulimits_soft: one(
    "gauge",
    "Soft limits of the container's first process; -1 for none",
    (s) => s.open?.limit === Infinity ? -1 : s.open?.limit,
    `ulimit="max_open_files"`,
  ),
  container_oom_events_total: one("counter", "Processes that were killed for want of memory", (s) => s.oomKills),
  container_pressure_cpu_waiting_seconds_total: pressed("cpu", "some", "Time in which some task waited for a CPU"),
  container_pressure_cpu_stalled_seconds_total: pressed("cpu", "full", "Time in which no task got a CPU"),
  container_pressure_memory_waiting_seconds_total: pressed(
    "memory",
    "some",
    "Time in which some task waited for memory",
  ),
  container_pressure_memory_stalled_seconds_total: pressed("memory", "full", "Time in which all waited for memory"),
  container_pressure_io_waiting_seconds_total: pressed("io", "some", "Time in which some task waited for I/O"),
  container_pressure_io_stalled_seconds_total: pressed("io", "full", "Time in which all tasks waited for I/O"),
  container_spec_cpu_period: set("Period of the CPU quota, microseconds", ({ cpu }) => cpu?.periodUs),
  container_spec_cpu_quota: set("CPU quota in a period, microseconds", ({ cpu }) => cpu?.quotaUs || undefined),
  container_spec_cpu_shares: set("CPU shares", ({ cpu }) => cpu?.shares),
  container_spec_memory_limit_bytes: set(
    "Memory limit, bytes; 0 for none",
    ({ memory }) => memory && (memory.limit ?? 0),
  ),
  container_spec_memory_swap_limit_bytes: set(
    "Swap limit, bytes; 0 for none",
    ({ memory, swap }) => memory && (swap?.limit ?? 0),
  ),
  container_spec_memory_reservation_limit_bytes: set(
    "Memory that is kept for the group, bytes; 0 for none",
    (s) => s.memory && (s.memory.reservation ?? 0),
  ),
};

function cost(help: string, of: (cost: NonNullable<DeviceTraffic["cost"]>) => number): GroupFamily {
  return ofDevices(help, (traffic) => traffic.cost && of(traffic.cost) / 1e6, undefined);
}

/** A disk of the node, with what its device did. */
export function nodeDisk({ device, fs, traffic }: NodeDisk): ShownDisk {
  const { at, used, capacity, inodes, inodesFree } = fs;
  return { device, used, capacity, inodes, inodesFree, traffic, at };
}
