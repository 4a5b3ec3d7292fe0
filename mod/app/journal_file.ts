import { Channel } from "../base/channel.ts";
import { messageOf } from "../base/errors.ts";
import type { JournalRecord } from "../base/journal.ts";
import type { Logger } from "../base/log.ts";

/** The file operations that a journal file takes. */
export interface JournalStore {
  /** Adds text to the file; returns the file's size afterwards, in bytes. */
  append(path: string, text: string): Promise<number>;
  rename(from: string, to: string): Promise<void>;
}

/**
 * Keeps the decision journal on disk: one JSON object a line in `path`, the one before it in `path.1` once it has
 * reached `maxBytes`. Writing never holds up a decision; a full disk costs the records, is told once, and no more.
 */
export class JournalFile {
  readonly #records = new Channel<JournalRecord>();
  readonly #o: { path: string; store: JournalStore; log: Logger; maxBytes: number };
  #failed = false;

  constructor(options: { path: string; store: JournalStore; log: Logger; maxBytes?: number }) {
    this.#o = { maxBytes: 8 << 20, ...options };
  }

  /** Takes a record; returns at once. */
  readonly sink = (record: JournalRecord): void => this.#records.push(record);

  /** Writes until the signal aborts, then what is left. */
  async run(signal: AbortSignal): Promise<void> {
    for await (const record of this.#records.values(signal)) await this.#write([record, ...await this.#waiting()]);
    await this.#write(await this.#waiting());
  }

  async #waiting(): Promise<JournalRecord[]> {
    const records: JournalRecord[] = [];
    while (this.#records.size > 0) {
      const next = await this.#records.take();
      if (next) records.push(next);
    }
    return records;
  }

  async #write(records: readonly JournalRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { path, store, log, maxBytes } = this.#o;
    const text = records.map((r) => `${JSON.stringify({ ...r, at: new Date(r.at).toISOString() })}\n`).join("");
    try {
      const size = await store.append(path, text);
      if (size >= maxBytes) await store.rename(path, `${path}.1`);
      this.#failed = false;
    } catch (thrown) {
      if (!this.#failed) {
        log.error("the decision journal cannot be written; decisions go on without it", {
          path,
          error: messageOf(thrown),
        });
      }
      this.#failed = true;
    }
  }
}
