import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { KubeletError, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { authenticate, type AuthenticationOptions, type PeerCertificate } from "./authentication.ts";
import { authorize, type Authorizer } from "./authorization.ts";
import { bucketOf, isLongRunning, methodBucket } from "./request_metrics.ts";
import { httpError, send, writeError } from "./respond.ts";
import type { Router } from "./router.ts";
import { cleanPath, parseTarget, type Target } from "./target.ts";
import type { RequestContext, RequestMetrics, Route, User } from "./types.ts";

/** What a dispatcher needs. */
export interface DispatchOptions {
  readonly router: Router;
  /** Buckets of the request metrics that the server's routes have. */
  readonly buckets: ReadonlySet<string>;
  /** Absent on the read-only port. */
  readonly auth?: {
    readonly authentication: AuthenticationOptions;
    readonly authorizer: Authorizer;
    readonly nodeName: string;
    readonly peer: (request: IncomingMessage) => PeerCertificate | undefined;
  };
  readonly metrics?: RequestMetrics | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Longest that answering one request may take, milliseconds; connections that were upgraded are exempt. */
const answerLimitMs = 4 * 3_600_000;
/** A body that nobody read may be as long as this for its connection to be kept, bytes. */
const discardLimit = 256 << 10;

const streams = new Set(["exec", "attach", "portforward"]);

/** Takes requests through target, route, authentication, authorisation and handler. */
export class Dispatcher {
  readonly #o: DispatchOptions;
  readonly #running = new Set<Promise<void>>();

  constructor(options: DispatchOptions) {
    this.#o = options;
  }

  /** Resolves when no request runs any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running]);
  }

  /** Takes one request; resolves when it is answered, or its client is gone. Never rejects. */
  dispatch(exchange: Exchange): Promise<void> {
    const task = this.#run(exchange).catch((thrown) => {
      this.#o.log.error("a request failed", { error: messageOf(thrown) });
      exchange.cut();
    });
    this.#running.add(task);
    void task.then(() => this.#running.delete(task));
    return task;
  }

  async #run(exchange: Exchange): Promise<void> {
    const { clock, metrics, buckets, auth, log } = this.#o;
    const { request } = exchange;
    const method = request.method ?? "GET";
    const target = parseTarget(request.url ?? "");
    const path = bucketOf(target?.path ?? "", buckets);
    const began = clock.now();
    const ended = metrics?.began({
      method: methodBucket(method),
      path,
      serverType: auth ? "readwrite" : "readonly",
      longRunning: isLongRunning(path),
    });
    const streamed = path.toLowerCase();
    if (/^websocket$/i.test(request.headers.upgrade ?? "") && streams.has(streamed)) metrics?.webSocket?.(streamed);
    const limit = clock.after(answerLimitMs, () => exchange.taken || exchange.cut());
    try {
      const context = new Context(exchange, method, target, log, auth === undefined);
      try {
        if (!target) send(context, 400, "400 Bad Request", { ...plain, connection: "close" });
        else await this.#answer(context, target);
      } catch (thrown) {
        this.#failed(exchange, context, thrown);
      }
      await exchange.done();
    } finally {
      limit[Symbol.dispose]();
      const status = exchange.taken ? 101 : exchange.response.statusCode;
      ended?.({ status, seconds: (clock.now() - began) / 1000 });
      log.detail(5, "request", { method, path: target?.path, status });
    }
  }

  #failed(exchange: Exchange, context: Context, thrown: unknown): void {
    if (context.signal.aborted) return exchange.cut();
    this.#o.log.error("a request failed", { method: context.method, path: context.path, error: messageOf(thrown) });
    if (exchange.taken || exchange.response.headersSent) exchange.cut();
    else httpError(context, 500, messageOf(thrown));
  }

  async #answer(context: Context, target: Target): Promise<void> {
    const clean = cleanPath(target.raw);
    if (clean !== target.raw) return redirect(context, clean, target.query);
    const routed = this.#o.router.find(context.method, target);
    if (routed.kind === "unknown") return httpError(context, 404, "404 page not found");
    if (routed.kind === "redirect") return redirect(context, `${target.raw}/`, target.query);
    if (!await this.#admit(context)) return;
    if (routed.kind === "refused") {
      if (routed.allow !== undefined) context.response.setHeader("allow", routed.allow);
      return writeError(context, routed.status, routed.text);
    }
    context.route(routed.route, routed.params);
    await routed.route.handler(context);
  }

  /** Authenticates and authorises; false when the answer has been given. */
  async #admit(context: Context): Promise<boolean> {
    const { auth, log, clock, metrics } = this.#o;
    if (!auth) return true;
    const { request, signal } = context;
    const peer = auth.peer(request);
    const began = clock.now();
    const user = await authenticate(auth.authentication, { headers: request.headers, peer, signal });
    const known = clock.now();
    metrics?.authenticated?.({
      user: user?.name,
      seconds: (known - began) / 1000,
      ...(user && peer?.verified ? { certificateEnds: (peer.notAfter - known) / 1000 } : {}),
    });
    if (!user) {
      writeError(context, 401, "Unauthorized");
      return false;
    }
    const { authorizer, nodeName } = auth;
    const { method, path } = context;
    const refused = await authorize({ authorizer, user, method, path, nodeName, signal, log });
    const result = refused ? refused.status === 403 ? "denied" : "error" : "allowed";
    metrics?.authorized?.(result, (clock.now() - known) / 1000);
    if (refused) writeError(context, refused.status, refused.text);
    context.user = user;
    return refused === undefined;
  }
}

const plain = { "content-type": "text/plain; charset=utf-8" };

function redirect(context: Context, path: string, query: string): void {
  const location = query === "" ? path : `${path}?${query}`;
  const { method } = context;
  if (method !== "GET" && method !== "HEAD") return send(context, 307, "", { location });
  const href = location.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  send(context, 307, `<a href="${href}">Temporary Redirect</a>.\n\n`, {
    location,
    "content-type": "text/html; charset=utf-8",
  });
}

/** A request, its answer, and the connection below them. */
export class Exchange {
  readonly #abort = new AbortController();
  readonly #closed = Promise.withResolvers<void>();
  taken = false;

  /** @param upgrade the connection that the client wants upgraded, and what it sent behind the request */
  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly upgrade: { readonly socket: Duplex; readonly head: Uint8Array } | undefined,
  ) {
    response.on("close", () => this.#close());
    upgrade?.socket.on("close", () => this.#close());
    request.on("error", () => {}); // told by close
    response.on("error", () => {});
    response.on("finish", () => this.#finish());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Resolves when the answer is out or the client is gone. */
  done(): Promise<void> {
    // A handler that took the connection returns when it is through with it.
    if (this.taken) return Promise.resolve();
    if (!this.response.writableEnded) this.response.end();
    return this.#closed.promise;
  }

  /** Hands the connection over. */
  take(): { socket: Duplex; head: Uint8Array } {
    if (!this.upgrade || this.taken) throw new KubeletError("Internal", "there is no connection to take over");
    this.taken = true;
    const { socket } = this.upgrade;
    this.response.detachSocket(socket as Parameters<ServerResponse["detachSocket"]>[0]);
    return this.upgrade;
  }

  /** Cuts the connection. */
  cut(): void {
    (this.upgrade?.socket ?? this.request.socket).destroy();
    this.#close();
  }

  #close(): void {
    this.#abort.abort();
    this.#closed.resolve();
  }

  #finish(): void {
    // An upgrade that was not taken, or a long body that nobody wants, ends the connection; the answer is out already.
    if (this.upgrade) this.upgrade.socket.end();
    else if (!this.request.complete && bodyMayExceed(this.request, discardLimit)) this.request.socket.destroySoon?.();
    this.#close();
  }
}

function bodyMayExceed({ headers }: IncomingMessage, limit: number): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > limit;
}

class Context implements RequestContext {
  user: User | undefined = undefined;
  params: Readonly<Record<string, string>> = {};
  #upgradable = false;
  #url: URL | undefined;
  #query: URLSearchParams | undefined;

  constructor(
    readonly exchange: Exchange,
    readonly method: string,
    readonly target: Target | undefined,
    readonly log: Logger,
    readonly readOnly: boolean,
  ) {}

  route(route: Route, params: Record<string, string>): void {
    this.params = params;
    this.#upgradable = route.upgrade === true;
  }

  get path(): string {
    return this.target?.path ?? "";
  }
  // Parsed when first asked for: a query may be a megabyte, and most handlers want none.
  get url(): URL {
    const { raw, query } = this.target ?? { raw: "/", query: "" };
    return this.#url ??= new URL(`https://kubelet${raw}${query === "" ? "" : `?${query}`}`);
  }
  get query(): URLSearchParams {
    return this.#query ??= new URLSearchParams(this.target?.query ?? "");
  }
  get request(): IncomingMessage {
    return this.exchange.request;
  }
  get response(): ServerResponse {
    return this.exchange.response;
  }
  get signal(): AbortSignal {
    return this.exchange.signal;
  }
  get wantsUpgrade(): boolean {
    return this.#upgradable && this.exchange.upgrade !== undefined;
  }
  takeSocket(): { socket: Duplex; head: Uint8Array } {
    if (!this.wantsUpgrade) throw new KubeletError("Internal", "there is no connection to take over");
    return this.exchange.take();
  }
}
