import type { Host } from "../../mod/base/host.ts";

const setgid = 0o2000;

/** A file's mode when its volume belongs to a group (features.md section 11, fsGroup). */
export function fsGroupFileMode(mode: number, readOnly: boolean): number {
  return mode | (readOnly ? 0o440 : 0o660);
}

/** A directory's mode when its volume belongs to a group. */
export function fsGroupDirMode(mode: number, readOnly: boolean): number {
  return fsGroupFileMode(mode, readOnly) | 0o110 | setgid;
}

/** Gives one directory to a group. The walk over contents that were there before is not made here. */
export async function giveDirectory(host: Host, dir: string, gid: number, readOnly: boolean): Promise<void> {
  const info = await host.lstat(dir);
  if (info?.kind !== "directory") return;
  await host.chown(dir, info.uid, gid);
  // Changing the owner can clear setgid: the mode comes after.
  await host.chmod(dir, fsGroupDirMode(info.mode, readOnly));
}
