import type { Clock } from "../../mod/base/clock.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { podDir, podLogDirIfAny, podVolumeDir } from "../../mod/pod/config/paths.ts";
import type { DiskUsage, Usage } from "./disk_usage.ts";
import { Measured } from "./measured.ts";
import { fsOf } from "./node_files.ts";
import type { ToldContainer } from "./told.ts";
import type { ContainerSample, FsSample, PodSample, VolumeSample } from "./types.ts";

/** Kinds of volumes that are directories of the node, with their plugins. */
const plugins = {
  emptyDir: "kubernetes.io/empty-dir",
  configMap: "kubernetes.io/configmap",
  secret: "kubernetes.io/secret",
  projected: "kubernetes.io/projected",
  downwardAPI: "kubernetes.io/downward-api",
} as const;

interface Space {
  readonly told: ReadonlyMap<string, ToldContainer> | undefined;
  readonly nodeFs: FsSample | undefined;
  readonly imageFs: FsSample | undefined;
}

/** How long the room on volumes in memory is kept, milliseconds. */
const keepMs = 60_000;

export interface PodFilesOptions {
  readonly host: Pick<Host, "space">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: Scope;
  readonly usage: DiskUsage;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly podByUid: (uid: string) => BoundPod | undefined;
  /** Longest that a directory that was never measured is waited for, milliseconds. */
  readonly patienceMs: number;
  /** Volumes of a pod whose drivers tell what they take (CSI, local), beside those that are directories of the node. */
  readonly otherVolumes?: (uid: string) => Promise<readonly VolumeSample[]>;
}

/** Adds what pods use of file systems: writable layers, logs, volumes that are directories of the node. */
export class PodFiles {
  readonly #o: PodFilesOptions;
  readonly #space: Measured<FsSample>;

  constructor(options: PodFilesOptions) {
    this.#o = options;
    const { host, clock } = options;
    this.#space = new Measured({
      ...options,
      name: "room on volumes in memory",
      keepMs,
      forgetMs: 5 * keepMs,
      measure: (path) => fsOf(host, path, () => clock.now()),
    });
  }

  /** The pods with what they use; what is not measured yet is left out. */
  async complete(pods: readonly PodSample[], space: Space): Promise<PodSample[]> {
    const places = pods.map((pod) => this.#placesOf(pod));
    const paths = places.flatMap(({ logs, volumes, hosts }) => [
      ...logs.values(),
      ...volumes.map(({ path }) => path),
      hosts,
    ]);
    const { patienceMs, otherVolumes } = this.#o;
    const usage = await this.#o.usage.of(paths, patienceMs);
    const inMemory = places.flatMap(({ volumes }) => volumes.filter(({ memory }) => memory).map(({ path }) => path));
    // Of those that are there: a volume that is not mounted lies on the node's disk still.
    const room = await this.#space.of(inMemory.filter((path) => usage.has(path)), patienceMs);
    const others = await Promise.all(pods.map(({ uid }) => otherVolumes?.(uid)));
    return pods.map((pod, index) => {
      const place = places[index];
      return place ? completed(pod, place, { ...space, usage, room, others: others[index] ?? [] }) : pod;
    });
  }

  #placesOf(pod: PodSample): Places {
    const { rootDir, podLogsDir, podByUid } = this.#o;
    const dir = podLogDirIfAny(podLogsDir, { metadata: pod });
    const volumes: PlacedVolume[] = [];
    for (const volume of podByUid(pod.uid)?.spec.volumes ?? []) {
      for (const [kind, plugin] of Object.entries(plugins)) {
        if (volume[kind as keyof typeof plugins] === undefined) continue;
        const path = podVolumeDir(rootDir, pod.uid, plugin, volume.name);
        const medium = volume.emptyDir?.medium ?? "";
        volumes.push({
          name: volume.name,
          path,
          // Contents of the API's objects never touch the disk, but for those of ConfigMaps.
          memory: medium === "Memory" || ["secret", "projected", "downwardAPI"].includes(kind),
          ephemeral: kind === "configMap" || (kind === "emptyDir" && medium === ""),
        });
      }
    }
    return {
      logs: new Map(dir === undefined ? [] : pod.containers.map(({ name }) => [name, `${dir}/${name}`])),
      volumes,
      hosts: `${podDir(rootDir, pod.uid)}/etc-hosts`,
    };
  }
}

interface Places {
  readonly logs: ReadonlyMap<string, string>;
  readonly volumes: readonly PlacedVolume[];
  readonly hosts: string;
}

interface PlacedVolume {
  readonly name: string;
  readonly path: string;
  /** On a file system of its own, in memory. */
  readonly memory: boolean;
  /** Counts towards the pod's ephemeral storage. */
  readonly ephemeral: boolean;
}

interface Found extends Space {
  readonly usage: ReadonlyMap<string, Usage>;
  readonly room: ReadonlyMap<string, FsSample>;
  readonly others: readonly VolumeSample[];
}

function completed(pod: PodSample, places: Places, found: Found): PodSample {
  const { told, nodeFs, imageFs, usage, room, others } = found;
  let used = 0, inodesUsed = 0;
  const add = (fs: FsSample | undefined) => {
    used += fs?.used ?? 0;
    inodesUsed += fs?.inodesUsed ?? 0;
  };
  const containers = pod.containers.map((container): ContainerSample => {
    const layer = told?.get(container.id)?.layer;
    const rootfs = layer && part(imageFs, { at: layer.at, bytes: layer.used, inodes: layer.inodes });
    const measured = usage.get(places.logs.get(container.name) ?? "");
    const logs = measured && part(nodeFs, measured);
    add(rootfs);
    add(logs);
    return { ...container, ...(rootfs ? { rootfs } : {}), ...(logs ? { logs } : {}) };
  });
  const volumes = places.volumes.flatMap(({ name, path, memory, ephemeral }): VolumeSample[] => {
    const measured = usage.get(path);
    if (!measured) return [];
    const fs = part(memory ? room.get(path) : nodeFs, measured);
    if (ephemeral) add(fs);
    return [{ name, ...fs }];
  });
  volumes.push(...others);
  const hosts = usage.get(places.hosts);
  if (hosts) add(part(nodeFs, hosts));
  return {
    ...pod,
    containers,
    ...(volumes.length > 0 ? { volumes } : {}),
    ...(nodeFs ? { ephemeralStorage: part(nodeFs, { at: nodeFs.at, bytes: used, inodes: inodesUsed }) } : {}),
  };
}

/** What a part uses of a file system, with the room that is left on the whole. */
function part(
  whole: FsSample | undefined,
  { at, bytes, inodes }: { at: number; bytes: number | undefined; inodes: number | undefined },
): FsSample {
  const { available, capacity, inodesFree, inodes: all } = whole ?? {};
  return {
    at,
    ...(available === undefined ? {} : { available }),
    ...(capacity === undefined ? {} : { capacity }),
    ...(bytes === undefined ? {} : { used: bytes }),
    ...(inodesFree === undefined ? {} : { inodesFree }),
    ...(all === undefined ? {} : { inodes: all }),
    ...(inodes === undefined ? {} : { inodesUsed: inodes }),
  };
}
