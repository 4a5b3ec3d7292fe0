import type { Clock } from "../../base/clock.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** How long a page is kept for others, milliseconds: as long as its collection is shared, and a little. */
const keptMs = 1500;

/**
 * Pages that are made of a collection of statistics: one of them is made once, for all who are given that collection.
 * Nothing is kept while nobody asks.
 */
export class KeptPages {
  readonly #clock: Clock;
  readonly #kept = new Map<string, { readonly of: object; readonly page: Promise<Bytes>; readonly end: Disposable }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The page of that name. A failure is not kept. */
  async get(
    name: string,
    of: object | undefined,
    make: () => Promise<Bytes | string> | Bytes | string,
  ): Promise<Bytes> {
    if (of === undefined) return bytesOf(await make());
    const kept = this.#kept.get(name);
    if (kept?.of === of) return await kept.page;
    kept?.end[Symbol.dispose]();
    const page = (async () => bytesOf(await make()))();
    const entry = { of, page, end: this.#clock.after(keptMs, () => this.#drop(name, page)) };
    this.#kept.set(name, entry);
    try {
      return await page;
    } catch (thrown) {
      this.#drop(name, page);
      throw thrown;
    }
  }

  #drop(name: string, page: Promise<Bytes>): void {
    const kept = this.#kept.get(name);
    if (kept?.page !== page) return;
    kept.end[Symbol.dispose]();
    this.#kept.delete(name);
  }
}

function bytesOf(page: Bytes | string): Bytes {
  return typeof page === "string" ? new TextEncoder().encode(page) : page;
}
