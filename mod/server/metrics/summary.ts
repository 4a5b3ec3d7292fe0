import type {
  ContainerSample,
  FsSample,
  GroupSample,
  InterfaceSample,
  NetworkSample,
  NodeSample,
  PodSample,
  Psi,
  RatedSample,
  StatsSnapshot,
  VolumeSample,
} from "../../../managers/stats/types.ts";

type Json = { readonly [key: string]: unknown };

/** RFC 3339 in seconds, as the API's times are. */
function time(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

/** What /stats/summary answers (metrics.md section 9). What is not known is left out. @param small CPU, memory and swap only */
export function summaryOf(snapshot: StatsSnapshot, small: boolean): Json {
  return {
    node: nodeStats(snapshot.node, small),
    pods: snapshot.pods.map((pod) => podStats(pod, small)),
  };
}

function nodeStats(node: NodeSample, small: boolean): Json {
  const { memoryCapacity, swapCapacity, sample } = node;
  const swap = sample.swap ? { ...sample, swap: { ...sample.swap, limit: swapCapacity } } : sample;
  return {
    nodeName: node.name,
    systemContainers: node.system.map((each) => ({
      name: each.name,
      startTime: time(each.startedAt),
      ...groupStats(each.sample, small, each.sample.memory?.limit),
    })),
    startTime: time(node.startedAt),
    ...groupStats(swap, small, memoryCapacity),
    ...(small ? {} : {
      network: node.network && networkStats(node.network),
      fs: node.fs && fsStats(node.fs),
      runtime: node.imageFs && { imageFs: fsStats(node.imageFs), containerFs: fsStats(node.imageFs) },
      rlimit: node.rlimit &&
        { time: time(node.rlimit.at), maxpid: node.rlimit.maxPid, curproc: node.rlimit.running },
    }),
  };
}

function podStats(pod: PodSample, small: boolean): Json {
  const { sample } = pod;
  return {
    podRef: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
    startTime: time(pod.startedAt),
    containers: pod.containers.map((container) => containerStats(container, small)),
    ...(sample ? groupStats(sample, small, sample.memory?.limit) : {}),
    ...(small ? {} : {
      network: pod.network && networkStats(pod.network),
      volume: pod.volumes?.map(volumeStats),
      "ephemeral-storage": pod.ephemeralStorage && fsStats(pod.ephemeralStorage),
      process_stats: sample?.pids === undefined ? undefined : { process_count: sample.pids },
    }),
  };
}

function volumeStats(volume: VolumeSample): Json {
  const { name, claim, abnormal } = volume;
  return {
    ...fsStats(volume),
    name,
    pvcRef: claim && { name: claim.name, namespace: claim.namespace },
    volumeHealthStats: abnormal === undefined ? undefined : { abnormal },
  };
}

function containerStats(container: ContainerSample, small: boolean): Json {
  const { sample, rootfs, logs } = container;
  return {
    name: container.name,
    startTime: time(container.startedAt),
    ...(sample ? groupStats(sample, small, sample.memory?.limit) : {}),
    ...(small ? {} : { rootfs: rootfs && fsStats(rootfs), logs: logs && fsStats(logs) }),
  };
}

const noPressure = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
const noPsi: Psi = { full: noPressure, some: noPressure };

/** @param limit bytes of memory that the group may use at most */
function groupStats(sample: RatedSample, small: boolean, limit: number | undefined): Json {
  const { memory, swap, psi } = sample;
  const at = time(sample.at);
  return {
    cpu: sample.cpuNs === undefined ? undefined : {
      time: at,
      usageNanoCores: sample.nanoCores,
      usageCoreNanoSeconds: sample.cpuNs,
      psi: small ? undefined : psiStats(psi?.cpu),
    },
    memory: memory && {
      time: at,
      availableBytes: limit === undefined ? undefined : Math.max(0, limit - memory.workingSet),
      usageBytes: memory.usage,
      workingSetBytes: memory.workingSet,
      rssBytes: memory.rss,
      pageFaults: memory.pageFaults,
      majorPageFaults: memory.majorPageFaults,
      psi: small ? undefined : psiStats(psi?.memory),
    },
    io: small ? undefined : { time: at, psi: psiStats(psi?.io) },
    swap: swapStats(sample.at, swap),
  };
}

function swapStats(at: number, swap: GroupSample["swap"]): Json | undefined {
  return swap && {
    time: time(at),
    swapAvailableBytes: swap.limit === undefined ? undefined : Math.max(0, swap.limit - swap.usage),
    swapUsageBytes: swap.usage,
  };
}

/** Zeros where the kernel does not tell of the group (cgroup v1): readers expect the field, as the reference has it. */
function psiStats({ full, some }: Psi = noPsi): Json {
  return { full, some };
}

function networkStats({ at, interfaces }: NetworkSample): Json {
  const counters = ({ name, rxBytes, rxErrors, txBytes, txErrors }: InterfaceSample) => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  });
  const main = interfaces.find(({ name }) => name === "eth0");
  return { time: time(at), ...(main ? counters(main) : { name: "" }), interfaces: interfaces.map(counters) };
}

function fsStats(fs: FsSample): Json {
  return {
    time: time(fs.at),
    availableBytes: fs.available,
    capacityBytes: fs.capacity,
    usedBytes: fs.used,
    inodesFree: fs.inodesFree,
    inodes: fs.inodes,
    inodesUsed: fs.inodesUsed,
  };
}
