/** A reading of a growing count of CPU nanoseconds. */
interface Reading {
  readonly at: number;
  readonly cpuNs?: number;
}

/** Readings closer than this tell no rate that means anything, milliseconds. */
const leastMs = 500;

/** CPU rates between the readings that somebody asked for. */
export class Rates {
  readonly #last = new Map<string, { at: number; cpuNs: number; nanoCores: number | undefined }>();

  /** Billionths of a core between the last reading of this group and this one; undefined for a first one. */
  next(group: string, { at, cpuNs }: Reading): number | undefined {
    if (cpuNs === undefined) return undefined;
    const last = this.#last.get(group);
    const passed = last ? at - last.at : 0;
    // A count that went down is another group of the same name; a clock that was set back tells nothing either.
    if (!last || cpuNs < last.cpuNs || passed < 0) {
      this.#last.set(group, { at, cpuNs, nanoCores: undefined });
      return undefined;
    }
    if (passed < leastMs) return last.nanoCores;
    const nanoCores = Math.round((cpuNs - last.cpuNs) / passed * 1000);
    this.#last.set(group, { at, cpuNs, nanoCores });
    return nanoCores;
  }

  /** Forgets all other groups. */
  keep(groups: ReadonlySet<string>): void {
    for (const group of this.#last.keys()) if (!groups.has(group)) this.#last.delete(group);
  }
}
