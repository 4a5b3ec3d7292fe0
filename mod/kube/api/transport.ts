/** One HTTP request. */
export interface HttpRequest {
  readonly method: string;
  /** Whole, with scheme and host. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether the answer goes on for minutes: it then gets a connection that other calls do not wait for. */
  readonly lasting: boolean;
  readonly signal: AbortSignal;
}

/** An answer, its body not yet read. The body must be read to its end, or the iteration left. */
export interface HttpResponse {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Connections to one server with one identity. */
export interface Transport {
  /** Rejects with whatever went wrong on the wire, or with the signal's reason. */
  send(request: HttpRequest): Promise<HttpResponse>;
  /**
   * Gives the connections up: lasting answers break off with an error, others may still end, and nothing more may be
   * sent. Safe to call twice.
   */
  retire(): void;
}

/** What a connection is secured with; PEM. */
export interface TlsMaterial {
  /** Whom to trust; the machine's own authorities when not given. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** How the server is to be reached and checked. */
export interface TransportOptions {
  readonly tls: TlsMaterial;
  readonly proxyUrl?: string;
  /** The name that the server's certificate is for, when it is not the URL's. */
  readonly serverName?: string;
  /** The server's certificate is not checked at all. */
  readonly insecure: boolean;
}
