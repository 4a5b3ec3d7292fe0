import type { BoundPod } from "../../mod/kube/types.ts";
import { podDir, podLogDirIfAny, podVolumeDir } from "../../mod/pod/config/paths.ts";
import type { DiskUsage, Usage } from "./disk_usage.ts";
import type { ToldContainer } from "./told.ts";
import type { ContainerSample, FsSample, PodSample } from "./types.ts";

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

/** Adds what pods use of file systems: writable layers, logs, volumes that are directories of the node. */
export class PodFiles {
  readonly #o: {
    readonly usage: DiskUsage;
    readonly rootDir: string;
    readonly podLogsDir: string;
    readonly podByUid: (uid: string) => BoundPod | undefined;
    readonly patienceMs: number;
  };

  constructor(options: {
    readonly usage: DiskUsage;
    readonly rootDir: string;
    readonly podLogsDir: string;
    readonly podByUid: (uid: string) => BoundPod | undefined;
    /** Longest that a directory that was never measured is waited for, milliseconds. */
    readonly patienceMs: number;
  }) {
    this.#o = options;
  }

  /** The pods with what they use; what is not measured yet is left out. */
  async complete(pods: readonly PodSample[], space: Space): Promise<PodSample[]> {
    const places = pods.map((pod) => this.#placesOf(pod));
    const paths = places.flatMap(({ logs, volumes, hosts }) => [
      ...logs.values(),
      ...volumes.map(({ path }) => path),
      hosts,
    ]);
    const usage = await this.#o.usage.of(paths, this.#o.patienceMs);
    return pods.map((pod, index) => {
      const place = places[index];
      return place ? completed(pod, place, usage, space) : pod;
    });
  }

  #placesOf(pod: PodSample): Places {
    const { rootDir, podLogsDir, podByUid } = this.#o;
    const dir = podLogDirIfAny(podLogsDir, { metadata: pod });
    const volumes: { name: string; path: string; memory: boolean }[] = [];
    for (const volume of podByUid(pod.uid)?.spec.volumes ?? []) {
      for (const [kind, plugin] of Object.entries(plugins)) {
        if (volume[kind as keyof typeof plugins] === undefined) continue;
        const path = podVolumeDir(rootDir, pod.uid, plugin, volume.name);
        volumes.push({ name: volume.name, path, memory: volume.emptyDir?.medium === "Memory" });
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
  readonly volumes: readonly { readonly name: string; readonly path: string; readonly memory: boolean }[];
  readonly hosts: string;
}

function completed(pod: PodSample, places: Places, usage: ReadonlyMap<string, Usage>, space: Space): PodSample {
  const { told, nodeFs, imageFs } = space;
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
  const volumes = places.volumes.flatMap(({ name, path, memory }) => {
    const measured = usage.get(path);
    if (!measured) return [];
    const fs = part(memory ? undefined : nodeFs, measured);
    if (!memory) add(fs);
    return [{ name, ...fs }];
  });
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
