import type { Clock } from "../base/clock.ts";

/** So much work leaves garbage that is worth a collection: some ten pods' starts. */
const worthwhile = 50;

/** So long without work is quiet, milliseconds. */
const quietMs = 2_000;

/**
 * Gives memory back once much was done and nothing is being done any more. V8 collects when it allocates: after a burst
 * of pods what they left would stay resident, some 8 MiB, until enough new work comes. A collection takes some 50 ms, so
 * it waits until nobody waits for the agent. Nothing runs while there is no work.
 */
export class HeapCare implements Disposable {
  readonly #clock: Clock;
  readonly #collect: () => void;
  #done = 0;
  #again = false;
  #timer: Disposable | undefined;

  constructor(options: { clock: Clock; collect: () => void }) {
    this.#clock = options.clock;
    this.#collect = options.collect;
  }

  /** Tells that something was done (a journal record). */
  worked(): void {
    this.#done++;
    this.#again = true;
    if (this.#done >= worthwhile && this.#timer === undefined) this.#wait();
  }

  #wait(): void {
    this.#again = false;
    this.#timer = this.#clock.after(quietMs, () => {
      if (this.#again) return this.#wait();
      this.#timer = undefined;
      this.#done = 0;
      this.#collect();
    });
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }
}

/** What V8 offers with its flag --expose-gc (scripts/agent.sh); it does nothing without. */
export function collectGarbage(): void {
  const { gc } = globalThis as { gc?: (options: { type: "major"; flavor: "last-resort" }) => void };
  // this flavour also gives back what the young generation had grown to
  gc?.({ type: "major", flavor: "last-resort" });
}
