import { type GroupSettings, type GroupSource, processesIn, type StatHierarchies } from "./group_source.ts";
import type { KeptFiles } from "./kept_files.ts";
import { readUnified } from "./group_unified.ts";
import { readV1 } from "./group_v1.ts";
import { count, lookUp } from "./parse.ts";
import type { Detail, GroupSample } from "./types.ts";

/**
 * How long settings are kept, milliseconds: a limit that is changed shows after that at the latest. Groups differ by up
 * to a half of it, so that they are not all read again in one scrape.
 */
const settingsMs = 60_000;
/** How long a file that the kernel does not have is not looked for again, milliseconds. */
const absentMs = 600_000;

/** Reads control groups (metrics.md section 9, rules). Remembers what a kernel does not have, and settings for a while. */
export class GroupReader implements GroupSource {
  readonly host: GroupSource["host"];
  readonly hierarchies: StatHierarchies;
  readonly #now: () => number;
  /** Files that were not there in a group which itself was, and until when they are not looked for. */
  readonly #absent = new Map<string, number>();
  readonly #settings = new Map<string, { at: number; keepMs: number; settings: GroupSettings }>();
  #turn = 0;

  readonly #files: Pick<KeptFiles, "read">;

  constructor(options: {
    host: GroupSource["host"];
    hierarchies: StatHierarchies;
    now: () => number;
    /** Reads what is read each time. */
    files: Pick<KeptFiles, "read">;
  }) {
    this.host = options.host;
    this.hierarchies = options.hierarchies;
    this.#now = options.now;
    this.#files = options.files;
  }

  /**
   * Reads one group, at once. `path` is below the hierarchies, `/` for the root. Undefined when there is no such group.
   * Throws with code Host when a file is there but cannot be read.
   */
  sample(path: string, detail: Detail): GroupSample | undefined {
    const at = this.#now();
    return this.hierarchies.version === 2 ? readUnified(this, path, detail, at) : readV1(this, path, detail, at);
  }

  /** CPU that one group has used, nanoseconds, and nothing else; undefined when there is no such group. */
  cpuNs(path: string): number | undefined {
    if (this.hierarchies.version !== 2) return count(this.read({ controller: "cpuacct", path, file: "cpuacct.usage" }));
    const us = lookUp(this.read({ controller: "cpu", path, file: "cpu.stat" }) ?? "")("usage_usec");
    return us === undefined ? undefined : us * 1000;
  }

  /** Processes of the group itself, in the kernel's order; none for those of another PID namespace. */
  processes(path: string): number[] {
    return processesIn(this.read({ controller: "memory", path, file: "cgroup.procs" }));
  }

  read({ controller, path, file }: { controller: string; path: string; file: string }): string | undefined {
    const root = path === "/";
    const base = this.hierarchies.version === 2
      ? this.hierarchies.roots.get("memory") ?? this.host.cgroupRoot
      : this.hierarchies.roots.get(controller);
    if (base === undefined) return undefined;
    // Files differ between the root and the rest, and with version 2 by the controllers that the group above gives.
    const above = this.hierarchies.version === 2 ? path.slice(0, path.lastIndexOf("/")) : "";
    const name = root ? `/${file}` : `${above} ${file}`;
    const until = this.#absent.get(name);
    if (until !== undefined && until > this.#now()) return undefined;
    const full = `${base}${root ? "" : path}/${file}`;
    const text = hot.has(file) ? this.#files.read(full) : this.host.readTextNow(full);
    if (text !== undefined || required.has(file)) return text;
    // Of a group that is there: the kernel has no such file. Of one that has gone, nothing follows.
    const there = this.host.readTextNow(`${base}${root ? "" : path}/cgroup.procs`) !== undefined;
    if (there) this.#absent.set(name, this.#now() + absentMs);
    return undefined;
  }

  settings(path: string, read: () => GroupSettings): GroupSettings {
    const known = this.#settings.get(path);
    const passed = known ? this.#now() - known.at : Infinity;
    if (known && passed >= 0 && passed < known.keepMs) return known.settings;
    const settings = read();
    this.#turn = (this.#turn + 1) % 16;
    this.#settings.set(path, { at: this.#now(), keepMs: settingsMs * (1 - this.#turn / 32), settings });
    return settings;
  }

  /** Forgets all other groups. */
  keep(groups: ReadonlySet<string>): void {
    for (const group of this.#settings.keys()) if (!groups.has(group)) this.#settings.delete(group);
    for (const [name, until] of this.#absent) if (until <= this.#now()) this.#absent.delete(name);
  }
}

/** Values that every scrape reads. Lists of processes are not among them: they may be longer than one read. */
const hot = new Set([
  ...["cpuacct.usage", "cpuacct.stat", "memory.usage_in_bytes", "memory.stat", "memory.max_usage_in_bytes"],
  ...["memory.failcnt", "memory.kmem.usage_in_bytes", "memory.oom_control", "pids.current"],
  ...["blkio.throttle.io_service_bytes_recursive", "cpu.stat", "memory.current", "memory.swap.current"],
  ...["memory.peak", "memory.events", "io.stat", "cpu.pressure", "memory.pressure", "io.pressure"],
]);

/** Files that tell whether a group is there at all. */
const required = new Set(["cgroup.procs", "cpuacct.usage", "memory.usage_in_bytes", "cpu.stat", "memory.stat"]);
