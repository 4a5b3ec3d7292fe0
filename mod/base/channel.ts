import { abortedBy } from "./errors.ts";

/**
 * An unbounded single-consumer queue of values between tasks. `latest` turns it into a coalescing one: a value with a
 * key replaces the queued value of the same key and keeps its place.
 */
export class Channel<T> {
  #items: { key: unknown; value: T }[] = [];
  #wake: (() => void) | undefined;
  #closed = false;

  get size(): number {
    return this.#items.length;
  }

  /** Adds a value; ignored after `close`. */
  push(value: T): void {
    if (this.#closed) return;
    this.#items.push({ key: undefined, value });
    this.#notify();
  }

  /** Adds a value, or replaces the waiting one of the same key. */
  latest(key: unknown, value: T): void {
    if (this.#closed) return;
    const at = this.#items.findIndex((i) => i.key === key);
    if (at >= 0) this.#items[at] = { key, value };
    else this.#items.push({ key, value });
    this.#notify();
  }

  /** No more values; a waiting consumer ends once the queue is empty. */
  close(): void {
    this.#closed = true;
    this.#notify();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** The next value; undefined once closed and empty. Rejects with Aborted when the signal aborts. */
  async take(signal?: AbortSignal): Promise<T | undefined> {
    while (true) {
      if (signal?.aborted) throw abortedBy(signal);
      const item = this.#items.shift();
      if (item) return item.value;
      if (this.#closed) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      signal?.addEventListener("abort", this.#onAbort, { once: true });
      try {
        await promise;
      } finally {
        signal?.removeEventListener("abort", this.#onAbort);
      }
    }
  }

  readonly #onAbort = () => this.#notify();

  /** Values until the channel is closed or the signal aborts (then the iteration ends quietly). */
  async *values(signal?: AbortSignal): AsyncGenerator<T> {
    while (!signal?.aborted) {
      let value: T | undefined;
      try {
        value = await this.take(signal);
      } catch {
        return;
      }
      if (value === undefined) return;
      yield value;
    }
  }
}
