import type { Clock } from "../base/clock.ts";
import { isAborted } from "../base/errors.ts";

/** Answers that hold for a while; the one that was used longest ago makes room. Each key has its own length of life. */
export class ExpiringCache<T> {
  readonly #entries = new Map<string, { value: T; until: number }>();
  /** Questions that are being asked: the same one is asked once. */
  readonly #asked = new Map<string, Promise<T>>();

  constructor(private readonly o: { readonly clock: Clock; readonly limit: number }) {}

  /**
   * The kept answer, or what `ask` gives, which is then kept for `ttlMs(answer)` milliseconds. A question that fails is
   * not kept; all who asked it meanwhile get its error.
   */
  async get(key: string, ask: () => Promise<T>, ttlMs: (value: T) => number): Promise<T> {
    const kept = this.#entries.get(key);
    if (kept && kept.until > this.o.clock.now()) {
      this.#entries.delete(key);
      this.#entries.set(key, kept);
      return kept.value;
    }
    this.#entries.delete(key);
    for (let running = this.#asked.get(key); running; running = this.#asked.get(key)) {
      try {
        return await running;
      } catch (thrown) {
        // Called off by the one who asked, which says nothing to the others: one of them asks anew.
        if (!isAborted(thrown)) throw thrown;
      }
    }
    const asked = ask();
    this.#asked.set(key, asked);
    try {
      const value = await asked;
      const ttl = ttlMs(value);
      if (ttl > 0) this.#keep(key, value, ttl);
      return value;
    } finally {
      if (this.#asked.get(key) === asked) this.#asked.delete(key);
    }
  }

  #keep(key: string, value: T, ttl: number): void {
    this.#entries.set(key, { value, until: this.o.clock.now() + ttl });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.o.limit) return;
      this.#entries.delete(oldest);
    }
  }
}
