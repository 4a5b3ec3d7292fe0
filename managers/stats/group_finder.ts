import type { Host } from "../../mod/base/host.ts";
import { errnoOf, isMissing } from "../../mod/base/host_error.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { StatHierarchies } from "./group_source.ts";

/** A pod's group, and those of its sandbox and containers by their ids. */
export interface FoundGroups {
  readonly group: string;
  readonly members: ReadonlyMap<string, string>;
}

/**
 * Finds the groups of pods by looking: runtimes name a container's group each in its own way, with its id in it. What
 * was found once is not looked for again while the pod lives.
 */
export class GroupFinder {
  readonly #o: {
    readonly host: Pick<Host, "readDir" | "stat" | "cgroupRoot">;
    readonly hierarchies: StatHierarchies;
    readonly podGroups: (uid: string, pod: BoundPod | undefined) => readonly string[];
  };
  readonly #known = new Map<string, { group: string; members: Map<string, string> }>();
  /** One hierarchy stands for all. */
  readonly #base: string;

  constructor(options: {
    readonly host: Pick<Host, "readDir" | "stat" | "cgroupRoot">;
    readonly hierarchies: StatHierarchies;
    readonly podGroups: (uid: string, pod: BoundPod | undefined) => readonly string[];
  }) {
    this.#o = options;
    this.#base = options.hierarchies.roots.get("memory") ?? options.host.cgroupRoot;
  }

  /** The groups of a pod; undefined when it has none (cgroupsPerQOS off, or gone). */
  async find(uid: string, pod: BoundPod | undefined, ids: readonly string[]): Promise<FoundGroups | undefined> {
    const known = this.#known.get(uid);
    if (known && ids.every((id) => known.members.has(id))) return known;
    const candidates = known ? [known.group] : this.#o.podGroups(uid, pod);
    for (const group of candidates) {
      const below = await this.#below(group);
      if (!below) continue;
      const members = new Map<string, string>();
      for (const id of ids) {
        const name = below.find((each) => each.includes(id));
        if (name !== undefined) members.set(id, `${group}/${name}`);
      }
      const found = { group, members };
      this.#known.set(uid, found);
      return found;
    }
    this.#known.delete(uid);
    return undefined;
  }

  async #below(group: string): Promise<string[] | undefined> {
    try {
      const entries = await this.#o.host.readDir(`${this.#base}${group}`);
      return entries.filter(({ kind }) => kind === "directory").map(({ name }) => name);
    } catch (thrown) {
      if (isMissing(thrown) || errnoOf(thrown) === "ENODEV") return undefined;
      throw thrown;
    }
  }

  /** When the group was last changed, which for one that stays is about when it was made. */
  async madeAt(group: string): Promise<number | undefined> {
    return (await this.#o.host.stat(`${this.#base}${group}`))?.mtimeMs;
  }

  /** Forgets all other pods. */
  keep(uids: ReadonlySet<string>): void {
    for (const uid of this.#known.keys()) if (!uids.has(uid)) this.#known.delete(uid);
  }
}
