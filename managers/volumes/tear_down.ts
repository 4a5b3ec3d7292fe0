import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { podDir, podSubPathsDir, podVolumesDir, rootPaths } from "../../mod/pod/config/paths.ts";

/** A volume's directory below `pods/<uid>/volumes`. */
export interface VolumeDirectory {
  /** As on disk: `kubernetes.io~empty-dir`. */
  readonly plugin: string;
  readonly name: string;
  readonly path: string;
}

/** Directories in a directory, never through a link; none when it is missing or no directory. */
async function directoriesIn(host: Host, path: string): Promise<string[]> {
  if ((await host.lstat(path))?.kind !== "directory") return [];
  return (await host.readDir(path)).filter((e) => e.kind === "directory").map((e) => e.name).sort();
}

/** Volumes of a pod that are on disk, whoever made them. */
export async function volumesOnDisk(host: Host, rootDir: string, podUid: string): Promise<VolumeDirectory[]> {
  const top = podVolumesDir(rootDir, podUid);
  const found: VolumeDirectory[] = [];
  for (const plugin of await directoriesIn(host, top)) {
    for (const name of await directoriesIn(host, `${top}/${plugin}`)) {
      found.push({ plugin, name, path: `${top}/${plugin}/${name}` });
    }
  }
  return found;
}

/** Mount points at or below a path, innermost and newest first. */
export async function mountsBelow(host: Host, path: string): Promise<string[]> {
  if ((await host.lstat(path))?.kind !== "directory") return [];
  const real = await host.realPath(path);
  return (await host.mounts())
    .filter((m) => m.target === real || m.target.startsWith(`${real}/`))
    .map((m) => m.target)
    .reverse();
}

/** Unmounts all at and below a path, then removes it; what a mount showed is never touched. */
export async function unmountAndRemove(host: Host, path: string): Promise<void> {
  for (const target of await mountsBelow(host, path)) await host.unmount(target);
  await host.removeTree(path);
}

/** Takes away the sub-path mounts of a pod. The bind mounts' targets may be files. */
export async function removeSubPaths(host: Host, rootDir: string, podUid: string): Promise<void> {
  await unmountAndRemove(host, podSubPathsDir(rootDir, podUid));
}

/** Removes what is left of a pod's volumes once each is torn down. The pod's own directory stays. */
export async function removeVolumeDirectories(host: Host, rootDir: string, podUid: string): Promise<void> {
  const top = podDir(rootDir, podUid);
  const failures: string[] = [];
  for (const name of ["volumes", "volumeDevices", "plugins"]) {
    try {
      await host.removeTree(`${top}/${name}`);
    } catch (thrown) {
      failures.push(messageOf(thrown));
    }
  }
  if (failures.length > 0) {
    throw new KubeletError("Volume", `pod ${podUid}: volume directories cannot be removed: ${failures.join("; ")}`);
  }
}

/** True when anything of the pod's volumes is on disk or mounted. */
export async function hasVolumesOnDisk(host: Host, rootDir: string, podUid: string): Promise<boolean> {
  if ((await volumesOnDisk(host, rootDir, podUid)).length > 0) return true;
  if ((await directoriesIn(host, podSubPathsDir(rootDir, podUid))).length > 0) return true;
  return (await mountsBelow(host, podDir(rootDir, podUid))).length > 0;
}

/** UIDs of pods with volume directories on disk. */
export async function podsWithVolumes(host: Host, rootDir: string): Promise<string[]> {
  const found: string[] = [];
  for (const uid of await directoriesIn(host, rootPaths.pods(rootDir))) {
    const top = podDir(rootDir, uid);
    const kinds = await Promise.all(["volumes", "volume-subpaths"].map((name) => host.lstat(`${top}/${name}`)));
    if (kinds.some((info) => info?.kind === "directory")) found.push(uid);
  }
  return found;
}
