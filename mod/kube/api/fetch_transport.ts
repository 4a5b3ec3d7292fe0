import { KubeletError } from "../../base/errors.ts";
import type { HttpRequest, HttpResponse, Transport, TransportOptions } from "./transport.ts";

/**
 * Lasting answers on one connection. All requests share one HTTP/2 connection of a client, and the API server takes 100
 * at once on it; further ones would wait, without end behind watches (measured: with 100 watches open nothing else got
 * through). Of HTTP/1.1 the same was measured with a connection for each watch: as much memory here, 0.27 s instead of
 * 0.05 s to open 90 of them, and 90 connections for the server to hold.
 */
const lastingAtOnce = 64;

/** One pool of connections with what goes on in it. */
interface Lane {
  readonly client: Deno.HttpClient;
  /** What calls off each lasting answer. */
  readonly lasting: Set<AbortController>;
  open: number;
}

/** Requests by fetch: HTTP/2 where the server has it; lasting answers on connections of their own. */
export class FetchTransport implements Transport {
  readonly #options: TransportOptions;
  #retired = false;
  readonly #calls: Lane;
  #lanes: Lane[] = [];

  /** Throws when certificate or key cannot be read. */
  constructor(options: TransportOptions) {
    this.#options = options;
    this.#calls = this.#lane();
  }

  #lane(): Lane {
    const { tls: { ca, cert, key }, proxyUrl } = this.#options;
    const client = Deno.createHttpClient({
      ...(ca === undefined ? {} : { caCerts: [ca] }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
      ...(proxyUrl === undefined ? {} : { proxy: { url: proxyUrl } }),
    });
    return { client, lasting: new Set(), open: 0 };
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    if (this.#retired) throw new KubeletError("Network", "the connections were given up");
    const { signal, lasting } = request;
    const lane = lasting ? this.#laneWithRoom() : this.#calls;
    lane.open++;
    const control = new AbortController();
    const onAbort = () => control.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    if (lasting) lane.lasting.add(control);
    const done = () => {
      signal.removeEventListener("abort", onAbort);
      lane.lasting.delete(control);
      lane.open--;
      this.#closeIdle(lane);
    };
    try {
      const response = await fetch(request.url, {
        method: request.method,
        headers: request.headers,
        redirect: "error",
        client: lane.client,
        signal: control.signal,
        ...(request.body === undefined ? {} : { body: request.body }),
      });
      return {
        status: response.status,
        header: (name) => response.headers.get(name) ?? undefined,
        body: bodyOf(response, control.signal, done),
      };
    } catch (thrown) {
      done();
      throw thrown;
    }
  }

  #laneWithRoom(): Lane {
    const found = this.#lanes.find(({ open }) => open < lastingAtOnce);
    if (found) return found;
    const lane = this.#lane();
    this.#lanes.push(lane);
    return lane;
  }

  /** Closes what nothing goes on in: all of it once retired, otherwise lanes beyond the first. */
  #closeIdle(lane: Lane): void {
    if (lane.open > 0) return;
    const spare = lane !== this.#calls && this.#lanes.length > 1;
    if (!this.#retired && !spare) return;
    this.#lanes = this.#lanes.filter((other) => other !== lane);
    lane.client.close();
  }

  retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    const lanes = [this.#calls, ...this.#lanes];
    for (const lane of lanes) {
      for (const control of [...lane.lasting]) {
        control.abort(new KubeletError("Network", "the connection was given up for a new one"));
      }
      // Whatever still goes on closes it at its end.
      if (lane.open === 0) lane.client.close();
    }
  }
}

/** The body in pieces; `done` is called once, however the reading ends. A signal that aborts ends it with its reason. */
async function* bodyOf(response: Response, signal: AbortSignal, done: () => void): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) yield chunk;
    signal.throwIfAborted();
  } finally {
    done();
  }
}
