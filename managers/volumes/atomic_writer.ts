import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import { VolumeSpecError } from "./plugin.ts";
import { fsGroupDirMode, fsGroupFileMode } from "./ownership.ts";

/** One file of a payload. */
export interface PayloadFile {
  readonly data: string | Uint8Array;
  /** Permission bits; only 0777 counts. */
  readonly mode: number;
  /** Owner of the file; default root. */
  readonly uid?: number;
}

/** Files by their relative path. */
export type Payload = ReadonlyMap<string, PayloadFile>;

const longestPath = 4096;
const longestSegment = 255;
const dataLink = "..data";
const newDataLink = "..data_tmp";

/** Checks a path of a payload and brings it to its plain form (features.md section 11, payload limits). Throws Volume. */
export function payloadPath(path: string): string {
  const refuse = (why: string): never => {
    throw new VolumeSpecError(`invalid path: ${why}: ${JSON.stringify(path.slice(0, 200))}`);
  };
  if (path === "") refuse("must not be empty");
  if (path.startsWith("/")) refuse("must be relative path");
  if (path.length > longestPath) refuse(`must be less than or equal to ${longestPath} characters`);
  const parts = path.split("/");
  if (parts.includes("..")) refuse("must not contain '..'");
  if (parts.some((p) => p.length > longestSegment)) {
    refuse(`filenames must be less than or equal to ${longestSegment} characters`);
  }
  if (path.startsWith("..")) refuse("must not start with '..'");
  if (path.includes("\0")) refuse("must not contain a zero byte");
  const plain = parts.filter((p) => p !== "" && p !== ".");
  if (plain.length === 0) refuse("must name a file");
  if (plain[0]?.startsWith("..")) refuse("must not start with '..'");
  return plain.join("/");
}

function checked(payload: Payload): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  for (const [path, file] of payload) files.set(payloadPath(path), file);
  for (const path of files.keys()) {
    for (let slash = path.indexOf("/"); slash > 0; slash = path.indexOf("/", slash + 1)) {
      if (files.has(path.slice(0, slash))) {
        throw new VolumeSpecError(
          `invalid path: ${JSON.stringify(path.slice(0, slash))} is a file and the directory of another one`,
        );
      }
    }
  }
  return files;
}

function bytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data;
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** What an atomic write works on. */
export interface AtomicWrite {
  readonly host: Host;
  readonly clock: Pick<Clock, "now">;
  /** The directory that containers mount; must exist. */
  readonly target: string;
  readonly payload: Payload;
  /** The pod's fsGroup: files belong to it and it can read them. */
  readonly gid?: number | undefined;
}

/**
 * Shows a set of files below a directory all at once: readers see the old set or the new one, never a mix. The files
 * live in a directory of their own that the link `..data` points at; the names that users see are links through it.
 * Nothing is written when nothing changed. Returns true when it wrote. Rejects with Volume for a bad path, Host else.
 */
export async function writeAtomically(write: AtomicWrite): Promise<boolean> {
  const { host, target } = write;
  const files = checked(write.payload);
  const current = await currentDirectory(host, target);
  const changed = current === undefined || !await matches(write, `${target}/${current}`, files);
  const shown = changed ? await replaceData(write, files) : current;
  await showNames(host, target, new Set([...files.keys()].map((path) => path.split("/", 1)[0] ?? path)));
  await removeOldData(host, target, shown);
  return changed;
}

/** The directory that `..data` points at, if it is one of ours and there. */
async function currentDirectory(host: Host, target: string): Promise<string | undefined> {
  if ((await host.lstat(`${target}/${dataLink}`))?.kind !== "symlink") return undefined;
  const name = await host.readLink(`${target}/${dataLink}`);
  if (!name.startsWith("..") || name === ".." || name.includes("/")) return undefined;
  return (await host.lstat(`${target}/${name}`))?.kind === "directory" ? name : undefined;
}

function modeOf(write: AtomicWrite, file: PayloadFile): number {
  const mode = file.mode & 0o777;
  return write.gid === undefined ? mode : fsGroupFileMode(mode, true);
}

async function matches(write: AtomicWrite, dir: string, files: ReadonlyMap<string, PayloadFile>): Promise<boolean> {
  const { host } = write;
  const there = await listFiles(host, dir, "");
  if (there === undefined || there.length !== files.size) return false;
  for (const path of there) {
    const file = files.get(path);
    const info = await host.lstat(`${dir}/${path}`);
    if (!file || info?.kind !== "file" || info.mode !== modeOf(write, file) || info.uid !== (file.uid ?? 0)) {
      return false;
    }
    if (write.gid !== undefined && info.gid !== write.gid) return false;
    if (!same(await host.readBytes(`${dir}/${path}`), bytes(file.data))) return false;
  }
  return true;
}

/** Relative paths of all files below, or undefined when there is something else than files and directories. */
async function listFiles(host: Host, dir: string, below: string): Promise<string[] | undefined> {
  const found: string[] = [];
  for (const { name, kind } of await host.readDir(below === "" ? dir : `${dir}/${below}`)) {
    const path = below === "" ? name : `${below}/${name}`;
    if (kind === "file") found.push(path);
    else if (kind !== "directory") return undefined;
    else {
      const more = await listFiles(host, dir, path);
      if (more === undefined) return undefined;
      found.push(...more);
    }
  }
  return found;
}

/** Writes the files to a new directory and turns `..data` to it; returns the directory's name. */
async function replaceData(write: AtomicWrite, files: ReadonlyMap<string, PayloadFile>): Promise<string> {
  const { host, target, gid } = write;
  const name = await freshName(write);
  const dir = `${target}/${name}`;
  try {
    await host.mkdir(dir, { mode: 0o755 });
    const directories = new Set([""]);
    for (const [path, file] of files) {
      for (let slash = path.indexOf("/"); slash > 0; slash = path.indexOf("/", slash + 1)) {
        directories.add(path.slice(0, slash));
      }
      const slash = path.lastIndexOf("/");
      if (slash > 0) await host.mkdir(`${dir}/${path.slice(0, slash)}`, { mode: 0o755 });
      await host.write(`${dir}/${path}`, file.data, { mode: modeOf(write, file) });
      if (gid !== undefined || (file.uid ?? 0) !== 0) {
        await host.chown(`${dir}/${path}`, file.uid ?? 0, gid ?? 0);
        await host.chmod(`${dir}/${path}`, modeOf(write, file));
      }
    }
    if (gid !== undefined) {
      for (const directory of directories) {
        const path = directory === "" ? dir : `${dir}/${directory}`;
        await host.chown(path, 0, gid);
        await host.chmod(path, fsGroupDirMode(0o755, true));
      }
    }
    await host.remove(`${target}/${newDataLink}`);
    await host.symlink(name, `${target}/${newDataLink}`);
    await host.rename(`${target}/${newDataLink}`, `${target}/${dataLink}`);
    return name;
  } catch (thrown) {
    // The old set still shows; what was begun is of no use. Its own failure must not hide the first one.
    try {
      await host.removeTree(dir);
    } catch (second) {
      throw new KubeletError("Volume", `${messageOf(thrown)}; and ${dir} could not be removed: ${messageOf(second)}`, {
        cause: thrown,
      });
    }
    throw thrown;
  }
}

/** `..YYYY_MM_DD_hh_mm_ss.<number>` that isn't there yet. */
async function freshName({ host, clock, target }: AtomicWrite): Promise<string> {
  const time = new Date(clock.now()).toISOString().slice(0, 19).replaceAll(/[-T:]/g, "_");
  for (let n = 0;; n++) {
    const name = `..${time}.${String(clock.now() % 1000).padStart(3, "0")}${String(n).padStart(6, "0")}`;
    if (!await host.lstat(`${target}/${name}`)) return name;
  }
}

/** Makes the links that users see and removes those of keys that are gone. */
async function showNames(host: Host, target: string, names: ReadonlySet<string>): Promise<void> {
  const there = new Set<string>();
  for (const { name, kind } of await host.readDir(target)) {
    if (name.startsWith("..")) continue;
    const right = kind === "symlink" && names.has(name) &&
      await host.readLink(`${target}/${name}`) === `${dataLink}/${name}`;
    if (right) there.add(name);
    else if (kind === "symlink" || names.has(name)) await host.remove(`${target}/${name}`);
  }
  for (const name of names) {
    if (!there.has(name)) await host.symlink(`${dataLink}/${name}`, `${target}/${name}`);
  }
}

/** Removes data directories that are not shown: the last one, and what a crash left. */
async function removeOldData(host: Host, target: string, shown: string): Promise<void> {
  for (const { name, kind } of await host.readDir(target)) {
    if (kind !== "directory" || name === shown || !/^\.\.\d{4}_/.test(name)) continue;
    try {
      await host.removeTree(`${target}/${name}`);
    } catch (thrown) {
      if (!isMissing(thrown)) throw thrown;
    }
  }
}
