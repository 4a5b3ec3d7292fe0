import type { Clock } from "./clock.ts";
import { abortedBy, KubeletError } from "./errors.ts";

export interface DeadlineOptions {
  readonly clock: Clock;
  /** The caller's; none: only time ends the work. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; not given: no limit of time. */
  readonly ms?: number;
  /** What is told of the time when it is over, as in `no answer`. */
  readonly what?: string;
}

/**
 * A signal that aborts with the caller's (the reason is an Aborted error), when a time is over (a Timeout error) or when
 * it is told to. Work heeds it by itself; where that is not sure, `within` leaves the work. Disposing it leaves nothing
 * on the caller's signal, and aborts nothing.
 */
export class Deadline implements Disposable {
  readonly #control = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #clock: Clock;
  readonly #onAbort = () => this.#caller && this.#control.abort(abortedBy(this.#caller));
  #timer: Disposable | undefined;
  #at = Infinity;
  #over = false;

  constructor({ clock, signal, ms, what = "not done" }: DeadlineOptions) {
    this.#caller = signal;
    this.#clock = clock;
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (ms !== undefined) this.extend(ms, what);
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  /** Whether the time was over before anything else ended the work. */
  get over(): boolean {
    return this.#over;
  }

  /** Milliseconds that are left. */
  get left(): number {
    return this.#at - this.#clock.now();
  }

  /** Gives another time from now on. @param what is told of the time when it is over */
  extend(ms: number, what: string): void {
    this.#timer?.[Symbol.dispose]();
    this.#at = this.#clock.now() + ms;
    this.#timer = this.#clock.after(ms, () => {
      this.#over = !this.#control.signal.aborted;
      this.#control.abort(new KubeletError("Timeout", `${what} within ${seconds(ms)} s`));
    });
  }

  /** Ends the work now. */
  end(reason?: unknown): void {
    this.#control.abort(reason);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#caller?.removeEventListener("abort", this.#onAbort);
  }
}

/** Thousandths are enough for anybody. */
function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}
