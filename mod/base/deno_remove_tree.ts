import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errnoOf, isMissing } from "./host_error.ts";

// O_DIRECTORY and O_NOFOLLOW together: a link in the place of a directory is refused, not followed.
const directoryOnly = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Directories deeper than this are moved up to the top first, so that few files are open at once. */
const deepest = 100;

/** An error that looks like the kernel's. */
function refused(code: string, text: string): Error {
  return Object.assign(new Error(text), { code });
}

/** Opens a directory without following a link in its last part. */
export function openDirectory(path: string): Promise<FileHandle> {
  return open(path, directoryOnly);
}

/**
 * Removes a tree through open directories (`<procRoot>/self/fd/<n>/name`), so that a link put in the place of a
 * directory meanwhile cannot lead it elsewhere, and stops at other file systems. The caller has looked for mounts
 * below in the mount table already; the device check is the second line.
 */
export async function removeDirectoryTree(path: string, procRoot: string): Promise<void> {
  const handle = await openDirectory(path);
  try {
    const top = `${procRoot}/self/fd/${handle.fd}`;
    const walk = new Walk(top, path, (await handle.stat()).dev);
    // Moved-up directories are new entries of the top: pass again until nothing is moved.
    do {
      walk.moved = 0;
      await walk.empty(top, 0);
    } while (walk.moved > 0);
    if (!await isEmpty(top)) {
      // Names that are not UTF-8 can't be named from here; the run-time's own recursion can, and follows no links.
      for await (const entry of Deno.readDir(top)) {
        if (entry.isDirectory) await walk.sameDevice(`${top}/${entry.name}`);
      }
      await Deno.remove(path, { recursive: true });
      return;
    }
  } finally {
    await handle.close();
  }
  await Deno.remove(path);
}

class Walk {
  moved = 0;
  #serial = 0;

  constructor(readonly top: string, readonly shown: string, readonly dev: number) {}

  async sameDevice(path: string): Promise<void> {
    const info = await Deno.lstat(path).catch(ifMissing);
    if (info && info.dev !== this.dev) {
      throw refused("EBUSY", `another file system is mounted below ${this.shown}, at ${path.split("/").at(-1)}`);
    }
  }

  async empty(directory: string, depth: number): Promise<void> {
    for await (const entry of Deno.readDir(directory)) {
      const path = `${directory}/${entry.name}`;
      if (!entry.isDirectory) await Deno.remove(path).catch(ifMissing);
      else if (depth >= deepest) await this.#moveUp(path);
      else await this.#emptyChild(path, depth);
    }
  }

  async #emptyChild(path: string, depth: number): Promise<void> {
    await this.sameDevice(path);
    const handle = await openDirectory(path).catch(ifMissing);
    if (!handle) return;
    try {
      if ((await handle.stat()).dev !== this.dev) {
        throw refused("EBUSY", `another file system is mounted below ${this.shown}`);
      }
      await this.empty(`${this.top.slice(0, this.top.lastIndexOf("/"))}/${handle.fd}`, depth + 1);
    } finally {
      await handle.close();
    }
    try {
      await Deno.remove(path);
    } catch (thrown) {
      // What is left has a name that is not UTF-8, or was moved into by someone: the caller sees the rest.
      if (errnoOf(thrown) !== "ENOTEMPTY" && !isMissing(thrown)) throw thrown;
    }
  }

  async #moveUp(path: string): Promise<void> {
    await this.sameDevice(path);
    for (let tries = 0; tries < 1000; tries++) {
      try {
        await Deno.rename(path, `${this.top}/.removing-${this.#serial++}`);
        this.moved++;
        return;
      } catch (thrown) {
        if (isMissing(thrown)) return;
        if (!["EEXIST", "ENOTEMPTY", "ENOTDIR"].includes(errnoOf(thrown))) throw thrown;
      }
    }
    throw refused("EBUSY", `cannot empty the deep directories below ${this.shown}`);
  }
}

async function isEmpty(directory: string): Promise<boolean> {
  for await (const _ of Deno.readDir(directory)) return false;
  return true;
}

function ifMissing(thrown: unknown): undefined {
  if (isMissing(thrown)) return undefined;
  throw thrown;
}
