import { setImmediate as nextTurn } from "node:timers/promises";
import type { ImageService, RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { ObservedPod } from "../../mod/pod/observed.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { DiskUsage } from "./disk_usage.ts";
import { FileSystems } from "./file_systems.ts";
import { type FoundGroups, GroupFinder } from "./group_finder.ts";
import { GroupReader } from "./group_reader.ts";
import type { StatHierarchies } from "./group_source.ts";
import { KeptFiles } from "./kept_files.ts";
import { Measured } from "./measured.ts";
import { bootTime, diskTraffic, networkOf, rlimit } from "./node_files.ts";
import { PodFiles, type PodFilesOptions } from "./pod_files.ts";
import { ProcessFiles } from "./process_files.ts";
import { sumOf } from "./sum.ts";
import { type ToldContainer, toldContainer } from "./told.ts";
import { Rates } from "./rates.ts";
import type {
  ContainerSample,
  Detail,
  NetworkSample,
  NodeSample,
  PodSample,
  RatedSample,
  StatsSnapshot,
  SystemSample,
} from "./types.ts";

export interface StatsOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns what goes on behind an answer (disk usage). */
  readonly scope: Scope;
  readonly runtime: Pick<RuntimeService, "listContainerStats">;
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly hierarchies: StatHierarchies;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly podLogsDir: string;
  /** Every pod that the runtime knows. */
  readonly observed: () => Iterable<ObservedPod>;
  readonly podByUid: (uid: string) => BoundPod | undefined;
  /** Where a pod's group may be, most likely first; paths below the hierarchies. */
  readonly podGroups: (uid: string, pod: BoundPod | undefined) => readonly string[];
  /** Groups of the node's own services; the kubelet's own group is asked of the kernel when it is not given. */
  readonly systemGroups: readonly { readonly name: SystemSample["name"]; readonly group: string }[];
  /** How long measured disk usage is good for, milliseconds; default a minute. */
  readonly keepMs?: number;
  /** Volumes of a pod whose drivers tell what they take (CSI, local). */
  readonly otherVolumes?: NonNullable<PodFilesOptions["otherVolumes"]>;
  /** Told how long it took to measure what a directory takes. */
  readonly onMeasured?: (path: string, seconds: number) => void;
}

/** Gives statistics when asked. */
export interface StatsSource {
  /**
   * A collection of at least that detail; one that is not older than `youngerMs` is taken when there is one. Callers
   * that come within a second of one share it; nothing is read while nobody asks. Rejects with code Host when the
   * node's own figures cannot be read.
   */
  collect(detail: Detail, youngerMs?: number): Promise<StatsSnapshot>;
}

/** How long a collection is shared, milliseconds. */
const shareMs = 1000;
/** Longest that a first answer waits for disk usage, and for figures that the runtime gives, milliseconds. */
const patienceMs = 500;
const runtimeLimitMs = 2000;
/** The runtime's own figures change each ten seconds or so; older ones than that are given for a while. */
const toldKeptMs = 10_000;
const toldForgottenMs = 120_000;
/** Groups that are read at once; then other work has its turn. One takes about a tenth of a millisecond. */
const groupsAtOnce = 40;

/** Makes the source of statistics (metrics.md section 9). */
export function createStats(options: StatsOptions): StatsSource {
  return new Collector(options);
}

/** Which collections hold all that one of this detail holds. */
const coveredBy: Readonly<Record<Detail, readonly Detail[]>> = {
  node: ["node", "summary", "cadvisor"],
  resource: ["resource", "summary", "cadvisor"],
  summary: ["summary", "cadvisor"],
  cadvisor: ["cadvisor"],
};

class Collector implements StatsSource {
  readonly #o: StatsOptions;
  readonly #rates = new Rates();
  readonly #reader: GroupReader;
  readonly #groups: GroupFinder;
  readonly #files: PodFiles;
  readonly #open: ProcessFiles;
  readonly #fileSystems: FileSystems;
  readonly #told: Measured<Told>;
  readonly #running = new Map<Detail, Promise<StatsSnapshot>>();
  readonly #last = new Map<Detail, StatsSnapshot>();
  #boot: number | undefined;
  /** Groups read since other work could run. */
  #read = 0;

  constructor(options: StatsOptions) {
    this.#o = options;
    const { clock } = options;
    this.#reader = new GroupReader({ ...options, now: () => clock.now(), files: new KeptFiles(options) });
    this.#groups = new GroupFinder(options);
    this.#files = new PodFiles({ ...options, usage: new DiskUsage(options), patienceMs });
    this.#open = new ProcessFiles(options);
    this.#fileSystems = new FileSystems({ ...options, limitMs: runtimeLimitMs });
    this.#told = new Measured({
      ...options,
      name: "runtime's statistics of containers",
      keepMs: toldKeptMs,
      forgetMs: toldForgottenMs,
      measure: async (_key, signal, last) => await this.#askRuntime(signal) ?? last,
    });
  }

  async collect(detail: Detail, youngerMs = shareMs): Promise<StatsSnapshot> {
    const { clock } = this.#o;
    for (const [had, last] of this.#last) {
      const age = clock.now() - last.at;
      if (coveredBy[detail].includes(had) && age >= 0 && age < youngerMs) return last;
    }
    for (const [running, promise] of this.#running) if (coveredBy[detail].includes(running)) return await promise;
    const promise = this.#collect(detail);
    this.#running.set(detail, promise);
    try {
      const snapshot = await promise;
      this.#last.set(detail, snapshot);
      return snapshot;
    } finally {
      this.#running.delete(detail);
    }
  }

  async #collect(detail: Detail): Promise<StatsSnapshot> {
    const { clock, observed, systemGroups } = this.#o;
    const at = clock.now();
    const listed = [...observed()].map(shown).filter((each) => each !== undefined);
    if (detail === "node") {
      const node = await this.#node(detail);
      await this.#keepRates(listed);
      return { at, detail, node, pods: [] };
    }
    const whole = detail !== "resource";
    const [node, told] = await Promise.all([this.#node(detail), whole ? this.#toldByRuntime(listed) : undefined]);
    const found: PodSample[] = [];
    for (const each of listed) found.push(await this.#pod(each, detail));
    const pods = await this.#withTold(detail === "cadvisor" ? await this.#withOpenFiles(found) : found);
    const full = whole ? await this.#files.complete(pods, { told, nodeFs: node.fs, imageFs: node.imageFs }) : pods;
    const groups = new Set(["/", ...systemGroups.map(({ group }) => group), ...pods.flatMap(keysOf)]);
    this.#rates.keep(groups);
    this.#reader.keep(groups);
    this.#groups.keep(new Set(listed.map(({ pod }) => pod.uid)));
    return { at, detail, node, pods: full };
  }

  /** One small file of each pod and container, so that whoever asks for statistics is told their rates at once. */
  async #keepRates(listed: readonly Shown[]): Promise<void> {
    const { clock } = this.#o;
    for (const each of listed) {
      const found = await this.#groupsOf(each);
      if (!found) continue;
      for (const path of [found.group, ...each.containers.map(({ id }) => found.members.get(id))]) {
        if (path === undefined) continue;
        await this.#turn();
        const cpuNs = this.#reader.cpuNs(path);
        if (cpuNs !== undefined) this.#rates.next(path, { at: clock.now(), cpuNs });
      }
    }
  }

  /** The groups of what is shown of a pod; undefined when it has none. */
  async #groupsOf({ pod: { uid }, sandbox, containers }: Shown): Promise<FoundGroups | undefined> {
    const ids = [...(sandbox ? [sandbox.id] : []), ...containers.map(({ id }) => id)];
    return await this.#groups.find(uid, this.#o.podByUid(uid), ids);
  }

  /** Before each group that is read: other work has its turn now and then. */
  async #turn(): Promise<void> {
    if (++this.#read < groupsAtOnce) return;
    this.#read = 0;
    await nextTurn();
  }

  /** A group's sample with its rate; undefined when there is no such group. */
  async #sample(path: string, detail: Detail): Promise<RatedSample | undefined> {
    await this.#turn();
    const sample = this.#reader.sample(path, detail);
    if (!sample) return undefined;
    const nanoCores = this.#rates.next(path, sample);
    return nanoCores === undefined ? sample : { ...sample, nanoCores };
  }

  async #pod(shown: Shown, detail: Detail): Promise<PodSample> {
    const { pod: { uid, name, namespace }, sandbox, containers } = shown;
    const found = await this.#groupsOf(shown);
    const sandboxGroup = sandbox && found?.members.get(sandbox.id);
    const sample = found && await this.#sample(found.group, detail);
    const ofSandbox = sandboxGroup !== undefined && detail === "cadvisor"
      ? await this.#sample(sandboxGroup, detail)
      : undefined;
    const members: ContainerSample[] = [];
    for (const { name, id, image, createdAt } of containers) {
      const group = found?.members.get(id);
      const own = group === undefined ? undefined : await this.#sample(group, detail);
      members.push({ name, id, image, startedAt: createdAt, group, sample: own });
    }
    const network = detail !== "resource" && found &&
      (this.#network(ofSandbox?.processes) ?? this.#networkIn([sandboxGroup, ...found.members.values()]));
    return {
      uid,
      name,
      namespace,
      startedAt: sandbox?.createdAt ?? 0,
      group: found?.group,
      sample,
      ...(sandbox && sandboxGroup !== undefined
        ? { sandbox: { id: sandbox.id, group: sandboxGroup, sample: ofSandbox } }
        : {}),
      containers: members,
      ...(network ? { network } : {}),
    };
  }

  /** The network of the first of these processes. */
  #network(pids: readonly number[] | undefined): NetworkSample | undefined {
    const { host, clock } = this.#o;
    const [pid] = pids ?? [];
    return pid === undefined ? undefined : networkOf(host, pid, () => clock.now());
  }

  /** The network of the first of these groups that has a process: all containers of a pod share one. */
  #networkIn(groups: readonly (string | undefined)[]): NetworkSample | undefined {
    for (const group of groups) {
      const network = group === undefined ? undefined : this.#network(this.#reader.processes(group));
      if (network) return network;
    }
    return undefined;
  }

  /** What the processes of containers and sandboxes have open. */
  async #withOpenFiles(pods: readonly PodSample[]): Promise<PodSample[]> {
    const pids = new Map<string, readonly number[]>();
    const note = (group: string | undefined, sample: RatedSample | undefined) => {
      if (group !== undefined && sample?.processes?.length) pids.set(group, sample.processes);
    };
    for (const { sandbox, containers } of pods) {
      note(sandbox?.group, sandbox?.sample);
      for (const { group, sample } of containers) note(group, sample);
    }
    const open = await this.#open.of(pids, patienceMs);
    const added = <T extends { readonly group: string | undefined; readonly sample: RatedSample | undefined }>(
      to: T,
    ) => {
      const files = open.get(to.group ?? "");
      return files && to.sample ? { ...to, sample: { ...to.sample, open: files } } : to;
    };
    return pods.map((pod) => ({
      ...pod,
      ...(pod.sandbox ? { sandbox: added(pod.sandbox) } : {}),
      containers: pod.containers.map(added),
    }));
  }

  async #node(detail: Detail): Promise<NodeSample> {
    const { host, clock, nodeName } = this.#o;
    const now = () => clock.now();
    const whole = detail !== "resource";
    const boot = this.#boot ??= bootTime(host);
    const [capacity, fileSystems] = await Promise.all([
      host.capacity(),
      whole ? this.#fileSystems.read() : undefined,
    ]);
    const { disks, ...spaces } = fileSystems ?? {};
    const sample = await this.#sample("/", detail);
    const network = whole ? networkOf(host, 1, now) : undefined;
    const traffic = detail === "cadvisor" ? diskTraffic(host) : undefined;
    return {
      name: nodeName,
      startedAt: boot,
      memoryCapacity: capacity.memory,
      swapCapacity: capacity.swap,
      cpus: capacity.cpus,
      sample: sample ?? { at: now() },
      system: whole ? await this.#system(detail, boot) : [],
      ...(network ? { network } : {}),
      ...spaces,
      ...(traffic && disks
        ? {
          disks: disks.map((disk) => {
            const moved = traffic.get(disk.device.slice(disk.device.lastIndexOf("/") + 1));
            return moved ? { ...disk, traffic: moved } : disk;
          }),
        }
        : {}),
      ...(whole ? { rlimit: rlimit(host, now) } : {}),
    };
  }

  async #system(detail: Detail, boot: number): Promise<SystemSample[]> {
    const { systemGroups } = this.#o;
    const found: SystemSample[] = [];
    for (const { name, group } of systemGroups) {
      const sample = await this.#sample(group, detail);
      const made = sample && await this.#groups.madeAt(group);
      if (sample) found.push({ name, group, startedAt: made ?? boot, sample });
    }
    return found;
  }

  /** Containers whose groups were not found get what the runtime tells of them, and their pods the sum. */
  async #withTold(pods: readonly PodSample[]): Promise<PodSample[]> {
    if (pods.every(({ containers }) => containers.every(({ sample }) => sample))) return [...pods];
    const told = await this.#toldByRuntime([]);
    return pods.map((pod) => {
      const containers = pod.containers.map((container) => {
        const sample = container.sample ?? told.get(container.id)?.sample;
        if (!sample || container.sample) return container;
        const nanoCores = this.#rates.next(container.id, sample);
        return { ...container, sample: nanoCores === undefined ? sample : { ...sample, nanoCores } };
      });
      return { ...pod, containers, sample: pod.sample ?? sumOf(containers) };
    });
  }

  /** What the runtime tells of containers, by id; what it told last while it has not answered again. */
  async #toldByRuntime(listed: readonly Shown[]): Promise<ReadonlyMap<string, ToldContainer>> {
    const told = (await this.#told.of([""], runtimeLimitMs)).get("");
    if (!told) return new Map();
    const isNew = ({ id, createdAt }: { id: string; createdAt: number }) => createdAt >= told.at && !told.byId.has(id);
    if (!listed.some(({ containers }) => containers.some(isNew))) return told.byId;
    return (await this.#told.renewed("", patienceMs) ?? told).byId;
  }

  async #askRuntime(signal: AbortSignal): Promise<Told | undefined> {
    const { runtime, clock, log } = this.#o;
    const at = clock.now();
    try {
      const all = await runtime.listContainerStats({ timeoutMs: runtimeLimitMs, signal });
      return { at, byId: new Map(all.map((each) => [each.attributes?.id ?? "", toldContainer(each, clock.now())])) };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.warn("the runtime gives no statistics of containers", { error: messageOf(thrown) });
      return undefined;
    }
  }
}

/** What the runtime told of containers, and when it was asked. */
interface Told {
  readonly at: number;
  readonly byId: ReadonlyMap<string, ToldContainer>;
}

interface Shown {
  readonly pod: ObservedPod;
  readonly sandbox: ObservedPod["sandboxes"][number] | undefined;
  readonly containers: readonly ObservedPod["containers"][number][];
}

/** What is told of a pod: its sandbox that is ready, or else its newest, and what runs; undefined when nothing does. */
function shown(pod: ObservedPod): Shown | undefined {
  const containers = pod.containers.filter(({ state }) => state === "running");
  if (containers.length === 0) return undefined;
  return { pod, sandbox: pod.sandboxes.find(({ ready }) => ready) ?? pod.sandboxes[0], containers };
}

/** By which the pod's rates are kept. */
function keysOf(pod: PodSample): string[] {
  const own = pod.containers.flatMap(({ group, id }) => [group, id]);
  return [pod.group, pod.sandbox?.group, ...own].filter((key) => key !== undefined);
}
