/**
 * One piece of work for all who ask at the same time. Who asks while it is under way waits for the next one, which is
 * begun when this one is over and is for everybody who came meanwhile: so no answer was begun before its question, and
 * however many ask at once, the work is done twice at most.
 */
export class Shared<T> {
  readonly #work: () => Promise<T>;
  #running: Promise<unknown> | undefined;
  #next: Promise<T> | undefined;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#running === undefined;
  }

  /** Rejects as the work does. */
  ask(): Promise<T> {
    if (this.#running === undefined) return this.#begin();
    return this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#begin();
    });
  }

  #begin(): Promise<T> {
    const work = this.#work();
    // What comes of it is its askers' concern; here only its end counts.
    const over = work.then(() => {}, () => {}).then(() => {
      if (this.#running === over && this.#next === undefined) this.#running = undefined;
    });
    this.#running = over;
    return work;
  }
}
