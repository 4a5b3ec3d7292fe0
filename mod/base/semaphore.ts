import { abortedBy } from "./errors.ts";

/** Limits how many tasks do something at once; waiters go in the order of their coming, those that ask to go first before others. */
export class Semaphore {
  #free: number;
  readonly #first: (() => void)[] = [];
  readonly #waiters: (() => void)[] = [];

  constructor(readonly limit: number) {
    this.#free = limit;
  }

  /** Number of tasks that wait for a place. */
  get waiting(): number {
    return this.#first.length + this.#waiters.length;
  }

  /**
   * Takes a place; dispose the result to give it back. Rejects with Aborted when the signal aborts first.
   * @param first goes before all waiters that have not asked for that
   */
  async acquire(signal?: AbortSignal, first = false): Promise<Disposable> {
    if (signal?.aborted) throw abortedBy(signal);
    if (this.#free > 0) this.#free--;
    else {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const queue = first ? this.#first : this.#waiters;
      const onAbort = () => {
        const at = queue.indexOf(resolve);
        if (at < 0) return;
        queue.splice(at, 1);
        reject(abortedBy(signal!));
      };
      queue.push(resolve);
      signal?.addEventListener("abort", onAbort, { once: true });
      try {
        await promise;
      } finally {
        signal?.removeEventListener("abort", onAbort);
      }
    }
    let held = true;
    return {
      [Symbol.dispose]: () => {
        if (!held) return;
        held = false;
        const next = this.#first.shift() ?? this.#waiters.shift();
        if (next) next();
        else this.#free++;
      },
    };
  }

  /** Runs `work` while holding a place. */
  async use<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    using _place = await this.acquire(signal);
    return await work();
  }
}
