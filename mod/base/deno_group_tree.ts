import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { abortedBy } from "./errors.ts";
import type { GroupTreeOptions } from "./host.ts";
import { isMissing } from "./host_error.ts";

/** O_PATH: a handle on anything, without opening what a device or a fifo stands for. */
const pathOnly = 0o10000000 | constants.O_NOFOLLOW;
/** Each level holds a file open. */
const deepest = 1000;
/** Entries of one directory that are changed at once. */
const atOnce = 16;

/** See Host.groupTree. Everything is reached through open handles, so that a link put in its place leads nowhere. */
export async function groupTree(procRoot: string, path: string, options: GroupTreeOptions): Promise<void> {
  const handle = await open(path, pathOnly);
  try {
    const info = await handle.stat();
    if (info.isSymbolicLink()) throw Object.assign(new Error("it is a symbolic link"), { code: "ELOOP" });
    await new GroupWalk(procRoot, path, info.dev, options).entry(handle, 0);
  } finally {
    await handle.close();
  }
}

class GroupWalk {
  constructor(
    readonly procRoot: string,
    readonly shown: string,
    readonly dev: number,
    readonly options: GroupTreeOptions,
  ) {}

  /** Changes what a handle stands for; what is in a directory comes before it. */
  async entry(handle: FileHandle, depth: number): Promise<void> {
    const { gid, fileBits, directoryBits, signal, onEntry } = this.options;
    if (signal?.aborted) throw abortedBy(signal);
    const info = await handle.stat();
    // Links have no mode, and what lies on another file system is not the volume's.
    if (info.isSymbolicLink() || info.dev !== this.dev) return;
    const at = `${this.procRoot}/self/fd/${handle.fd}`;
    if (info.isDirectory()) await this.#children(at, depth);
    const mode = info.mode & 0o7777;
    const wanted = mode | (info.isDirectory() ? directoryBits : fileBits);
    if (info.gid !== gid) await Deno.chown(at, null, gid);
    // Changing the owner can clear setgid: the mode comes after.
    if (info.gid !== gid || wanted !== mode) await Deno.chmod(at, wanted);
    onEntry?.();
  }

  async #children(at: string, depth: number): Promise<void> {
    if (depth >= deepest) {
      throw Object.assign(new Error(`directories below ${this.shown} are more than ${deepest} deep`), {
        code: "ENAMETOOLONG",
      });
    }
    let files: string[] = [];
    for await (const entry of Deno.readDir(at)) {
      if (entry.isSymlink) continue;
      if (entry.isDirectory) await this.#child(`${at}/${entry.name}`, depth);
      else files.push(`${at}/${entry.name}`);
      if (files.length < atOnce) continue;
      await this.#some(files, depth);
      files = [];
    }
    await this.#some(files, depth);
  }

  /** All have ended before a failure is told: none may go on when its directory's handle is closed. */
  async #some(paths: readonly string[], depth: number): Promise<void> {
    const results = await Promise.allSettled(paths.map((path) => this.#child(path, depth)));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  async #child(path: string, depth: number): Promise<void> {
    let handle: FileHandle;
    try {
      handle = await open(path, pathOnly);
    } catch (thrown) {
      // Removed meanwhile.
      if (isMissing(thrown)) return;
      throw thrown;
    }
    try {
      await this.entry(handle, depth + 1);
    } finally {
      await handle.close();
    }
  }
}
