import type { Clock } from "./clock.ts";
import { Semaphore } from "./semaphore.ts";

/**
 * Keeps the number of heavy calls in flight near what serves them best. Unlike a semaphore it is no guarantee: a call
 * that takes longer than its lease gives its lane up while it goes on, so that calls that hang never hold up the others.
 */
export class Lanes {
  readonly #places: Semaphore;
  readonly #clock: Clock;
  readonly #leaseMs: number;

  constructor(options: { clock: Clock; lanes: number; leaseMs: number }) {
    this.#places = new Semaphore(options.lanes);
    this.#clock = options.clock;
    this.#leaseMs = options.leaseMs;
  }

  /** Runs `work` in a lane; waits for one in the order of coming (`first`: before others), or rejects with Aborted. */
  async use<T>(work: () => Promise<T>, signal?: AbortSignal, first = false): Promise<T> {
    using place = await this.#places.acquire(signal, first);
    using _lease = this.#clock.after(this.#leaseMs, () => place[Symbol.dispose]());
    return await work();
  }
}
