/** A broken invariant. */
export class Broken extends Error {
  constructor(readonly invariant: string, readonly what: string) {
    super(`${invariant}: ${what}`);
  }
}

/** What happened lately, with simulated time. */
export class Trace {
  readonly #lines: string[] = [];
  readonly #now: () => number;
  readonly #start: number;
  readonly #echo: ((line: string) => void) | undefined;

  constructor(options: { now: () => number; echo?: (line: string) => void }) {
    this.#now = options.now;
    this.#start = options.now();
    this.#echo = options.echo;
  }

  /** Notes an event, cut to a length that can be read. */
  note(text: string): void {
    const line = `${((this.#now() - this.#start) / 1000).toFixed(3).padStart(10)}  ${text.slice(0, 300)}`;
    this.#lines.push(line);
    if (this.#lines.length > 2000) this.#lines.splice(0, 1000);
    this.#echo?.(line);
  }

  last(count: number): readonly string[] {
    return this.#lines.slice(-count);
  }
}

/** An id's beginning, as people read it. */
export function short(id: string | undefined): string {
  return (id ?? "-").slice(0, 8);
}
