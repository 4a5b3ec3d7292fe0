import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import {
  type MemoryQosPolicy,
  type MemoryReserve,
  nodeMemoryReserve,
  podMemoryReserve,
} from "../../mod/pod/memory_qos.ts";
import {
  type Amounts,
  cpuShares,
  hugePageLimits,
  minCpuShares,
  type PodCgroupLimits,
  podCgroupLimits,
  type QosClass,
  qosClass,
  qosShares,
} from "../../mod/pod/resources.ts";
import type { GroupState } from "../../mod/pod/resize/group_plan.ts";
import { GroupTree, type Hierarchies } from "./hierarchies.ts";
import { killGroup } from "./kill_group.ts";
import type { GroupLimits } from "./limits.ts";
import { type Driver, type GroupName, groupPath, parseRoot, podPart, podUidOf, qosName } from "./names.ts";
import { Slices } from "./systemd.ts";
import { memoryUsed, readGroupState } from "./read_limits.ts";
import type { CgroupManager, GroupKiller, OrphanGroups, PodGroupLimits } from "./types.ts";

/** A group that exists already and gets the limits of a reserve (kube-reserved, system-reserved). */
export interface ReservedGroup {
  /** What it is for, as errors name it. */
  readonly purpose: "system reserved" | "kube reserved";
  /** Its name in the driver's form: a path, or a slice. */
  readonly cgroup: string;
  readonly limits: Amounts;
  /** True for the `-compressible` enforcement: only CPU. */
  readonly compressibleOnly: boolean;
}

export interface CgroupManagerOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /** What detectCgroups found. */
  readonly hierarchies: Hierarchies;
  readonly driver: Driver;
  /** Where `kubepods` goes: `/`, or a group that exists with all controllers. */
  readonly cgroupRoot: string;
  /** Processes a pod may have; 0 or −1 for no limit of its own. */
  readonly podPidsLimit: number;
  readonly cpuCFSQuota: boolean;
  /** Microseconds. */
  readonly cpuCFSQuotaPeriod: number;
  /** The node's `cpu` (milli), `memory` (bytes), `pids`, `hugepages-<size>`. */
  readonly nodeCapacity: Amounts;
  /** kubeReserved and systemReserved summed; without the eviction reserve. */
  readonly reserved?: Amounts;
  /** True when enforceNodeAllocatable has `pods`: the kubepods group gets capacity − reserved, else capacity. */
  readonly enforcePods: boolean;
  readonly reservedGroups?: readonly ReservedGroup[];
  /**
   * True when the CPU manager's policy is none: the kubepods group gets all CPUs. On v2 that also keeps systemd from
   * taking the cpuset controller, which it would not know to be in use, away from the group again.
   */
  readonly allCpus?: boolean;
  /** Huge page sizes of the node in the kernel's words (`2MB`). */
  readonly hugePageSizes?: readonly string[];
  /** Set when memory requests protect pods (feature gate MemoryQoS); v1 has nothing of the kind. */
  readonly memoryQos?: MemoryQosPolicy;
  /** Told, with `memoryQos`, what is kept for the pods of the classes: for Guaranteed ones always, for Burstable ones if it can be; bytes. */
  readonly onMemoryKept?: (kept: { readonly min: bigint; readonly low: bigint }) => void;
  /** True for a pod that owns exclusive CPUs: it gets no CFS quota. */
  readonly hasExclusiveCpus?: (pod: BoundPod) => boolean;
}

const classes: readonly QosClass[] = ["BestEffort", "Burstable", "Guaranteed"];
/** Tries to give a group its controllers, and milliseconds between two. */
const makeTries = 20;
const makePause = 50;
/** Huge page "limit" of the QoS groups: none. */
const unbounded = 2n ** 62n;

/** Pods' control groups on cgroup v1 or v2, made directly or through systemd (runtime-contract.md section 6). */
export function createCgroupManager(
  options: CgroupManagerOptions,
): CgroupManager & OrphanGroups & GroupKiller & PodGroupLimits {
  return new Manager(options);
}

class Manager implements CgroupManager, OrphanGroups, GroupKiller, PodGroupLimits {
  readonly version: 1 | 2;
  readonly driver: Driver;
  readonly #options: CgroupManagerOptions;
  readonly #tree: GroupTree;
  readonly #slices: Slices | undefined;
  readonly #base: GroupName;
  readonly #kubepods: GroupName;

  constructor(options: CgroupManagerOptions) {
    this.#options = options;
    this.driver = options.driver;
    this.version = options.hierarchies.version;
    this.#tree = new GroupTree(options);
    this.#slices = options.driver === "systemd" ? new Slices({ ...options, version: this.version }) : undefined;
    this.#base = parseRoot(options.cgroupRoot);
    this.#kubepods = [...this.#base, "kubepods"];
  }

  #path(name: GroupName): string {
    return groupPath(name, this.driver);
  }

  async setUpNode(signal?: AbortSignal): Promise<void> {
    const goOn = () => {
      if (signal?.aborted) throw abortedBy(signal);
    };
    const { reservedGroups = [], hugePageSizes = [], log } = this.#options;
    await this.#checkRoot();
    for (const name of ["pids", ...hugePageSizes.length > 0 ? ["hugetlb"] : []]) {
      if (!this.#tree.roots.has(name)) {
        log.warn(`cgroup controller ${name} is not available: its limits are not enforced`, { controller: name });
      }
    }
    const kubepods = this.#path(this.#kubepods);
    goOn();
    await this.#make(kubepods);
    goOn();
    const huge = Object.fromEntries(hugePageSizes.map((size) => [size, unbounded]));
    for (const qos of ["Burstable", "BestEffort"] as const) {
      goOn();
      const path = this.#path(qosName(this.#kubepods, qos));
      const fresh = (await this.#tree.missing(path)).length > 0;
      if (fresh) await this.#make(path);
      // A group that a former life of the agent made keeps its shares until updateQos knows the pods.
      const shares = qos === "BestEffort" || fresh ? { cpuShares: minCpuShares } : {};
      await this.#apply(path, { ...shares, hugepages: huge });
    }
    goOn();
    // Last: it fails while pods use more than the node now allows, and then is tried again by the caller.
    try {
      await this.#apply(kubepods, await this.#nodeLimits());
    } catch (thrown) {
      throw new KubeletError(
        "Cgroup",
        `Failed to update Node Allocatable Limits ${JSON.stringify(kubepods)}: ${messageOf(thrown)}`,
        {
          cause: thrown,
        },
      );
    }
    for (const group of reservedGroups) await this.#enforceReserved(group);
  }

  async #checkRoot(): Promise<void> {
    if (this.#base.length === 0) return;
    const path = this.#path(this.#base);
    const missing = await this.#tree.missing(path);
    if (missing.length > 0) {
      throw new KubeletError(
        "Cgroup",
        `cgroupRoot ${this.#options.cgroupRoot} (${path}) must exist with all controllers; it lacks ` +
          `${missing.join(", ")}: create it, or set cgroupRoot to /`,
      );
    }
  }

  async #nodeLimits(): Promise<GroupLimits> {
    const { nodeCapacity, reserved = {}, enforcePods, hugePageSizes = [] } = this.#options;
    const cpus = await this.#allCpus();
    const amounts: Amounts = {};
    for (const [name, all] of Object.entries(nodeCapacity)) {
      const left = enforcePods ? all - (Object.hasOwn(reserved, name) ? reserved[name] ?? 0n : 0n) : all;
      amounts[name] = left < 0n ? 0n : left;
    }
    return {
      ...limitsOf(amounts, hugePageSizes),
      ...(cpus === "" ? {} : { cpus }),
    };
  }

  /** The machine's CPUs as a list (`0-3`); empty when the group gets none of its own. v1 groups inherit them. */
  async #allCpus(): Promise<string> {
    const root = this.#tree.roots.get("cpuset");
    if (!this.#options.allCpus || this.version === 1 || root === undefined) return "";
    return (await this.#options.host.readText(`${root}/cpuset.cpus.effective`)).trim();
  }

  async #enforceReserved({ purpose, cgroup, limits, compressibleOnly }: ReservedGroup): Promise<void> {
    const name = this.driver === "systemd"
      ? cgroup.split("/").at(-1)?.replace(/\.slice$/, "").split("-").map((p) => p.replaceAll("_", "-")) ?? []
      : parseRoot(cgroup.startsWith("/") ? cgroup : `/${cgroup}`);
    const path = this.#path(name);
    try {
      const missing = await this.#tree.missing(path);
      if (missing.length > 0) throw new Error(`it must exist; missing: ${missing.join(", ")}`);
      const all = limitsOf(limits, this.#options.hugePageSizes ?? []);
      const kept = this.#options.memoryQos && all.memoryLimit !== undefined ? { memoryMin: all.memoryLimit } : {};
      await this.#apply(
        path,
        compressibleOnly ? { ...(all.cpuShares ? { cpuShares: all.cpuShares } : {}) } : { ...all, ...kept },
      );
    } catch (thrown) {
      throw new KubeletError(
        "Cgroup",
        `Failed to enforce ${purpose} limits on cgroup ${JSON.stringify(cgroup)}: ${messageOf(thrown)}`,
        { cause: thrown },
      );
    }
  }

  parentOf(pod: BoundPod): string {
    return this.#path([...qosName(this.#kubepods, qosClass(pod)), podPart(pod.metadata.uid)]);
  }

  wantedLimits(pod: BoundPod): PodCgroupLimits {
    const { cpuCFSQuota, cpuCFSQuotaPeriod, podPidsLimit, hugePageSizes, hasExclusiveCpus } = this.#options;
    return podCgroupLimits(pod, {
      cpuCfsQuota: cpuCFSQuota && !hasExclusiveCpus?.(pod),
      cpuPeriodUs: cpuCFSQuotaPeriod,
      podPidsLimit,
      ...(hugePageSizes ? { hugePageSizes } : {}),
    });
  }

  async readLimits(pod: BoundPod): Promise<GroupState> {
    return await readGroupState(this.#options.host, this.#tree, this.parentOf(pod));
  }

  async setLimits(pod: BoundPod, limits: Partial<PodCgroupLimits>): Promise<void> {
    await this.#apply(this.parentOf(pod), limits);
  }

  async memoryInUse(podUid: string, containerId?: string): Promise<bigint | undefined> {
    const [group] = await this.#groupsOf(podUid, containerId);
    return group === undefined ? undefined : await memoryUsed(this.#options.host, this.#tree, group);
  }

  async ensurePod(pod: BoundPod): Promise<void> {
    const path = this.parentOf(pod);
    const limits = this.wantedLimits(pod);
    if ((await this.#tree.missing(path)).length > 0) await this.#make(path);
    const { memoryQos } = this.#options;
    await this.#apply(path, { ...limits, ...(memoryQos ? keeps(podMemoryReserve(pod, memoryQos)) : {}) });
  }

  async podExists(pod: BoundPod): Promise<boolean> {
    return (await this.#tree.missing(this.parentOf(pod))).length === 0;
  }

  async destroyPod(podUid: string): Promise<void> {
    const part = podPart(podUid);
    for (const qos of classes) {
      const path = this.#path([...qosName(this.#kubepods, qos), part]);
      if (!await this.#tree.anywhere(path)) continue;
      await killGroup({ ...this.#options, tree: this.#tree }, path, podUid);
      await this.#slices?.stop(path);
      await this.#tree.remove(path);
    }
  }

  async minimiseCpu(podUid: string): Promise<void> {
    for (const qos of classes) {
      const path = this.#path([...qosName(this.#kubepods, qos), podPart(podUid)]);
      if (await this.#tree.anywhere(path)) await this.#apply(path, { cpuShares: minCpuShares }, { remains: true });
    }
  }

  /** The pod's groups that are there, whatever QoS they are under; with a container's id, those of that container. */
  async #groupsOf(podUid: string, containerId?: string): Promise<string[]> {
    const found: string[] = [];
    for (const qos of classes) {
      const path = this.#path([...qosName(this.#kubepods, qos), podPart(podUid)]);
      if (!await this.#tree.anywhere(path)) continue;
      if (containerId === undefined) found.push(path);
      else found.push(...await this.#containerGroups(path, containerId));
    }
    return found;
  }

  /** Groups directly in the pod's that a runtime has named by the container: `<id>`, `<prefix>-<id>.scope`. */
  async #containerGroups(pod: string, containerId: string): Promise<string[]> {
    if (!/^[A-Za-z0-9_.]{8,200}$/.test(containerId)) return [];
    const names = await this.#tree.children(pod);
    return names.filter((name) => name.replace(/\.scope$/, "").split(/[-:]/).at(-1) === containerId)
      .map((name) => `${pod}/${name}`);
  }

  async processesOf(podUid: string, containerId?: string): Promise<number[] | undefined> {
    const groups = await this.#groupsOf(podUid, containerId);
    if (groups.length === 0) return undefined;
    return (await Promise.all(groups.map((group) => this.#tree.pids(group)))).flat();
  }

  async killProcesses(podUid: string, containerId?: string): Promise<number[]> {
    const killed: number[] = [];
    for (const group of await this.#groupsOf(podUid, containerId)) {
      killed.push(...await killGroup({ ...this.#options, tree: this.#tree }, group, podUid));
    }
    return killed;
  }

  async podsWithGroups(signal?: AbortSignal): Promise<string[]> {
    const uids = new Set<string>();
    for (const qos of classes) {
      if (signal?.aborted) throw abortedBy(signal);
      const name = qosName(this.#kubepods, qos);
      for (const directory of await this.#tree.children(this.#path(name))) {
        const uid = podUidOf(directory, name, this.driver);
        if (uid !== undefined) uids.add(uid);
      }
    }
    return [...uids].sort();
  }

  async updateQos(pods: readonly BoundPod[]): Promise<void> {
    const shares = qosShares(pods);
    const { memoryQos } = this.#options;
    const reserve = memoryQos && nodeMemoryReserve(pods, memoryQos);
    await this.#apply(this.#path(qosName(this.#kubepods, "Burstable")), {
      cpuShares: shares.burstable,
      ...(reserve ? keeps(reserve.burstable) : {}),
    });
    if (reserve) {
      await this.#apply(this.#path(this.#kubepods), keeps(reserve.kubepods));
      this.#options.onMemoryKept?.({ min: reserve.guaranteedBytes, low: reserve.burstable.low ?? 0n });
    }
    await this.#apply(this.#path(qosName(this.#kubepods, "BestEffort")), { cpuShares: shares.besteffort });
  }

  async #make(path: string): Promise<void> {
    await this.#slices?.start(path, () => this.#tree.anywhere(path));
    for (let tries = 1;; tries++) {
      await this.#tree.make(path);
      const missing = await this.#tree.missing(path);
      if (missing.length === 0) return;
      if (tries === makeTries) {
        throw new KubeletError(
          "Cgroup",
          `cgroup ${path} lacks the controllers ${missing.join(", ")} after it was made: ` +
            `enable them in cgroup.subtree_control of the groups above`,
        );
      }
      // systemd, when it makes a neighbour, takes away controllers that no unit it knows asks for.
      await this.#options.clock.sleep(makePause);
    }
  }

  async #apply(path: string, limits: GroupLimits, options: { remains?: boolean } = {}): Promise<void> {
    await this.#slices?.set(path, limits);
    await this.#tree.apply(path, limits, options);
  }
}

/** What a group keeps, as limits. */
function keeps({ min, low }: MemoryReserve): GroupLimits {
  return { ...(min === undefined ? {} : { memoryMin: min }), ...(low === undefined ? {} : { memoryLow: low }) };
}

/** Limits of a group that holds these amounts. */
function limitsOf(amounts: Amounts, hugePageSizes: readonly string[]): GroupLimits {
  const has = (name: string) => Object.hasOwn(amounts, name) ? amounts[name] : undefined;
  const cpu = has("cpu");
  const memory = has("memory");
  const pids = has("pids");
  return {
    ...(cpu === undefined ? {} : { cpuShares: cpuShares(cpu) }),
    ...(memory === undefined ? {} : { memoryLimit: memory }),
    ...(pids === undefined ? {} : { pidsLimit: Number(pids) }),
    hugepages: hugePageLimits(amounts, hugePageSizes),
  };
}
