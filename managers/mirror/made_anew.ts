/** How long a mirror must have been left alone before it may be made anew at once again, in milliseconds. */
const quietMs = 60_000;
/** How long after a mirror was made the next one may be, by how often that was so already; the last one goes on. */
const waitsMs = [0, 0, 2000, 4000, 8000, 16_000, 30_000] as const;
/** From this one on it is no accident any more. */
const strange = 3;

interface Made {
  readonly at: number;
  /** How many were made before without a minute of quiet between. */
  readonly before: number;
}

/**
 * How often the mirrors of static pods were made, which somebody deletes again and again: without a pause the two would
 * do so some ten times a second for ever. Another agent of the same node name is such a one.
 */
export class MadeAnew {
  readonly #made = new Map<string, Made>();

  /** Whether a mirror may be made now. @param key the static pod's hash */
  may(key: string, now: number): boolean {
    const last = this.#made.get(key);
    if (!last) return true;
    const age = now - last.at;
    // A clock that was put back must not hold anything up.
    return age < 0 || age >= (waitsMs[last.before] ?? waitsMs[waitsMs.length - 1] ?? 0);
  }

  /** One was made. True when somebody seems to delete them on purpose, once for each such time. */
  made(key: string, now: number): boolean {
    const last = this.#made.get(key);
    const before = last && Math.abs(now - last.at) < quietMs ? Math.min(last.before + 1, waitsMs.length - 1) : 0;
    this.#made.set(key, { at: now, before });
    return before === strange && last?.before !== strange;
  }

  /** Nobody wants it any more. */
  forget(key: string): void {
    this.#made.delete(key);
  }

  /** Drops what is long over. */
  prune(now: number): void {
    for (const [key, { at }] of this.#made) if (Math.abs(now - at) >= quietMs) this.#made.delete(key);
  }
}
