import { abortedBy } from "../../mod/base/errors.ts";
import type { Scope } from "../../mod/base/scope.ts";

/**
 * Runs operations one at a time for each key. An operation belongs to the scope, not to its caller: a caller that is
 * called off leaves at once, while an operation that hangs in the kernel holds up only later ones of the same key.
 */
export class Operations {
  readonly #scope: Scope;
  readonly #tails = new Map<string, Promise<void>>();

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** True while an operation of the key runs or waits. */
  busy(key: string): boolean {
    return this.#tails.has(key);
  }

  /** Runs `body` after the key's earlier operations; its signal aborts with the caller's and the scope's. */
  async run<T>(key: string, signal: AbortSignal, body: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (signal.aborted) throw abortedBy(signal);
    const result = Promise.withResolvers<T>();
    const ended = Promise.withResolvers<void>();
    const before = this.#tails.get(key);
    this.#tails.set(key, ended.promise);
    const calledOff = Promise.withResolvers<never>();
    const controller = new AbortController();
    const abort = () => {
      controller.abort(signal.reason);
      calledOff.reject(abortedBy(signal));
    };
    signal.addEventListener("abort", abort, { once: true });
    this.#scope.spawn(key, async (scopeSignal) => {
      const abortAll = () => controller.abort(scopeSignal.reason);
      scopeSignal.addEventListener("abort", abortAll, { once: true });
      try {
        if (scopeSignal.aborted) abortAll();
        await before;
        if (controller.signal.aborted) throw abortedBy(controller.signal);
        result.resolve(await body(controller.signal));
      } catch (thrown) {
        result.reject(thrown);
      } finally {
        scopeSignal.removeEventListener("abort", abortAll);
        if (this.#tails.get(key) === ended.promise) this.#tails.delete(key);
        ended.resolve();
      }
    });
    try {
      return await Promise.race([result.promise, calledOff.promise]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }
}
