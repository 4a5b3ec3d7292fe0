/**
 * How much is read: the node's own figures and no pod's; what `/metrics/resource` needs, what the summary needs, what
 * `/metrics/cadvisor` needs of the node and each pod.
 */
export type Detail = "node" | "resource" | "summary" | "cadvisor";

/** One line of a pressure file. Averages are percent of time; the total is nanoseconds. */
export interface Pressure {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

/** Some tasks, and all of them at once, waited for a resource. */
export interface Psi {
  readonly some: Pressure;
  readonly full: Pressure;
}

/** Memory of a group, bytes. */
export interface MemorySample {
  readonly usage: number;
  /** Usage without the file cache that is not in use, never below 0. */
  readonly workingSet: number;
  readonly rss: number;
  readonly cache: number;
  readonly mappedFile: number;
  readonly activeFile: number;
  readonly inactiveFile: number;
  /** Counts; of the group's own tasks, and with the groups below. */
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  readonly allPageFaults: number;
  readonly allMajorPageFaults: number;
  /** Undefined when there is no limit (or it was not asked for). */
  readonly limit?: number;
  /** What is kept for it when memory is short (v1: the soft limit); undefined when nothing is. */
  readonly reservation?: number;
  readonly maxUsage?: number;
  readonly failCount?: number;
  readonly kernelUsage?: number;
}

/** Device traffic of a group: counts of the kernel's block layer, by `major:minor`. */
export interface DeviceTraffic {
  readonly device: string;
  readonly readBytes: number;
  readonly writtenBytes: number;
  readonly reads: number;
  readonly writes: number;
  /** Of the I/O cost controller, where it is on; microseconds. */
  readonly cost?: {
    readonly usageUs: number;
    readonly waitUs: number;
    readonly indebtUs: number;
    readonly indelayUs: number;
  };
}

/** What processes of a group have open. */
export interface OpenFiles {
  readonly descriptors: number;
  readonly sockets: number;
  /** Soft limit of open files of the group's first process; Infinity for none, undefined when not told. */
  readonly limit?: number;
}

/** CPU settings of a group, as cadvisor tells them. */
export interface CpuSpec {
  readonly shares?: number;
  /** Microseconds; a quota only when there is one. */
  readonly periodUs?: number;
  readonly quotaUs?: number;
}

/** CFS bandwidth, of groups with a quota. */
export interface Throttling {
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNs: number;
  readonly bursts: number;
  readonly burstNs: number;
}

/** What a control group told at one moment; what it did not tell is left out. */
export interface GroupSample {
  /** When it was read, milliseconds since the epoch. */
  readonly at: number;
  /** Nanoseconds of CPU since the group was made. */
  readonly cpuNs?: number;
  readonly userNs?: number;
  readonly systemNs?: number;
  readonly throttling?: Throttling;
  readonly cpu?: CpuSpec;
  readonly memory?: MemorySample;
  readonly swap?: { readonly usage: number; readonly limit?: number };
  readonly pids?: number;
  readonly pidsLimit?: number;
  /** Ids of the processes in the group itself, without the groups below. */
  readonly processes?: readonly number[];
  readonly open?: OpenFiles;
  readonly oomKills?: number;
  readonly psi?: { readonly cpu?: Psi; readonly memory?: Psi; readonly io?: Psi };
  readonly devices?: readonly DeviceTraffic[];
}

/** A group's sample with the rate since the one before it. */
export interface RatedSample extends GroupSample {
  /** Billionths of a core; undefined until there have been two readings. */
  readonly nanoCores?: number;
}

/** Counters of a network interface. */
export interface InterfaceSample {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** Network of a namespace. */
export interface NetworkSample {
  readonly at: number;
  readonly interfaces: readonly InterfaceSample[];
}

/** A file system, or what a part of it uses. */
export interface FsSample {
  readonly at: number;
  readonly available?: number;
  readonly capacity?: number;
  readonly used?: number;
  readonly inodesFree?: number;
  readonly inodes?: number;
  readonly inodesUsed?: number;
}

/** A volume of a pod. */
export interface VolumeSample extends FsSample {
  readonly name: string;
  /** The claim that it was bound by. */
  readonly claim?: { readonly name: string; readonly namespace: string };
  /** What its driver says of its health, where it says anything. */
  readonly abnormal?: boolean;
}

/** A running container. */
export interface ContainerSample {
  readonly name: string;
  readonly id: string;
  readonly image: string;
  /** Milliseconds since the epoch; creation, as the contract has it. */
  readonly startedAt: number;
  readonly group: string | undefined;
  readonly sample: RatedSample | undefined;
  readonly rootfs?: FsSample;
  readonly logs?: FsSample;
}

/** A pod with at least one running container. */
export interface PodSample {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly startedAt: number;
  readonly group: string | undefined;
  readonly sample: RatedSample | undefined;
  readonly sandbox?: { readonly id: string; readonly group: string; readonly sample: RatedSample | undefined };
  readonly containers: readonly ContainerSample[];
  readonly network?: NetworkSample;
  readonly volumes?: readonly VolumeSample[];
  readonly ephemeralStorage?: FsSample;
}

/** Groups of the node that are no pod's. */
export interface SystemSample {
  readonly name: "kubelet" | "runtime" | "misc" | "pods";
  readonly group: string;
  readonly startedAt: number;
  readonly sample: RatedSample;
}

/** The node as a whole. */
export interface NodeSample {
  readonly name: string;
  /** When the machine booted, milliseconds since the epoch. */
  readonly startedAt: number;
  /** Bytes. */
  readonly memoryCapacity: number;
  readonly swapCapacity: number;
  readonly cpus: number;
  readonly sample: RatedSample;
  readonly system: readonly SystemSample[];
  readonly network?: NetworkSample;
  readonly fs?: FsSample;
  readonly imageFs?: FsSample;
  /** File systems that the agent's directories and images lie on, each once; for the full page only. */
  readonly disks?: readonly NodeDisk[];
  readonly rlimit?: { readonly at: number; readonly maxPid?: number; readonly running?: number };
}

/** What a block device has done since the machine booted (Documentation/admin-guide/iostats of the kernel). */
export interface DiskTraffic {
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  readonly inFlight: number;
  readonly ioMs: number;
  readonly weightedMs: number;
}

/** A file system of the node, with what its device has done. */
export interface NodeDisk {
  /** Such as `/dev/vda1`; what the mount table calls the source. */
  readonly device: string;
  readonly fs: FsSample;
  readonly traffic?: DiskTraffic;
}

/** One collection. */
export interface StatsSnapshot {
  readonly at: number;
  readonly detail: Detail;
  readonly node: NodeSample;
  readonly pods: readonly PodSample[];
}
