import { Agent as PlainAgent, type IncomingMessage, request as plainRequest } from "node:http";
import { Agent, request as secureRequest } from "node:https";
import { KubeletError } from "../../base/errors.ts";
import type { HttpRequest, HttpResponse, Transport, TransportOptions } from "./transport.ts";

/**
 * Requests over HTTP/1.1 by node:https: for servers whose certificate is for another name (tls-server-name) or is not
 * to be checked (insecure-skip-tls-verify), which fetch cannot do. A connection for each request that goes on.
 */
export class NodeTransport implements Transport {
  readonly #secure: Agent;
  readonly #plain = new PlainAgent({ keepAlive: true });
  readonly #lasting = new Set<AbortController>();
  #retired = false;

  constructor({ tls: { ca, cert, key }, serverName, insecure, proxyUrl }: TransportOptions) {
    if (proxyUrl !== undefined) {
      throw new KubeletError(
        "BadConfig",
        "kubeconfig: proxy-url does not go together with insecure-skip-tls-verify or tls-server-name; leave one out",
      );
    }
    this.#secure = new Agent({
      keepAlive: true,
      rejectUnauthorized: !insecure,
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
    });
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    if (this.#retired) throw new KubeletError("Network", "the connections were given up");
    const { signal, lasting } = request;
    const control = new AbortController();
    const onAbort = () => control.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    if (lasting) this.#lasting.add(control);
    const done = () => {
      signal.removeEventListener("abort", onAbort);
      this.#lasting.delete(control);
    };
    try {
      const message = await this.#message(request, control.signal);
      return {
        status: message.statusCode ?? 0,
        header(name): string | undefined {
          const value = message.headers[name.toLowerCase()];
          return Array.isArray(value) ? value[0] : value;
        },
        body: bodyOf(message, control.signal, done),
      };
    } catch (thrown) {
      done();
      throw thrown;
    }
  }

  async #message(request: HttpRequest, signal: AbortSignal): Promise<IncomingMessage> {
    signal.throwIfAborted();
    const url = new URL(request.url);
    const secure = url.protocol === "https:";
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = { method: request.method, headers: { ...request.headers } };
    const sent = secure
      ? secureRequest(url, { ...options, agent: this.#secure }, resolve)
      : plainRequest(url, { ...options, agent: this.#plain }, resolve);
    const onAbort = () => {
      reject(signal.reason);
      sent.destroy();
    };
    // An error after the answer has begun is the body's, which is told of it as well.
    sent.on("error", reject);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      sent.end(request.body);
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    for (const control of [...this.#lasting]) {
      control.abort(new KubeletError("Network", "the connection was given up for a new one"));
    }
    this.#secure.destroy();
    this.#plain.destroy();
  }
}

async function* bodyOf(message: IncomingMessage, signal: AbortSignal, done: () => void): AsyncGenerator<Uint8Array> {
  const onAbort = () => void message.destroy(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    for await (const chunk of message) yield chunk;
    signal.throwIfAborted();
    if (!message.complete) throw new KubeletError("Network", "the connection broke within an answer");
  } finally {
    signal.removeEventListener("abort", onAbort);
    if (!message.complete) message.destroy();
    done();
  }
}
