import type { Clock } from "../../mod/base/clock.ts";
import type { Logger } from "../../mod/base/log.ts";

/** How often the same is said again, milliseconds. */
const againMs = 600_000;

/** Says what goes on being wrong at once, and again every ten minutes; what is new, at once. */
export class Complaints {
  readonly #clock: Clock;
  readonly #log: Pick<Logger, "error">;
  #said = "";
  #at = -Infinity;

  constructor(clock: Clock, log: Pick<Logger, "error">) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param facts `error` is part of what is said; other fields are not compared */
  say(message: string, facts: Readonly<Record<string, unknown>>): void {
    const text = `${message} ${String(facts.error ?? "")}`;
    const now = this.#clock.now();
    if (text === this.#said && Math.abs(now - this.#at) < againMs) return;
    this.#said = text;
    this.#at = now;
    this.#log.error(message, facts);
  }

  /** All is well: the same trouble is new when it comes again. */
  over(): void {
    this.#said = "";
  }
}
