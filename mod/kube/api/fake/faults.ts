import type { ApiError } from "../types.ts";

/** What a request does, in an API server's words. */
export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

/** A request as the server saw it. */
export interface Call {
  /** The name that the client was made with, such as `main`. */
  readonly client: string;
  readonly verb: Verb;
  /** Plural, such as `pods`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly fieldSelector?: string;
  /** The object or patch that was sent. */
  readonly body?: unknown;
  /** When it came, in milliseconds. */
  readonly at: number;
}

/** What goes wrong with a request. */
export type FaultKind =
  /** No connection: refused at once. */
  | { readonly kind: "unreachable" }
  /** Nothing ever comes back: the call's time runs out. */
  | { readonly kind: "hang" }
  /** Answered after so many milliseconds. */
  | { readonly kind: "slow"; readonly ms: number }
  /** Refused by the server, which then did nothing. */
  | { readonly kind: "status"; readonly error: ApiError }
  /** Carried out, but the answer is lost. */
  | { readonly kind: "lost" };

/** Which requests a fault hits; all of them when nothing is given. */
export interface FaultMatch {
  readonly client?: string;
  readonly verb?: Verb;
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
}

interface Entry {
  readonly fault: FaultKind;
  readonly match: FaultMatch;
  left: number;
}

/** The faults that tests put in the way of requests; the first that fits is taken. */
export class Faults {
  #entries: Entry[] = [];

  /** Adds a fault for the next `times` requests that fit (without end when not given). Disposing it ends it. */
  add(fault: FaultKind, match: FaultMatch = {}, times = Infinity): Disposable {
    const entry = { fault, match, left: times };
    this.#entries.push(entry);
    return { [Symbol.dispose]: () => void (this.#entries = this.#entries.filter((other) => other !== entry)) };
  }

  clear(): void {
    this.#entries = [];
  }

  /** The fault for a request, used up by it; undefined when all goes well. */
  take(call: Call): FaultKind | undefined {
    const entry = this.#entries.find(({ match }) =>
      (["client", "verb", "resource", "subresource", "name"] as const)
        .every((key) => match[key] === undefined || match[key] === call[key])
    );
    if (!entry) return undefined;
    entry.left--;
    if (entry.left <= 0) this.#entries = this.#entries.filter((other) => other !== entry);
    return entry.fault;
  }
}
