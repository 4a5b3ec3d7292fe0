import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Clock } from "../../mod/base/clock.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";

interface ChangesOptions {
  readonly path: string;
  readonly host: Pick<Host, "watch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Waits for changes of one file; the watch is kept from the first wait until it is disposed. */
export class Changes implements AsyncDisposable {
  readonly #o: ChangesOptions;
  readonly #stop = new AbortController();
  readonly #abort = () => {
    this.#stop.abort();
    this.#wake();
  };
  #pump: Promise<void> | undefined;
  #changed = false;
  #wake = () => {};

  constructor(options: ChangesOptions) {
    this.#o = options;
    if (options.signal.aborted) this.#abort();
    else options.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Resolves when the file may have changed since the last call, when `ms` have passed, or when the signal aborts. */
  async next(ms: number): Promise<"changed" | "time" | "aborted"> {
    this.#pump ??= this.#watch();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    using _timer = this.#o.clock.after(ms, resolve);
    if (!this.#changed && !this.#stop.signal.aborted) await promise;
    this.#wake = () => {};
    if (this.#stop.signal.aborted) return "aborted";
    const changed = this.#changed;
    this.#changed = false;
    return changed ? "changed" : "time";
  }

  async #watch(): Promise<void> {
    const { host, path, log } = this.#o;
    try {
      for await (const _ of host.watch(path, this.#stop.signal)) {
        this.#changed = true;
        this.#wake();
      }
    } catch (thrown) {
      // Without a watch, the waits end by their time: slower, but nothing is missed.
      if (!isAborted(thrown)) {
        log.warn("a log cannot be watched; it is looked at each second", { error: messageOf(thrown) });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#o.signal.removeEventListener("abort", this.#abort);
    this.#abort();
    await this.#pump;
  }
}
