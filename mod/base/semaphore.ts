import { abortedBy } from "./errors.ts";

/** Limits how many tasks do something at once; waiters go in the order of their coming. */
export class Semaphore {
  #free: number;
  readonly #waiters: (() => void)[] = [];

  constructor(readonly limit: number) {
    this.#free = limit;
  }

  /** Number of tasks that wait for a place. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Takes a place; dispose the result to give it back. Rejects with Aborted when the signal aborts first. */
  async acquire(signal?: AbortSignal): Promise<Disposable> {
    if (signal?.aborted) throw abortedBy(signal);
    if (this.#free > 0) this.#free--;
    else {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAbort = () => {
        const at = this.#waiters.indexOf(resolve);
        if (at < 0) return;
        this.#waiters.splice(at, 1);
        reject(abortedBy(signal!));
      };
      this.#waiters.push(resolve);
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
        const next = this.#waiters.shift();
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
