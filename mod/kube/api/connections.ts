import { asError, KubeletError } from "../../base/errors.ts";
import type { Credentials } from "./credentials.ts";
import type { HttpRequest, HttpResponse, TlsMaterial, Transport } from "./transport.ts";

export interface ConnectionsOptions {
  readonly credentials: Credentials;
  /** Opens connections with an identity. */
  readonly open: (tls: TlsMaterial) => Transport;
}

/** One client's connections: made anew when the identity changes, or when they are thought to be dead. */
export class Connections implements Disposable {
  readonly #o: ConnectionsOptions;
  readonly #changes: Disposable;
  #transport: { readonly transport: Transport; readonly version: number } | undefined;
  /** Grows with each renewal. */
  #generation = 0;

  constructor(options: ConnectionsOptions) {
    this.#o = options;
    this.#changes = options.credentials.onChange(() => this.renew());
  }

  get generation(): number {
    return this.#generation;
  }

  /** Whether there is a transport, to which requests go. */
  get open(): boolean {
    return this.#transport !== undefined;
  }

  /** Calls `listener` whenever the identity has changed, after these connections were given up for it. */
  onIdentity(listener: () => void): Disposable {
    return this.#o.credentials.onChange(listener);
  }

  /** Sends a request with the identity of now. Rejects with a Network error that tells the innermost cause. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const { credentials, open } = this.#o;
    try {
      const { tls, version, authorization } = await credentials.current(request.signal);
      if (this.#transport?.version !== version) {
        const transport = open(tls);
        this.#transport?.transport.retire();
        this.#transport = { transport, version };
      }
      const headers = authorization === undefined ? request.headers : { ...request.headers, authorization };
      const response = await this.#transport.transport.send({ ...request, headers });
      if (response.status === 401) credentials.refused();
      else if (response.status < 500) credentials.accepted();
      return response;
    } catch (thrown) {
      throw brokenBy(thrown, request.signal);
    }
  }

  /**
   * Gives all connections up; the next request makes new ones.
   * @param unless does nothing when the connections are not those of that generation any more
   */
  renew(unless?: number): void {
    if (unless !== undefined && unless !== this.#generation) return;
    this.#generation++;
    this.#transport?.transport.retire();
    this.#transport = undefined;
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
    this.#transport?.transport.retire();
    this.#transport = undefined;
  }
}

/** What went wrong on the wire as an error of ours; what aborted the request goes before what came of that. */
export function brokenBy(thrown: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return asError(signal.reason);
  if (thrown instanceof KubeletError) return thrown;
  let inner = asError(thrown);
  while (inner.cause instanceof Error) inner = inner.cause;
  // The run-time's words begin with the whole URL, which says nothing new.
  const message = inner.message.replace(/^error sending request for url \([^)]*\): /, "");
  return new KubeletError("Network", `the API server cannot be reached: ${message}`, { cause: thrown });
}
