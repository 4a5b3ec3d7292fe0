import { posix } from "node:path";
import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { VolumeSpecError } from "./plugin.ts";

/**
 * Directories, relative to a volume's own, over which some container mounts other volumes. A read-only volume must have
 * them before it is mounted, because the runtime cannot make them then. Those below another one are not among them.
 * Throws VolumeSpecError for a mount path that leads out of the container's root.
 */
export function nestedMountPoints(pod: BoundPod, volume: string): string[] {
  const found = new Set<string>();
  for (const { spec } of podContainers(pod)) {
    const mounts = (spec.volumeMounts ?? []).map((m) => ({ ...m, path: posix.normalize(m.mountPath) }));
    const all = mounts.map(({ path }) => path.replace(/(.)\/$/, "$1")).sort();
    for (const { name, path } of mounts) {
      if (name !== volume) continue;
      if (path.startsWith("../") || path === "..") throw new VolumeSpecError(`invalid container mount point ${path}`);
      const prefix = path.endsWith("/") ? path : `${path}/`;
      const below = all.filter((other) => other.startsWith(prefix) && other !== prefix);
      const outermost = below.filter((b) => !below.some((a) => b.startsWith(`${a}/`)));
      for (const b of outermost) found.add(b.slice(prefix.length));
    }
  }
  return [...found];
}
