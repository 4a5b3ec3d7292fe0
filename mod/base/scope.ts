import { asError } from "./errors.ts";

/**
 * A scope owns tasks. Closing it aborts its signal and awaits every child; a child that fails before it was called off
 * is reported to the scope's owner through `onFailure`; a clean-up that fails after that must tell so itself. Nothing
 * started in a scope outlives it.
 */
export class Scope implements AsyncDisposable {
  readonly #controller = new AbortController();
  readonly #tasks = new Set<Promise<void>>();
  readonly #onFailure: (error: Error, task: string) => void;
  readonly #detach: () => void;

  constructor(readonly name: string, options: {
    /** The parent's signal: its abort aborts this scope too. */
    signal?: AbortSignal;
    /** Told of each task that failed; without it a failure is re-thrown by `close`. */
    onFailure?: (error: Error, task: string) => void;
  } = {}) {
    const { signal, onFailure } = options;
    this.#onFailure = onFailure ?? ((error) => this.#failures.push(error));
    const abort = () => this.#controller.abort(signal?.reason);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
    this.#detach = () => signal?.removeEventListener("abort", abort);
  }

  readonly #failures: Error[] = [];

  /** Aborts when the scope closes or its parent aborts. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Number of tasks that still run. */
  get size(): number {
    return this.#tasks.size;
  }

  /** Starts a task that lives in this scope. */
  spawn(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    const task = (async () => {
      try {
        await run(this.signal);
      } catch (thrown) {
        // What a task throws once it has been called off comes of that: a call cut short fails in many words.
        if (!this.signal.aborted) this.#onFailure(asError(thrown), `${this.name}/${name}`);
      }
    })();
    this.#tasks.add(task);
    void task.then(() => this.#tasks.delete(task));
  }

  /** Makes a scope inside this one: it is aborted with it and awaited by it, and its failures reach the same owner. */
  child(name: string, options: { onFailure?: (error: Error, task: string) => void } = {}): Scope {
    const child = new Scope(`${this.name}/${name}`, {
      signal: this.signal,
      onFailure: options.onFailure ?? this.#onFailure,
    });
    const task = child.#closed.promise;
    this.#tasks.add(task);
    const closeWithParent = () => void child.close();
    if (this.signal.aborted) closeWithParent();
    else this.signal.addEventListener("abort", closeWithParent, { once: true });
    void task.then(() => {
      this.#tasks.delete(task);
      this.signal.removeEventListener("abort", closeWithParent);
    });
    return child;
  }

  readonly #closed = Promise.withResolvers<void>();

  /** Aborts the signal and waits until every task and child scope has ended. Safe to call twice. */
  async close(reason?: unknown): Promise<void> {
    if (!this.signal.aborted) this.#controller.abort(reason);
    while (this.#tasks.size > 0) await Promise.allSettled([...this.#tasks]);
    this.#detach();
    this.#closed.resolve();
    if (this.#failures.length > 0) {
      throw new AggregateError(this.#failures.splice(0), `tasks of ${this.name} failed`);
    }
  }

  /** Waits until every task now running has ended, without aborting them. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.allSettled([...this.#tasks]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
