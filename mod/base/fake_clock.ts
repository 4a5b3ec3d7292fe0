import { setImmediate } from "node:timers";
import { type Clock, sleepBy } from "./clock.ts";

interface Timer {
  at: number;
  seq: number;
  run: () => void;
}

/** One turn of the event loop: everything that can run without time passing has run when it resolves. */
export function turn(): Promise<void> {
  // A timer of 0 ms costs a millisecond or more; a simulation takes thousands of turns a second.
  return new Promise((resolve) => void setImmediate(resolve));
}

/**
 * Lets the event loop turn until something is so, for what the run-time's own threads do (keys, for one), which no number
 * of turns tells. Throws when it is not so after a minute.
 */
export async function turnUntil(until: () => boolean): Promise<void> {
  for (const began = performance.now(); !until();) {
    if (performance.now() - began >= 60_000) throw new Error(`not so within a minute: ${until}`);
    await turn();
  }
}

/**
 * A clock that stands still until told to move. Timers fire in order of their time, then of their making, and between
 * two of them everything that became runnable runs, so a test under it is deterministic.
 */
export class FakeClock implements Clock {
  #now: number;
  #seq = 0;
  #timers: Timer[] = [];

  /** Milliseconds that the wall clock was set forward, altogether; negative for back. */
  shifted = 0;

  /** @param start wall time in milliseconds since the epoch */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepBy((d, r) => this.after(d, r), ms, signal);
  }

  after(ms: number, run: () => void): Disposable {
    const timer: Timer = { at: this.#now + Math.max(ms, 0), seq: this.#seq++, run };
    let low = 0, high = this.#timers.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.#timers[mid]!.at <= timer.at) low = mid + 1;
      else high = mid;
    }
    this.#timers.splice(low, 0, timer);
    return {
      [Symbol.dispose]: () => {
        const at = this.#timers.indexOf(timer);
        if (at >= 0) this.#timers.splice(at, 1);
      },
    };
  }

  /** Number of timers that wait. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Wall time of the next timer, or undefined when none waits. */
  get next(): number | undefined {
    return this.#timers[0]?.at;
  }

  /** Moves to the next timer, fires it and lets what it woke run. Returns false when no timer waits. */
  async step(): Promise<boolean> {
    const timer = this.#timers.shift();
    if (!timer) return false;
    this.#now = Math.max(this.#now, timer.at);
    timer.run();
    await turn();
    return true;
  }

  /** Sets the wall clock forward, or back when negative. Timers wait as long as they would have. */
  shift(ms: number): void {
    this.#now += ms;
    this.shifted += ms;
    for (const timer of this.#timers) timer.at += ms;
  }

  /** Lets `ms` milliseconds pass, firing every timer that falls due on the way. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await turn();
    while (this.#timers.length > 0 && this.#timers[0]!.at <= end) await this.step();
    this.#now = end;
    await turn();
  }
}
