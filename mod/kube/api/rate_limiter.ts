import type { Clock } from "../../base/clock.ts";

/** What a limit of rate needs. */
export interface RateLimiterOptions {
  readonly clock: Clock;
  /** Requests a second in the long run. */
  readonly qps: number;
  /** Requests at once after a pause. */
  readonly burst: number;
}

/** A token bucket whose waiting requests go in the order in which they came. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #burst: number;
  /** Tokens at the time `#at`; negative while requests wait for theirs. */
  #tokens: number;
  #at: number;

  constructor({ clock, qps, burst }: RateLimiterOptions) {
    this.#clock = clock;
    this.#perMs = qps / 1000;
    this.#burst = Math.max(burst, 1);
    this.#tokens = this.#burst;
    this.#at = clock.now();
  }

  /**
   * Waits until a request may go; resolves with the milliseconds that it waited. Rejects with Aborted when the signal
   * aborts first; the place it would have had is given back.
   */
  async take(signal: AbortSignal): Promise<number> {
    const now = this.#clock.now();
    // A clock that was put back gives nothing, and takes nothing away.
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, now - this.#at) * this.#perMs);
    this.#at = now;
    this.#tokens--;
    if (this.#tokens >= 0) return 0;
    const waitMs = Math.ceil(-this.#tokens / this.#perMs);
    try {
      await this.#clock.sleep(waitMs, signal);
    } catch (thrown) {
      this.#tokens++;
      throw thrown;
    }
    return waitMs;
  }
}
