import type { Clock } from "../../base/clock.ts";
import { abortedBy, KubeletError } from "../../base/errors.ts";

/** A signal that aborts with the caller's, or when a time is over. Disposing it leaves nothing on the caller's signal. */
export class Deadline implements Disposable {
  readonly #control = new AbortController();
  readonly #caller: AbortSignal;
  readonly #clock: Clock;
  readonly #onAbort = () => this.#control.abort(abortedBy(this.#caller));
  #timer: Disposable | undefined;
  #at = Infinity;
  #over = false;

  constructor(options: { clock: Clock; signal: AbortSignal; ms: number; what: string }) {
    this.#caller = options.signal;
    this.#clock = options.clock;
    if (this.#caller.aborted) this.#onAbort();
    else this.#caller.addEventListener("abort", this.#onAbort, { once: true });
    this.extend(options.ms, options.what);
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
      this.#control.abort(new KubeletError("Timeout", `${what} within ${ms / 1000} s`));
    });
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#caller.removeEventListener("abort", this.#onAbort);
  }
}
