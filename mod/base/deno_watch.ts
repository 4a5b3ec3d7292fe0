import { isRefused } from "./deno_outside.ts";
import { hostError, isMissing } from "./host_error.ts";

/** A path's identity: changes when the path is replaced by another file, or goes. */
async function identity(path: string): Promise<string> {
  try {
    const info = await Deno.stat(path);
    return `${info.dev}:${info.ino}:${info.isDirectory}`;
  } catch (thrown) {
    if (isMissing(thrown)) return "";
    // Above what the agent may read there is a directory, but it can't be looked at.
    if (isRefused(thrown)) return "refused";
    throw thrown;
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** The nearest directory above the path that exists. */
async function nearest(path: string): Promise<string> {
  let at = parentOf(path);
  while (at !== "/" && await identity(at) === "") at = parentOf(at);
  return at;
}

/**
 * Watches a path that may not exist yet and may be replaced: the path itself, and the nearest directory above it to
 * see it come. Yields once after each arming (what happened between the caller's look and the watch is covered), then
 * once for any number of changes. Reads are no changes. Ends when the signal aborts; rejects when the kernel refuses
 * a watch. Where only the path itself may be read, the directory above is not watched: a path that is not there yet is
 * then refused, and one that is replaced is seen by its own end.
 */
export async function* watchPath(path: string, signal: AbortSignal): AsyncIterable<readonly string[] | void> {
  let wake = () => {};
  const stop = () => wake();
  signal.addEventListener("abort", stop, { once: true });
  try {
    while (!signal.aborted) {
      const armed = await arm(path, () => wake());
      try {
        yield;
        while (!signal.aborted && !armed.ended) {
          if (!armed.changed) await new Promise<void>((resolve) => wake = resolve);
          wake = () => {};
          if (signal.aborted) return;
          if (!armed.changed) continue;
          armed.changed = false;
          if (await armed.stale()) break;
          yield armed.removed.splice(0);
        }
      } finally {
        await armed.close();
      }
    }
  } catch (thrown) {
    throw hostError("watch", path, thrown);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** How often a watcher that may hang is freed, in milliseconds. */
const freeEveryMs = 10_000;
/** Entries of a directory that are looked at when a watcher is freed. */
const mostEntries = 10_000;

/**
 * Lets go a watcher's thread that hangs in opening a FIFO. Deno's watcher opens every path that it gets an event for,
 * and a FIFO without a writer holds it there for ever, and then whoever closes it. Opening the FIFO for both directions
 * never blocks, and gives the thread its other end.
 */
async function openFifos(directories: readonly string[]): Promise<Deno.FsFile[]> {
  const fifos: Deno.FsFile[] = [];
  const left = [...directories];
  for (let seen = 0, at = left.pop(); at !== undefined && seen < mostEntries; at = left.pop()) {
    try {
      for await (const entry of Deno.readDir(at)) {
        if (++seen > mostEntries) break;
        const path = `${at}/${entry.name}`;
        // Only what is watched recursively is searched deeper: the path itself.
        if (entry.isDirectory && path.startsWith(`${directories[0]}/`)) left.push(path);
        if (entry.isFile || entry.isDirectory || entry.isSymlink) continue;
        if ((await Deno.lstat(path)).isFifo) fifos.push(await Deno.open(path, { read: true, write: true }));
      }
    } catch {
      // A directory or FIFO that is gone, or not ours to open, is none that can be freed.
    }
  }
  return fifos;
}

async function freeFifos(directories: readonly string[]): Promise<void> {
  for (const fifo of await openFifos(directories)) fifo.close();
}

interface Armed {
  /** What was deleted, and not told yet; renamed files are none, nor are those that another one was renamed onto. */
  readonly removed: string[];
  /** Something happened since it was last set to false. */
  changed: boolean;
  /** A watcher ended by itself: arm again. */
  ended: boolean;
  /** True when the path or the directory above is not what the watchers are bound to any more. */
  stale(): Promise<boolean>;
  close(): Promise<void>;
}

async function arm(path: string, wake: () => void): Promise<Armed> {
  const above = await nearest(path);
  const before = await Promise.all([identity(path), identity(above)]);
  const watchers: Deno.FsWatcher[] = [];
  const pumps: Promise<void>[] = [];
  let closing = false;
  let freed = Promise.resolve();
  const freeing = setInterval(() => freed = freed.then(() => freeFifos([path, above])), freeEveryMs);
  Deno.unrefTimer(freeing);
  const armed: Armed = {
    removed: [],
    changed: false,
    ended: false,
    async stale() {
      if (armed.ended || await nearest(path) !== above) return true;
      const now = await Promise.all([identity(path), identity(above)]);
      return now[0] !== before[0] || now[1] !== before[1];
    },
    async close() {
      closing = true;
      clearInterval(freeing);
      await freed;
      // Held open until the end: the thread may only now be about to open it.
      const fifos = await openFifos([path, above]);
      for (const watcher of watchers) watcher.close();
      await Promise.all(pumps);
      for (const fifo of fifos) fifo.close();
    },
  };
  const pump = async (watcher: Deno.FsWatcher, concerns: (paths: string[]) => boolean) => {
    try {
      for await (const event of watcher) {
        // An overflow ("rescan") names no path: anything may have happened.
        if (event.flag === "rescan" || (event.kind !== "access" && concerns(event.paths))) {
          if (event.kind === "remove") armed.removed.push(...event.paths);
          armed.changed = true;
          wake();
        }
      }
    } finally {
      if (!closing) {
        armed.ended = armed.changed = true;
        wake();
      }
    }
  };
  try {
    if (before[0] !== "") {
      const own = Deno.watchFs(path, { recursive: before[0].endsWith(":true") });
      watchers.push(own);
      pumps.push(pump(own, () => true));
    }
    if (before[0] !== "" && before[1] === "refused") return armed;
    const up = Deno.watchFs(above, { recursive: false });
    watchers.push(up);
    pumps.push(pump(up, (paths) => paths.some((p) => p === above || path === p || path.startsWith(`${p}/`))));
  } catch (thrown) {
    // The path can go between the look and the watch: the nearest directory above tells of it, at the next arming.
    if (!isMissing(thrown)) {
      await armed.close();
      throw thrown;
    }
    armed.ended = armed.changed = true;
  }
  return armed;
}
