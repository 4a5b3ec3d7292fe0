import type { Event } from "../../mod/kube/types.ts";
import { newEvent } from "./event_object.ts";
import { Recent } from "./recent.ts";
import type { CountedEvent, Occurrence } from "./types.ts";

/** The contract's figures (runtime-contract.md section 16): what is remembered, and how much of one kind is too much. */
const remembered = 4096;
/** So many different texts of one reason about one object become one event, unless they are this far apart. */
const similarMost = 10;
const similarMs = 600_000;
/** An object may have so many events of one type at once, and one more after each such time. */
const spamBurst = 25;
const spamRefillMs = 300_000;

/** What is to be written. */
export interface Correlated {
  readonly event: CountedEvent;
  /** For an event that was written before: what of it has changed. Without it the event is new. */
  readonly patch?: Pick<CountedEvent, "count" | "lastTimestamp" | "message">;
  /** Names the event here; hand it back to `written`. */
  readonly key: string;
}

interface Similar {
  readonly texts: readonly string[];
  readonly at: number;
}

interface Written {
  readonly count: number;
  readonly name: string;
  readonly firstTimestamp: string;
}

interface Budget {
  readonly left: number;
  readonly at: number;
}

/** Turns what happens into events: counts what repeats, joins what is similar, and drops what is too much. */
export class EventCorrelator {
  readonly #host: string;
  readonly #similar = new Recent<Similar>(remembered);
  readonly #written = new Recent<Written>(remembered);
  readonly #budgets = new Recent<Budget>(remembered);
  #made = 0;

  /** @param host the node's name */
  constructor(host: string) {
    this.#host = host;
  }

  /** What is to be written of something that happened; undefined: nothing. @param now milliseconds since the epoch */
  take(what: Occurrence, now: number): Correlated | undefined {
    const { about, type, reason } = what;
    const object = [about.kind, about.namespace, about.name, about.uid, about.apiVersion, type];
    const group = key(...object, reason);
    const many = this.#isOneOfMany(group, what.message, now);
    const message = many ? `(combined from similar events): ${what.message}` : what.message;
    const at = many ? group : key(...object, reason, about.fieldPath, message);
    // An aggregate stands for many; the particulars of one of them are not its own.
    const { annotations: _, ...bare } = what;
    const fresh = newEvent(many ? { ...bare, message } : what, this.#host, now, this.#made++);
    const before = this.#written.get(at);
    const event: CountedEvent = before
      ? {
        ...fresh,
        metadata: { ...fresh.metadata, name: before.name },
        count: before.count + 1,
        firstTimestamp: before.firstTimestamp,
      }
      : fresh;
    this.#remember(at, event);
    if (!this.#mayWrite(key(...object), now)) return undefined;
    const { count, lastTimestamp } = event;
    return { event, key: at, ...(before ? { patch: { count, lastTimestamp, message } } : {}) };
  }

  /** The API server has an event under this name and count now. */
  written({ key }: Correlated, event: Event): void {
    const { name } = event.metadata;
    if (name === undefined) return;
    const { count = 1, firstTimestamp = "" } = event;
    const newer = this.#written.get(key);
    this.#written.set(key, { name, count: Math.max(count, newer?.count ?? 0), firstTimestamp });
  }

  #remember(at: string, { metadata: { name }, count, firstTimestamp }: CountedEvent): void {
    this.#written.set(at, { name, count, firstTimestamp });
  }

  #isOneOfMany(group: string, text: string, now: number): boolean {
    const before = this.#similar.get(group);
    const fresh = !before || now - before.at > similarMs;
    const texts = fresh ? [text] : before.texts.includes(text) ? before.texts : [...before.texts, text];
    const many = texts.length >= similarMost;
    // One is forgotten, so that a text which comes often enough alone is one of many still, and the list stays short.
    this.#similar.set(group, { texts: many ? texts.slice(1) : texts, at: now });
    return many;
  }

  #mayWrite(object: string, now: number): boolean {
    const before = this.#budgets.get(object) ?? { left: spamBurst, at: now };
    const left = Math.min(spamBurst, before.left + Math.max(0, now - before.at) / spamRefillMs);
    this.#budgets.set(object, { left: left >= 1 ? left - 1 : left, at: now });
    return left >= 1;
  }
}

/** Joins by a sign that none of the parts can have. */
function key(...parts: readonly (string | undefined)[]): string {
  return parts.map((part) => part ?? "").join("\u0000");
}
