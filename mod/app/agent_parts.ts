import { type CgroupManagerOptions, createCgroupManager } from "../../managers/cgroups/manager.ts";
import type { CgroupManager, GroupKiller, OrphanGroups, PodGroupLimits } from "../../managers/cgroups/types.ts";
import { AgentPodBuilder } from "../../managers/runtime/builder.ts";
import { createEnvSource } from "../../managers/runtime/env_source.ts";
import { canMountImages } from "../../managers/runtime/image_volumes.ts";
import { createUserNamespaces } from "../../managers/userns/manager.ts";
import { knowsNoswap } from "../../managers/volumes/empty_dir.ts";
import { createVolumeManager } from "../../managers/volumes/manager.ts";
import { standardPlugins } from "../../managers/volumes/standard.ts";
import type { SubPaths, VolumeManager } from "../../managers/volumes/types.ts";
import type { RuntimeFeatures, RuntimeHandler } from "../../cri/gen/runtime_pb.ts";
import type { Scope } from "../base/scope.ts";
import { milliValueBig, parseQuantity, type Quantity, valueBig } from "../kube/quantity.ts";
import type { NodeFacts as AdmissionFacts } from "../pod/admission/types.ts";
import type { ResourcePolicy } from "../pod/config/linux_resources.ts";
import type { MemoryQosPolicy } from "../pod/memory_qos.ts";
import type { Amounts } from "../pod/resources.ts";
import { createSources, type Sources } from "../sources/sources.ts";
import type { AgentOptions } from "./agent_types.ts";

/** Sums reservations to amounts: milli-CPU, bytes, counts. */
function amounts(...lists: Readonly<Record<string, Quantity>>[]): Amounts {
  const sum: Amounts = {};
  for (const list of lists) {
    for (const [name, quantity] of Object.entries(list)) {
      const key = name === "pid" ? "pids" : name;
      sum[key] = (sum[key] ?? 0n) + (name === "cpu" ? milliValueBig(quantity) : valueBig(quantity));
    }
  }
  return sum;
}

/** How memory requests protect pods; empty unless the gate is on and the machine has cgroup v2. */
function memoryQos(o: AgentOptions): { memoryQos?: MemoryQosPolicy } {
  const { config, facts, hierarchies } = o;
  if (!o.gates?.enabled("MemoryQoS") || hierarchies.version !== 2) return {};
  return {
    memoryQos: {
      throttlingFactor: config.memoryThrottlingFactor,
      tiered: config.memoryReservationPolicy === "TieredReservation",
      allocatable: valueBig(parseQuantity(facts.allocatable.memory ?? "0")),
    },
  };
}

/** The control groups of this agent's pods. */
export function makeCgroups(o: AgentOptions): CgroupManager & GroupKiller & OrphanGroups & PodGroupLimits {
  const { config, facts } = o;
  const hugePages = Object.entries(facts.capacity).filter(([name]) => name.startsWith("hugepages-"));
  const enforce = new Set(config.enforceNodeAllocatable);
  const groups: NonNullable<CgroupManagerOptions["reservedGroups"]>[number][] = [];
  for (
    const [what, purpose, cgroup, reserved] of [
      ["system-reserved", "system reserved", config.systemReservedCgroup, config.systemReserved],
      ["kube-reserved", "kube reserved", config.kubeReservedCgroup, config.kubeReserved],
    ] as const
  ) {
    const compressibleOnly = enforce.has(`${what}-compressible`);
    if (enforce.has(what) || compressibleOnly) {
      groups.push({ purpose, cgroup, limits: amounts(reserved), compressibleOnly });
    }
  }
  const manager = createCgroupManager({
    host: o.host,
    clock: o.clock,
    log: o.log,
    hierarchies: o.hierarchies,
    driver: o.cgroupDriver,
    cgroupRoot: config.cgroupRoot,
    podPidsLimit: config.podPidsLimit,
    cpuCFSQuota: config.cpuCFSQuota,
    cpuCFSQuotaPeriod: config.cpuCFSQuotaPeriodMs * 1000,
    nodeCapacity: {
      cpu: BigInt(facts.cpus) * 1000n,
      memory: BigInt(facts.memory),
      ...(facts.pids === undefined ? {} : { pids: BigInt(facts.pids) }),
      ...amounts(Object.fromEntries(hugePages.map(([name, text]) => [name, parseQuantity(text)]))),
    },
    allCpus: config.cpuManagerPolicy === "none",
    reserved: amounts(config.systemReserved, config.kubeReserved),
    enforcePods: enforce.has("pods"),
    reservedGroups: groups,
    hugePageSizes: facts.hugePageSizes,
    ...memoryQos(o),
    onMemoryKept: (kept) => o.meter?.work.memoryKept(kept),
  });
  return o.meter?.work.groups(manager, () => o.clock.now()) ?? manager;
}

/** The volumes that the agent can give: those of the node, and what a cluster adds. */
export function makeVolumes(o: AgentOptions, scope: Scope): VolumeManager & SubPaths {
  const allocatable = () => o.facts.allocatable;
  const memory = {
    allocatableMemory: () => valueBig(parseQuantity(o.facts.allocatable.memory ?? "0")),
    noswap: knowsNoswap(o.facts.kernelVersion),
  };
  const manager = createVolumeManager({
    host: o.host,
    clock: o.clock,
    log: o.log,
    events: o.events,
    journal: o.journal,
    onOperation: (done) => o.meter?.work.volume(done),
    found: o.meter?.work,
    scope,
    rootDir: o.flags.rootDir,
    plugins: [
      ...standardPlugins({ memory, allocatable, sources: o.cluster?.projections ?? [] }),
      ...o.cluster?.volumePlugins ?? [],
    ],
  });
  if (o.meter) o.meter.work.volumes = manager;
  scope.spawn("volumes that were left", () => manager.findLeft());
  return manager;
}

/** How this node limits containers. */
export function resourcePolicy(o: AgentOptions): ResourcePolicy {
  const { config, facts } = o;
  return {
    cpuCfsQuota: config.cpuCFSQuota,
    cpuPeriodUs: config.cpuCFSQuotaPeriodMs * 1000,
    cgroupVersion: o.hierarchies.version,
    ...(config.singleProcessOOMKill === undefined ? {} : { singleProcessOOMKill: config.singleProcessOOMKill }),
    memorySwap: config.memorySwap.swapBehavior === "LimitedSwap" ? "LimitedSwap" : "NoSwap",
    swapAvailable: facts.swapController,
    nodeMemory: facts.memory,
    nodeSwap: facts.swap,
    hugePageSizes: facts.hugePageSizes,
    ...memoryQos(o),
  };
}

/** Builds what CRI is given, from this node's settings. */
export function makeBuilder(
  o: AgentOptions,
  cgroups: CgroupManager,
  subPaths: SubPaths,
  handlers: () => readonly RuntimeHandler[],
): AgentPodBuilder {
  const { config, facts, flags } = o;
  return new AgentPodBuilder({
    host: o.host,
    random: o.random,
    events: o.events,
    policy: {
      rootDir: flags.rootDir,
      seccompDefault: config.seccompDefault,
      selinuxEnabled: false,
      stopSignals: o.gates?.enabled("ContainerStopSignals") ?? false,
      ...resourcePolicy(o),
      extraMaskedPaths: facts.maskedPaths ?? [],
    },
    podLogsDir: config.podLogsDir,
    resolvConf: config.resolvConf,
    clusterDNS: config.clusterDNS,
    clusterDomain: config.clusterDomain,
    nodeIPs: facts.ips,
    allocatable: facts.allocatable,
    cgroupParent: (pod) => cgroups.parentOf(pod),
    environment: o.cluster?.environment ?? createEnvSource({ host: o.host, log: o.log }),
    devices: o.devices,
    userns: createUserNamespaces({
      host: o.host,
      random: o.random,
      log: o.log,
      rootDir: flags.rootDir,
      idsPerPod: config.userNamespaces.idsPerPod,
      maxPods: config.maxPods,
      handlers,
    }),
    handlers,
    ...(o.cluster?.runtimeHandler ? { runtimeHandler: o.cluster.runtimeHandler } : {}),
    imageVolumes: canMountImages(o.runtimeName, o.runtimeVersion),
    subPath: ({ pod, container, mount, volume, signal }) =>
      subPaths.prepareSubPath({ pod, container, index: mount.index, volume, subPath: mount.subPath, signal }),
  });
}

/** The pod sources that the configuration names. */
export function makeSources(o: AgentOptions): Sources {
  return createSources({
    host: o.host,
    clock: o.clock,
    log: o.log,
    events: o.events,
    nodeName: o.facts.name,
    config: o.config,
    ...(o.fetch ? { fetch: o.fetch } : {}),
    ...(o.stdin ? { stdin: o.stdin } : {}),
    more: o.cluster?.sources ?? [],
  });
}

/** What admission needs to know of this node. @param runtime what the runtime can do, as it tells */
export function admissionFacts(o: AgentOptions, runtime: RuntimeFeatures | undefined): AdmissionFacts {
  const { facts } = o;
  return {
    name: facts.name,
    allocatable: facts.allocatable,
    labels: {
      "kubernetes.io/hostname": facts.name,
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": facts.arch,
      "beta.kubernetes.io/os": "linux",
      "beta.kubernetes.io/arch": facts.arch,
      ...o.flags.nodeLabels,
    },
    os: "linux",
    arch: facts.arch,
    kernelVersion: facts.kernelVersion,
    features: {
      appArmor: facts.appArmor,
      supplementalGroupsPolicy: runtime?.supplementalGroupsPolicy ?? false,
    },
  };
}
