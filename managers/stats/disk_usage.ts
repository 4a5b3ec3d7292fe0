import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { Measured } from "./measured.ts";

/** What the files below a directory take. */
export interface Usage {
  /** When the walk began, milliseconds since the epoch. */
  readonly at: number;
  /** Bytes, by file lengths rounded up to whole blocks; a sparse file counts with its length. */
  readonly bytes: number;
  /** Files and directories, the directory itself included. */
  readonly inodes: number;
}

/** Looks between two pauses in which other work runs. */
const chunk = 64;
const block = 4096;
/** Inodes that one walk remembers, so that a file with two names counts once. */
const remembered = 100_000;

/**
 * Sums up what is below a directory. Follows no link and enters no other file system; what vanishes meanwhile does not
 * count. The loop is given up after each chunk, and the signal ends it. Rejects with code Host when it cannot look.
 */
export async function walk(options: {
  host: Pick<Host, "lstat" | "readDir">;
  clock: Clock;
  path: string;
  signal: AbortSignal;
}): Promise<Usage | undefined> {
  const { host, clock, path, signal } = options;
  const at = clock.now();
  const top = await host.lstat(path);
  if (!top) return undefined;
  const seen = new Set<number>();
  let bytes = 0, inodes = 0;
  // A stack of directories, not of files: as deep as a hostile tree is, it holds one level's names at a time.
  const directories = [path];
  const take = (info: { size: number; ino: number }) => {
    if (seen.has(info.ino)) return;
    if (seen.size < remembered) seen.add(info.ino);
    bytes += Math.ceil(info.size / block) * block;
    inodes++;
  };
  take(top);
  if (top.kind !== "directory") return { at, bytes, inodes };
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const names = await unlessGone([], host.readDir(directory));
    for (let from = 0; from < names.length; from += chunk) {
      if (signal.aborted) throw abortedBy(signal);
      const part = names.slice(from, from + chunk);
      const infos = await Promise.all(
        part.map(({ name }) => unlessGone(undefined, host.lstat(`${directory}/${name}`))),
      );
      infos.forEach((info, index) => {
        if (!info || info.dev !== top.dev) return;
        take(info);
        if (info.kind === "directory") directories.push(`${directory}/${part[index]?.name}`);
      });
    }
  }
  return { at, bytes, inodes };
}

async function unlessGone<T>(fallback: T, body: Promise<T>): Promise<T> {
  try {
    return await body;
  } catch (thrown) {
    if (isMissing(thrown)) return fallback;
    throw thrown;
  }
}

/**
 * Usage of directories, measured when somebody asks and kept for a minute. One walk runs at a time; an answer that is
 * older is given at once, and measured anew behind it.
 */
export class DiskUsage extends Measured<Usage> {
  constructor(options: {
    host: Pick<Host, "lstat" | "readDir">;
    clock: Clock;
    log: Logger;
    /** Owns the walks. */
    scope: Scope;
    keepMs?: number;
    onMeasured?: (path: string, seconds: number) => void;
  }) {
    const { host, clock, keepMs = 60_000, onMeasured } = options;
    super({
      ...options,
      name: "disk usage",
      keepMs,
      forgetMs: 5 * keepMs,
      measure: async (path, signal) => {
        const usage = await walk({ host, clock, path, signal });
        if (usage) onMeasured?.(path, (clock.now() - usage.at) / 1000);
        return usage;
      },
    });
  }
}
