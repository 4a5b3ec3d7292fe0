import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { waitAtMost } from "../../mod/base/within.ts";

interface Known<T> {
  value: T | undefined;
  /** When it was last measured. */
  at: number;
  asked: number;
}

export interface MeasuredOptions<T> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns the measuring. */
  readonly scope: Scope;
  /** For the log: what is measured. */
  readonly name: string;
  /** Measures one; undefined when there is nothing. @param last what was measured before */
  readonly measure: (key: string, signal: AbortSignal, last: T | undefined) => Promise<T | undefined>;
  /** For how long a measurement is good, milliseconds. */
  readonly keepMs: number;
  /** After this long without a question it is forgotten, and the next question waits; milliseconds. */
  readonly forgetMs: number;
}

/**
 * Figures that take long to get: measured when somebody asks, and kept for a while. One is measured at a time; an
 * answer that is older than it should be is given at once, and measured anew behind it. Nothing is measured while
 * nobody asks.
 */
export class Measured<T> {
  readonly #o: MeasuredOptions<T>;
  readonly #known = new Map<string, Known<T>>();
  readonly #queue = new Set<string>();
  #done: PromiseWithResolvers<void> | undefined;

  constructor(options: MeasuredOptions<T>) {
    this.#o = options;
  }

  /** What is known of these; those that were never measured are waited for, at most `patienceMs`. */
  async of(keys: readonly string[], patienceMs: number): Promise<ReadonlyMap<string, T>> {
    const { clock, keepMs, forgetMs } = this.#o;
    const now = clock.now();
    for (const [key, { asked }] of this.#known) if (now - asked > forgetMs) this.#known.delete(key);
    let unknown = false;
    for (const key of keys) {
      const known = this.#known.get(key);
      if (known) known.asked = now;
      else unknown = true;
      if (!known || now - known.at >= keepMs) this.#queue.add(key);
    }
    const done = this.#work();
    if (unknown && done) await waitAtMost({ clock, ms: patienceMs }, done);
    const found = new Map<string, T>();
    for (const key of keys) {
      const value = this.#known.get(key)?.value;
      if (value !== undefined) found.set(key, value);
    }
    return found;
  }

  /** Measures one anew, however young what is known of it may be; waits for that at most `patienceMs`. */
  async renewed(key: string, patienceMs: number): Promise<T | undefined> {
    this.#queue.add(key);
    const done = this.#work();
    if (done) await waitAtMost({ clock: this.#o.clock, ms: patienceMs }, done);
    return this.#known.get(key)?.value;
  }

  /** Starts measuring what is queued, when nothing does yet; resolves when the queue is empty. */
  #work(): Promise<void> | undefined {
    if (this.#done || this.#queue.size === 0) return this.#done?.promise;
    const { scope, name } = this.#o;
    const done = this.#done = Promise.withResolvers<void>();
    scope.spawn(name, async (signal) => {
      try {
        for (const key of this.#queue) {
          this.#queue.delete(key);
          await this.#measure(key, signal);
        }
      } finally {
        this.#done = undefined;
        done.resolve();
      }
    });
    return done.promise;
  }

  async #measure(key: string, signal: AbortSignal): Promise<void> {
    const { clock, log, measure, name } = this.#o;
    let value: T | undefined;
    try {
      value = await measure(key, signal, this.#known.get(key)?.value);
    } catch (thrown) {
      if (signal.aborted || isAborted(thrown)) throw thrown;
      log.detail(2, `${name} could not be measured`, { of: key, error: messageOf(thrown) });
    }
    const now = clock.now();
    this.#known.set(key, { value, at: now, asked: this.#known.get(key)?.asked ?? now });
  }
}
