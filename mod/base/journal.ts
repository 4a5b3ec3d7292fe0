import type { Clock } from "./clock.ts";
import { messageOf } from "./errors.ts";

/** The pod that a decision is about. */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * Why something is done: a short stable reason (one word, CamelCase) and a sentence for people. Every mutating runtime
 * call, rejection, restart and kill takes one, and it becomes exactly one journal record.
 */
export interface Because {
  readonly pod?: PodRef;
  readonly container?: string;
  readonly reason: string;
  readonly message: string;
}

/** One decision that was carried out. */
export interface JournalRecord extends Because {
  readonly seq: number;
  /** Wall time of the decision, milliseconds. */
  readonly at: number;
  /** What was done: a CRI method (`StopContainer`) or one of `Reject`, `Evict`, `CgroupKill`, `Adopt`. */
  readonly action: string;
  /** The id of the container, sandbox or image acted on, where there is one. */
  readonly target?: string;
  /** Milliseconds that the action took. */
  readonly tookMs?: number;
  /** The error's text when the action failed. */
  readonly error?: string;
}

/** The decision journal: the last `limit` records in memory, each also handed to `sink` (a file, a test). */
export class Journal {
  readonly #records: JournalRecord[] = [];
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #sink: ((record: JournalRecord) => void) | undefined;
  #seq = 0;

  constructor(options: { clock: Clock; limit?: number; sink?: (record: JournalRecord) => void }) {
    this.#clock = options.clock;
    this.#limit = options.limit ?? 10_000;
    this.#sink = options.sink;
  }

  /** The records kept, oldest first; of one pod when a UID is given. */
  records(uid?: string): readonly JournalRecord[] {
    return uid === undefined ? this.#records : this.#records.filter((r) => r.pod?.uid === uid);
  }

  /** Notes a decision that takes no time. */
  note(action: string, because: Because, target?: string): void {
    this.#add({ ...because, action, at: this.#clock.now(), ...(target === undefined ? {} : { target }) });
  }

  /** Notes an action that was tried and failed, where trying is no decision of its own (a volume's set-up). */
  failed(action: string, because: Because, target: string, error: string): void {
    this.#add({ ...because, action, at: this.#clock.now(), target, error });
  }

  /** Carries out an action and notes it, its duration and its outcome; what the action throws is thrown on. */
  async act<T>(action: string, because: Because, target: string | undefined, run: () => Promise<T>): Promise<T> {
    const at = this.#clock.now();
    const base = { ...because, action, at, ...(target === undefined ? {} : { target }) };
    try {
      const result = await run();
      this.#add({ ...base, tookMs: this.#clock.now() - at });
      return result;
    } catch (thrown) {
      this.#add({ ...base, tookMs: this.#clock.now() - at, error: messageOf(thrown) });
      throw thrown;
    }
  }

  #add(record: Omit<JournalRecord, "seq">): void {
    const full = { ...record, seq: ++this.#seq };
    this.#records.push(full);
    // Trimmed in steps, so that a full journal does not move its whole array at each record.
    if (this.#records.length > this.#limit * 1.1) this.#records.splice(0, this.#records.length - this.#limit);
    this.#sink?.(full);
  }
}
