import type { Clock } from "../../mod/base/clock.ts";

/** Limits a rate: `burst` at once, then `qps` a second. Waiters go in the order of their coming. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #qps: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  /** @param options.qps 0 or less means no limit */
  constructor(options: { clock: Clock; qps: number; burst: number }) {
    this.#clock = options.clock;
    this.#qps = options.qps > 0 ? options.qps : Infinity;
    this.#burst = Math.max(1, options.burst);
    this.#tokens = this.#burst;
    this.#at = this.#clock.now();
  }

  /** Takes one token, waiting for it. Rejects with Aborted when the signal aborts first; the token is then given back. */
  async take(signal?: AbortSignal): Promise<void> {
    if (this.#qps === Infinity) return;
    const now = this.#clock.now();
    const elapsed = Math.max(0, now - this.#at);
    this.#at = now;
    this.#tokens = Math.min(this.#burst, this.#tokens + elapsed / 1000 * this.#qps) - 1;
    if (this.#tokens >= 0) return;
    try {
      await this.#clock.sleep(-this.#tokens / this.#qps * 1000, signal);
    } catch (thrown) {
      this.#tokens++;
      throw thrown;
    }
  }
}
