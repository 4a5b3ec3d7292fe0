import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, ApiError, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { EventSink, PodEvent } from "../../mod/kube/events.ts";
import type { Event } from "../../mod/kube/types.ts";
import { type Correlated, EventCorrelator } from "./correlator.ts";
import { nodeReference, podReference } from "./event_object.ts";
import type { Occurrence } from "./types.ts";

/** Events that wait to be written at most. */
const mostWaiting = 1000;
/** How often one event is tried, and the time between two tries, in milliseconds. */
const mostTries = 12;
const retryMs = 10_000;

export interface EventRecorderOptions {
  /** The client of events, with eventRecordQPS and eventBurst. */
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/**
 * Writes events to the API server (features.md B27), in their order, one after another. What happens while the server
 * is away waits; when too much waits, the oldest is dropped, and told.
 */
export class EventRecorder implements EventSink {
  readonly #o: EventRecorderOptions;
  readonly #correlator: EventCorrelator;
  #waiting: { readonly what: Occurrence; readonly at: number }[] = [];
  #wake = Promise.withResolvers<void>();
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#o = options;
    this.#correlator = new EventCorrelator(options.nodeName);
  }

  /** How many events wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  pod(event: PodEvent): void {
    const { type, reason, message, annotations } = event;
    this.#add({ about: podReference(event), type, reason, message, ...(annotations ? { annotations } : {}) });
  }

  node(event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    this.#add({ about: nodeReference(this.#o.nodeName), ...event });
  }

  #add(what: Occurrence): void {
    this.#waiting.push({ what, at: this.#o.clock.now() });
    if (this.#waiting.length > mostWaiting) {
      this.#waiting.shift();
      this.#dropped++;
    }
    this.#wake.resolve();
  }

  /** Writes until the signal aborts; what waits then is dropped. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#o;
    const stop = () => this.#wake.resolve();
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        const next = this.#waiting.shift();
        if (!next) {
          this.#wake = Promise.withResolvers<void>();
          await this.#wake.promise;
          continue;
        }
        if (this.#dropped > 0) log.warn("events were dropped, as too many waited", { dropped: this.#dropped });
        this.#dropped = 0;
        const correlated = this.#correlator.take(next.what, next.at);
        if (correlated) await this.#write(correlated, signal);
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Writes one event, with patience where that may help. Rejects only when aborted. */
  async #write(correlated: Correlated, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#o;
    const { reason, message, involvedObject } = correlated.event;
    const line = { about: `${involvedObject.kind} ${involvedObject.name}`, reason, message };
    for (let tries = 1;; tries++) {
      try {
        this.#correlator.written(correlated, await this.#send(correlated, signal));
        return;
      } catch (thrown) {
        if (signal.aborted) return;
        const error = messageOf(thrown);
        if (isFinal(thrown)) {
          const quiet = thrown instanceof ApiError && thrown.status === 409 || isEnding(thrown);
          if (quiet) log.detail(4, "the API server refuses an event", { ...line, error });
          else log.error("the API server refuses an event", { ...line, error });
          return;
        }
        if (tries >= mostTries) {
          log.error("an event could not be written and is dropped", { ...line, tries, error });
          return;
        }
        if (tries === 1) log.warn("an event cannot be written; it is tried again", { ...line, error });
        // The first wait is random, so that the nodes of a cluster do not come back together.
        await clock.sleep(tries === 1 ? retryMs * random() : retryMs, signal).catch(() => {});
      }
    }
  }

  async #send({ event, patch }: Correlated, signal: AbortSignal): Promise<Event> {
    const { client } = this.#o;
    const { name, namespace } = event.metadata;
    if (patch) {
      try {
        const options = { signal, type: "strategic-merge" as const };
        return await client.patch(resources.events, { name, namespace }, patch, options);
      } catch (thrown) {
        // Events live an hour; this one is gone, and made anew with its count.
        if (!isApiNotFound(thrown)) throw thrown;
      }
    }
    return await client.create(resources.events, event, { signal });
  }
}

/** True when the API server will not take the event however often it is asked. */
function isFinal(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status < 500 && thrown.status !== 429 && thrown.status !== 401;
}

/** True when the event's namespace is ending. */
function isEnding(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status === 403 && /being terminated/.test(thrown.message);
}

/** Hands events to several sinks. */
export function allSinks(...sinks: readonly EventSink[]): EventSink {
  return {
    pod: (event) => {
      for (const sink of sinks) sink.pod(event);
    },
    node: (event) => {
      for (const sink of sinks) sink.node(event);
    },
  };
}
