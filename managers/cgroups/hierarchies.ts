import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { errnoOf, isMissing } from "../../mod/base/host_error.ts";
import { controlWrites, type GroupLimits } from "./limits.ts";

/** The cgroup hierarchies of the machine. */
export interface Hierarchies {
  readonly version: 1 | 2;
  /** Controller → directory of its hierarchy; in v2 every controller has the same one. */
  readonly roots: ReadonlyMap<string, string>;
}

/** v1 hierarchies that pods' groups are made in, when the machine has them. */
const v1Controllers = [
  "cpu",
  "cpuacct",
  "cpuset",
  "memory",
  "pids",
  "hugetlb",
  "blkio",
  "devices",
  "freezer",
  "net_cls",
  "net_prio",
  "perf_event",
  "systemd",
  // Of a hybrid machine: no limit lies there, but runtimes make containers' groups in it, which go with the pod's.
  "unified",
];
/** A v1 group is whole when it is in all of these that the machine has. */
const v1Needed = new Set(["cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "systemd"]);
/** What no node can do without. */
const mustHave = ["cpu", "cpuset", "memory"];
const v2Controllers = ["cpu", "cpuset", "memory", "hugetlb", "pids"];

/**
 * Finds out which cgroup version the machine runs and where its controllers are. A hybrid machine (v1 with an empty
 * unified hierarchy beside it) counts as v1. Throws Cgroup when the controllers that pods need are missing.
 */
export async function detectCgroups(host: Host): Promise<Hierarchies> {
  const roots = new Map<string, string>();
  const unified = await host.stat(`${host.cgroupRoot}/cgroup.controllers`);
  if (unified) {
    const offered = words(await host.readText(`${host.cgroupRoot}/cgroup.controllers`));
    for (const name of v2Controllers) if (offered.includes(name)) roots.set(name, host.cgroupRoot);
  } else {
    for (const name of v1Controllers) {
      const path = `${host.cgroupRoot}/${name}`;
      // Co-mounted controllers (cpu,cpuacct) are links to one directory.
      if (await host.stat(`${path}/cgroup.procs`)) roots.set(name, await host.realPath(path));
    }
  }
  const missing = mustHave.filter((name) => !roots.has(name));
  if (missing.length > 0) {
    throw new KubeletError(
      "Cgroup",
      `cgroup controllers ${missing.join(", ")} are not available below ${host.cgroupRoot} ` +
        `(mount the cgroup file system there, or enable them on the kernel command line: cgroup_enable=memory)`,
    );
  }
  return { version: unified ? 2 : 1, roots };
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((w) => w !== "");
}

/** Gone, or going: the kernel answers ENODEV for a file of a group that was just removed. */
function isGone(thrown: unknown): boolean {
  return isMissing(thrown) || errnoOf(thrown) === "ENODEV";
}

async function ifGone<T>(fallback: T, body: Promise<T>): Promise<T> {
  try {
    return await body;
  } catch (thrown) {
    if (isGone(thrown)) return fallback;
    throw thrown;
  }
}

/** Groups by their path below the hierarchies: made, limited, listed and removed in all of them at once. */
export class GroupTree {
  readonly #host: Host;
  readonly #clock: Clock;
  readonly version: 1 | 2;
  readonly roots: ReadonlyMap<string, string>;
  /** Each hierarchy once. */
  readonly #bases: readonly string[];

  constructor(options: { host: Host; clock: Clock; hierarchies: Hierarchies }) {
    this.#host = options.host;
    this.#clock = options.clock;
    this.version = options.hierarchies.version;
    this.roots = options.hierarchies.roots;
    this.#bases = [...new Set(this.roots.values())];
  }

  #directories(path: string): string[] {
    return this.#bases.map((base) => path === "/" ? base : base + path);
  }

  /** What keeps the group from being whole: hierarchies without it, or controllers that it lacks. */
  async missing(path: string): Promise<string[]> {
    if (this.version === 1) {
      const checks = [...this.roots].filter(([name]) => v1Needed.has(name)).map(async ([name, base]) =>
        await this.#host.stat(`${base}${path === "/" ? "" : path}`) ? [] : [name]
      );
      return (await Promise.all(checks)).flat();
    }
    const [directory = ""] = this.#directories(path);
    const has = words(await ifGone("", this.#host.readText(`${directory}/cgroup.controllers`)));
    return [...this.roots.keys()].filter((name) => !has.includes(name));
  }

  /** True when any hierarchy has the group. */
  async anywhere(path: string): Promise<boolean> {
    const found = await Promise.all(this.#directories(path).map((d) => this.#host.stat(d)));
    return found.some((info) => info !== undefined);
  }

  /** Makes the group and those above it, ready for processes. Idempotent. */
  async make(path: string): Promise<void> {
    const parts = path.split("/").filter((p) => p !== "");
    try {
      if (this.version === 2) return await this.#makeUnified(parts);
      // All hierarchies at once: there are a dozen of them, and the start of each pod waits.
      await Promise.all(this.#bases.map((base) => this.#makeIn(base, parts)));
    } catch (thrown) {
      throw new KubeletError("Cgroup", `cannot make cgroup ${path}: ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  /** Makes the group in one v1 hierarchy; those above it are made on the way, which costs nothing when they are there. */
  async #makeIn(base: string, parts: readonly string[]): Promise<void> {
    if (base !== this.roots.get("cpuset")) return await this.#host.mkdir(`${base}/${parts.join("/")}`);
    let at = base;
    for (const part of parts) {
      const above = at;
      at += `/${part}`;
      await this.#host.mkdir(at);
      await this.#inheritCpuset(above, at);
    }
  }

  /** No process can join a v1 cpuset without CPUs or memory nodes: copy the parent's where there are none. */
  async #inheritCpuset(above: string, at: string): Promise<void> {
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      if ((await this.#host.readText(`${at}/${file}`)).trim() !== "") continue;
      await this.#host.writeControl(`${at}/${file}`, (await this.#host.readText(`${above}/${file}`)).trim());
    }
  }

  async #makeUnified(parts: string[]): Promise<void> {
    let [at = ""] = this.#directories("/");
    for (const part of parts) {
      const offered = words(await this.#host.readText(`${at}/cgroup.controllers`));
      const enabled = words(await this.#host.readText(`${at}/cgroup.subtree_control`));
      const wanted = [...this.roots.keys()].filter((name) => offered.includes(name) && !enabled.includes(name));
      if (wanted.length > 0) {
        await this.#host.writeControl(`${at}/cgroup.subtree_control`, wanted.map((name) => `+${name}`).join(" "));
      }
      at += `/${part}`;
      await this.#host.mkdir(at);
    }
  }

  /**
   * Writes the limits; those of controllers that the machine lacks are left out. `remains`: the group is one that is
   * being removed, so some hierarchies may have it no more.
   */
  async apply(path: string, limits: GroupLimits, { remains = false }: { remains?: boolean } = {}): Promise<void> {
    for (const { controller, file, value } of controlWrites(this.version, limits)) {
      const base = this.roots.get(controller);
      if (base === undefined) continue;
      const target = `${base}${path === "/" ? "" : path}/${file}`;
      try {
        await this.#host.writeControl(target, value);
      } catch (thrown) {
        if (remains && isGone(thrown)) continue;
        const hint = errnoOf(thrown) === "EBUSY" && controller === "memory"
          ? " (the group uses more than that now)"
          : "";
        throw new KubeletError(
          "Cgroup",
          `cgroup ${path}: cannot set ${file} to ${value}: ${messageOf(thrown)}${hint}`,
          { cause: thrown },
        );
      }
    }
  }

  /** Names of the groups directly below, from every hierarchy. */
  async children(path: string): Promise<string[]> {
    const names = new Set<string>();
    const lists = this.#directories(path).map((directory) => ifGone([], this.#host.readDir(directory)));
    for (const list of await Promise.all(lists)) {
      for (const { name, kind } of list) if (kind === "directory") names.add(name);
    }
    return [...names].sort();
  }

  /** Every directory of the group, deepest first. */
  async #below(directory: string): Promise<string[]> {
    const found: string[] = [];
    for (const { name, kind } of await ifGone([], this.#host.readDir(directory))) {
      if (kind === "directory") found.push(...await this.#below(`${directory}/${name}`));
    }
    found.push(directory);
    return found;
  }

  /** Processes in the group and below it. */
  async pids(path: string): Promise<number[]> {
    const pids = new Set<number>();
    await Promise.all(
      this.#directories(path).map(async (top) => {
        for (const directory of await this.#below(top)) {
          for (const word of words(await ifGone("", this.#host.readText(`${directory}/cgroup.procs`)))) {
            // 0 stands for a process of another PID namespace.
            const pid = Number(word);
            if (Number.isSafeInteger(pid) && pid > 1) pids.add(pid);
          }
        }
      }),
    );
    return [...pids].sort((a, b) => a - b);
  }

  /** The file that kills a whole group when `1` is written to it; undefined on v1. Older kernels lack it. */
  killFile(path: string): string | undefined {
    const [directory] = this.version === 2 ? this.#directories(path) : [];
    return directory === undefined || path === "/" ? undefined : `${directory}/cgroup.kill`;
  }

  /**
   * Stops the group's processes where they are, or lets them go on, with those below it; a v1 machine without the freezer
   * is left as it is. A signal reaches frozen processes of v1 only when they are let go on.
   */
  async freeze(path: string, frozen: boolean): Promise<void> {
    const base = this.roots.get("freezer");
    if (this.version === 2 || base === undefined || path === "/") return;
    // Those below may have been frozen on their own: each is let go on.
    const groups = frozen ? [base + path] : await this.#below(base + path);
    for (const group of groups) {
      await ifGone(undefined, this.#host.writeControl(`${group}/freezer.state`, frozen ? "FROZEN" : "THAWED"));
    }
  }

  /** Removes the group and those below it, deepest first; waits a little for the kernel to let go of dying processes. */
  async remove(path: string): Promise<void> {
    await Promise.all(this.#directories(path).map((top) => this.#removeIn(top, path)));
  }

  async #removeIn(top: string, path: string): Promise<void> {
    for (let delay = 10;; delay *= 2) {
      try {
        if (!await this.#host.lstat(top)) return;
        for (const directory of await this.#below(top)) await this.#host.remove(directory);
        return;
      } catch (thrown) {
        if (isGone(thrown)) return;
        if (errnoOf(thrown) !== "EBUSY" && errnoOf(thrown) !== "ENOTEMPTY" || delay > 2000) {
          const left = await this.pids(path);
          const who = left.length > 0 ? ` (processes still inside: ${left.slice(0, 10).join(", ")})` : "";
          throw new KubeletError("Cgroup", `cannot remove cgroup ${path}: ${messageOf(thrown)}${who}`, {
            cause: thrown,
          });
        }
        await this.#clock.sleep(delay);
      }
    }
  }
}
