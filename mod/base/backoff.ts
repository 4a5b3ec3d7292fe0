import type { Clock } from "./clock.ts";

interface Entry {
  delay: number;
  last: number;
  /** While the try that this step was for is under way: the failure it comes after, and what held before it. */
  under?: { at: number; before: { delay: number; last: number } | null };
}

/** What `snapshot` gives, as JSON can hold it. */
export type BackoffState = Record<string, Readonly<Entry>>;

/**
 * Exponential delays by key. A key's first failure costs `initial`, each next one twice the last up to `max`; a key
 * that was quiet for longer than `resetAfter` (default 2 × max) starts again. Contract: runtime-contract.md section 9.
 */
export class Backoff {
  readonly #entries = new Map<string, Entry>();
  readonly #clock: Clock;
  readonly initial: number;
  readonly max: number;
  readonly resetAfter: number;

  /** All delays in milliseconds; an `initial` above `max` is `max`. */
  constructor(options: { clock: Clock; initial: number; max: number; resetAfter?: number }) {
    this.#clock = options.clock;
    this.initial = Math.min(options.initial, options.max);
    this.max = options.max;
    this.resetAfter = options.resetAfter ?? 2 * options.max;
  }

  /** The key's present delay, 0 when it has none. */
  delay(key: string): number {
    return this.#entries.get(key)?.delay ?? 0;
  }

  /**
   * Milliseconds still to wait before the key may be tried again, counted from the event at `since` (default: the
   * key's last step), or 0 when it may be tried now.
   */
  remaining(key: string, since?: number): number {
    const known = this.#entries.get(key);
    // The try after this failure was begun and never came to an end: its delay has been served.
    const entry = known?.under && known.under.at === since ? known.under.before : known;
    if (!entry) return 0;
    const from = since ?? entry.last;
    if (from - entry.last > this.resetAfter) return 0;
    return Math.max(0, entry.delay - (this.#clock.now() - from));
  }

  /** Notes a failure that happened at `at` (default now): doubles the key's delay, or starts it. */
  step(key: string, at: number = this.#clock.now()): void {
    const entry = this.#entries.get(key);
    const now = this.#clock.now();
    if (!entry || at - entry.last > this.resetAfter) {
      this.#entries.set(key, { delay: this.initial, last: now });
    } else {
      this.#entries.set(key, { delay: Math.min(entry.delay * 2, this.max), last: now });
    }
  }

  /**
   * Steps the key for a try that is about to be made after the failure at `at`. Until `settle` the step can be taken
   * for that failure once only: an agent that is killed meanwhile neither waits again nor counts it twice.
   */
  begin(key: string, at: number): void {
    const entry = this.#entries.get(key);
    if (entry?.under?.at === at) return;
    const before = entry ? { delay: entry.delay, last: entry.last } : null;
    this.step(key, at);
    const stepped = this.#entries.get(key);
    if (stepped) stepped.under = { at, before };
  }

  /** The try has come to an end: from now on the key's delay counts from the same failure too. */
  settle(key: string): void {
    delete this.#entries.get(key)?.under;
  }

  /** Forgets the key. */
  reset(key: string): void {
    this.#entries.delete(key);
  }

  /** Drops keys that have been quiet long enough to start anew anyway. */
  prune(): void {
    const now = this.#clock.now();
    for (const [key, entry] of this.#entries) {
      if (now - entry.last > this.resetAfter) this.#entries.delete(key);
    }
  }

  /** State to keep across a restart of the agent. */
  snapshot(): BackoffState {
    return Object.fromEntries([...this.#entries].map(([k, e]) => [k, { ...e }]));
  }

  /** Takes back what `snapshot` gave. */
  restore(state: BackoffState): void {
    for (const [key, entry] of Object.entries(state)) this.#entries.set(key, { ...entry });
  }
}
