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
import { GroupFinder } from "./group_finder.ts";
import { readGroup, type StatHierarchies } from "./group_reader.ts";
import { bootTime, networkOf, rlimit } from "./node_files.ts";
import { PodFiles } from "./pod_files.ts";
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
}

/** Gives statistics when asked. */
export interface StatsSource {
  /**
   * A collection of at least that detail. Callers that come within a second of one share it; nothing is read while
   * nobody asks. Rejects with code Host when the node's own figures cannot be read.
   */
  collect(detail: Detail): Promise<StatsSnapshot>;
}

/** How long a collection is shared, milliseconds. */
const shareMs = 1000;
/** Longest that a first answer waits for disk usage, and for figures that the runtime gives, milliseconds. */
const patienceMs = 500;
const runtimeLimitMs = 2000;
/** The runtime's own figures change each ten seconds or so. */
const toldKeptMs = 10_000;

/** Makes the source of statistics (metrics.md section 9). */
export function createStats(options: StatsOptions): StatsSource {
  return new Collector(options);
}

const ranks: Readonly<Record<Detail, number>> = { resource: 0, summary: 1, cadvisor: 2 };

class Collector implements StatsSource {
  readonly #o: StatsOptions;
  readonly #rates = new Rates();
  readonly #groups: GroupFinder;
  readonly #files: PodFiles;
  readonly #fileSystems: FileSystems;
  readonly #running = new Map<Detail, Promise<StatsSnapshot>>();
  #last: StatsSnapshot | undefined;
  #told: { at: number; byId: ReadonlyMap<string, ToldContainer> } | undefined;
  #boot: number | undefined;

  constructor(options: StatsOptions) {
    this.#o = options;
    this.#groups = new GroupFinder(options);
    const usage = new DiskUsage(options);
    this.#files = new PodFiles({ ...options, usage, patienceMs });
    this.#fileSystems = new FileSystems({ ...options, limitMs: runtimeLimitMs });
  }

  async collect(detail: Detail): Promise<StatsSnapshot> {
    const { clock } = this.#o;
    const last = this.#last;
    const age = last ? clock.now() - last.at : Infinity;
    if (last && age >= 0 && age < shareMs && ranks[last.detail] >= ranks[detail]) return last;
    for (const [running, promise] of this.#running) if (ranks[running] >= ranks[detail]) return await promise;
    const promise = this.#collect(detail);
    this.#running.set(detail, promise);
    try {
      return this.#last = await promise;
    } finally {
      this.#running.delete(detail);
    }
  }

  async #collect(detail: Detail): Promise<StatsSnapshot> {
    const { clock, observed } = this.#o;
    const at = clock.now();
    const whole = detail !== "resource";
    const listed = [...observed()].map(shown).filter((each) => each !== undefined);
    const [node, told] = await Promise.all([
      this.#node(detail),
      whole ? this.#toldByRuntime() : undefined,
    ]);
    const pods = await this.#withTold(await Promise.all(listed.map((each) => this.#pod(each, detail))));
    const full = whole ? await this.#files.complete(pods, { told, nodeFs: node.fs, imageFs: node.imageFs }) : pods;
    const { systemGroups } = this.#o;
    this.#rates.keep(new Set(["/", ...systemGroups.map(({ group }) => group), ...pods.flatMap(keysOf)]));
    this.#groups.keep(new Set(listed.map(({ pod }) => pod.uid)));
    return { at, detail, node, pods: full };
  }

  /** A group's sample with its rate; undefined when there is no such group. */
  async #sample(path: string, detail: Detail): Promise<RatedSample | undefined> {
    const { host, hierarchies, clock } = this.#o;
    const sample = await readGroup({ host, hierarchies, path, detail, now: () => clock.now() });
    if (!sample) return undefined;
    const nanoCores = this.#rates.next(path, sample);
    return nanoCores === undefined ? sample : { ...sample, nanoCores };
  }

  async #pod({ pod, sandbox, containers }: Shown, detail: Detail): Promise<PodSample> {
    const { podByUid } = this.#o;
    const { uid, name, namespace } = pod;
    const ids = [...(sandbox ? [sandbox.id] : []), ...containers.map(({ id }) => id)];
    const found = await this.#groups.find(uid, podByUid(uid), ids);
    const whole = detail !== "resource";
    const sandboxGroup = sandbox && found?.members.get(sandbox.id);
    const [sample, sandboxSample, network, members] = await Promise.all([
      found ? this.#sample(found.group, detail) : undefined,
      sandboxGroup !== undefined && detail === "cadvisor" ? this.#sample(sandboxGroup, detail) : undefined,
      whole && found ? this.#network([sandboxGroup, ...found.members.values()]) : undefined,
      Promise.all(containers.map(async (container): Promise<ContainerSample> => {
        const group = found?.members.get(container.id);
        return {
          name: container.name,
          id: container.id,
          image: container.image,
          startedAt: container.createdAt,
          group,
          sample: group === undefined ? undefined : await this.#sample(group, detail),
        };
      })),
    ]);
    return {
      uid,
      name,
      namespace,
      startedAt: sandbox?.createdAt ?? 0,
      group: found?.group,
      sample,
      ...(sandbox && sandboxGroup !== undefined
        ? { sandbox: { id: sandbox.id, group: sandboxGroup, sample: sandboxSample } }
        : {}),
      containers: members,
      ...(network ? { network } : {}),
    };
  }

  /** The network of the first of these groups that has a process: all containers of a pod share one. */
  async #network(groups: readonly (string | undefined)[]): Promise<NetworkSample | undefined> {
    const { host, clock } = this.#o;
    for (const group of groups) {
      const pid = group === undefined ? undefined : await this.#groups.processOf(group);
      const network = pid === undefined ? undefined : await networkOf(host, pid, () => clock.now());
      if (network) return network;
    }
    return undefined;
  }

  async #node(detail: Detail): Promise<NodeSample> {
    const { host, clock, nodeName } = this.#o;
    const now = () => clock.now();
    const whole = detail !== "resource";
    this.#boot ??= await bootTime(host);
    const boot = this.#boot;
    const [capacity, sample, system, network, fileSystems, limits] = await Promise.all([
      host.capacity(),
      this.#sample("/", detail),
      whole ? this.#system(detail, boot) : [],
      whole ? networkOf(host, 1, now) : undefined,
      whole ? this.#fileSystems.read() : undefined,
      whole ? rlimit(host, now) : undefined,
    ]);
    return {
      name: nodeName,
      startedAt: boot,
      memoryCapacity: capacity.memory,
      swapCapacity: capacity.swap,
      cpus: capacity.cpus,
      sample: sample ?? { at: now() },
      system,
      ...(network ? { network } : {}),
      ...fileSystems,
      ...(limits ? { rlimit: limits } : {}),
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
    const told = await this.#toldByRuntime();
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

  /** What the runtime tells of containers, by id; what it told last when it does not answer. */
  async #toldByRuntime(): Promise<ReadonlyMap<string, ToldContainer>> {
    const { runtime, clock, log } = this.#o;
    const last = this.#told;
    if (last && clock.now() - last.at < toldKeptMs) return last.byId;
    try {
      const all = await runtime.listContainerStats({ timeoutMs: runtimeLimitMs });
      const byId = new Map(all.map((each) => [each.attributes?.id ?? "", toldContainer(each, clock.now())]));
      this.#told = { at: clock.now(), byId };
    } catch (thrown) {
      log.warn("the runtime gives no statistics of containers", { error: messageOf(thrown) });
    }
    return this.#told?.byId ?? new Map();
  }
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

/** A pod without a group of its own: the sum of its containers, without pressure. */
function sumOf(containers: readonly ContainerSample[]): RatedSample | undefined {
  const samples = containers.map(({ sample }) => sample).filter((each) => each !== undefined);
  const [first] = samples;
  if (!first) return undefined;
  const sum = (of: (sample: RatedSample) => number | undefined) => {
    const values = samples.map(of).filter((each) => each !== undefined);
    return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0);
  };
  const cpuNs = sum((s) => s.cpuNs), nanoCores = sum((s) => s.nanoCores), swap = sum((s) => s.swap?.usage);
  const memories = samples.map(({ memory }) => memory).filter((each) => each !== undefined);
  const total = (of: (memory: (typeof memories)[number]) => number) => memories.reduce((a, m) => a + of(m), 0);
  return {
    at: first.at,
    ...(cpuNs === undefined ? {} : { cpuNs }),
    ...(nanoCores === undefined ? {} : { nanoCores }),
    ...(swap === undefined ? {} : { swap: { usage: swap } }),
    ...(memories.length === 0 ? {} : {
      memory: {
        usage: total((m) => m.usage),
        workingSet: total((m) => m.workingSet),
        rss: total((m) => m.rss),
        cache: total((m) => m.cache),
        mappedFile: total((m) => m.mappedFile),
        activeFile: total((m) => m.activeFile),
        inactiveFile: total((m) => m.inactiveFile),
        pageFaults: total((m) => m.pageFaults),
        majorPageFaults: total((m) => m.majorPageFaults),
        allPageFaults: total((m) => m.allPageFaults),
        allMajorPageFaults: total((m) => m.allMajorPageFaults),
      },
    }),
  };
}
