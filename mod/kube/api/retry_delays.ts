import type { Clock } from "../../base/clock.ts";
import { jitter, type Random } from "../../base/random.ts";

/** The first delay, the longest, and the quiet after which the first one comes again; milliseconds (as client-go). */
const firstMs = 800;
const longestMs = 30_000;
const quietMs = 120_000;

/**
 * Delays between tries to list and watch: each twice the last one, stretched by up to as much again. They begin anew
 * after some quiet, and when a try has got somewhere.
 */
export class RetryDelays {
  readonly #clock: Clock;
  readonly #random: Random;
  #ms = firstMs;
  #last = -Infinity;

  constructor(options: { clock: Clock; random: Random }) {
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /** The last try got somewhere before it failed. */
  worked(): void {
    this.#ms = firstMs;
  }

  /** Milliseconds to wait before the next try. */
  next(): number {
    const now = this.#clock.now();
    if (now - this.#last > quietMs) this.#ms = firstMs;
    const delay = jitter(this.#random, this.#ms, 1);
    this.#last = now;
    this.#ms = Math.min(this.#ms * 2, longestMs);
    return delay;
  }
}
