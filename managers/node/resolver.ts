import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { waitAtMost } from "../../mod/base/within.ts";

/** How long an answer is used, and how long one is waited for, in milliseconds. */
const freshMs = 60_000;
const patienceMs = 1000;

export interface NameResolverOptions {
  readonly name: string;
  /** Addresses of a name, as the machine resolves it; rejects when there are none. */
  readonly lookup: (name: string) => Promise<readonly string[]>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Resolves the node's name now and then. A resolver that hangs holds nothing up: the last answer is used meanwhile. */
export class NameResolver {
  readonly #o: NameResolverOptions;
  #known: readonly string[] = [];
  #askedAt: number | undefined;
  #asking: Promise<void> | undefined;

  constructor(options: NameResolverOptions) {
    this.#o = options;
  }

  /** The addresses of the name; none when it has none. Rejects only when aborted. */
  async addresses(signal: AbortSignal): Promise<readonly string[]> {
    const { clock } = this.#o;
    const now = clock.now();
    if (!this.#asking && (this.#askedAt === undefined || Math.abs(now - this.#askedAt) >= freshMs)) {
      this.#askedAt = now;
      this.#asking = this.#ask();
    }
    if (this.#asking) await waitAtMost({ clock, ms: patienceMs, signal }, this.#asking);
    return this.#known;
  }

  async #ask(): Promise<void> {
    const { name, lookup, log } = this.#o;
    try {
      this.#known = await lookup(name);
    } catch (thrown) {
      this.#known = [];
      log.detail(4, "the node's name is not resolved", { name, error: messageOf(thrown) });
    } finally {
      this.#asking = undefined;
    }
  }
}
