import { Buffer } from "node:buffer";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import type { Duplex } from "node:stream";
import {
  create,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Channel } from "./channel.ts";
import type { Clock } from "./clock.ts";
import { abortedBy, isAborted, messageOf } from "./errors.ts";
import { GrpcError, statusOfNumber } from "./grpc_error.ts";
import { frameOf, FrameReader } from "./grpc_frames.ts";
import { duplexOf } from "./unix_duplex.ts";

/** Fields of a newer contract are of no use here, and keeping them costs memory. */
const reading = { readUnknownFields: false };

export interface GrpcCall {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the call is given up; none when not given. */
  readonly timeoutMs?: number | undefined;
}

/** Calls of one gRPC service, over a connection that is there once or not at all: an end of it ends each call. */
export interface GrpcClient extends Disposable {
  /** Rejects with GrpcError, or Aborted when the caller's signal aborts. */
  unary<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M["input"]>,
    call?: GrpcCall,
  ): Promise<MessageShape<M["output"]>>;
  /** Leaving the iteration cancels the call. Iterating rejects as `unary` does. */
  stream<M extends DescMethodServerStreaming>(
    method: M,
    request: MessageInitShape<M["input"]>,
    call?: GrpcCall,
  ): AsyncIterable<MessageShape<M["output"]>>;
}

export interface ConnectOptions {
  readonly clock: Clock;
  /** Milliseconds in which the connection has to come about. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Makes a connection; handed in where tests have plugins in memory. */
export type GrpcConnect = (path: string, options: ConnectOptions) => Promise<GrpcClient>;

/**
 * Connects to the gRPC server on a unix socket. Rejects with GrpcError: DeadlineExceeded when that takes too long,
 * else Unavailable; or with Aborted.
 */
export async function connectGrpc(path: string, options: ConnectOptions): Promise<GrpcClient> {
  const { clock, timeoutMs } = options;
  const limit = limitOf(clock, { signal: options.signal, timeoutMs });
  let conn: Deno.UnixConn | undefined;
  try {
    conn = await within(Deno.connect({ transport: "unix", path }), limit, (late) => late.close());
    const socket = duplexOf(conn);
    const client = new SocketClient(connect("http://localhost", { createConnection: () => socket }), socket, clock);
    await within(client.ready, limit, () => {}).catch((thrown) => {
      client[Symbol.dispose]();
      throw thrown;
    });
    return client;
  } catch (thrown) {
    if (thrown instanceof GrpcError || isAborted(thrown)) throw thrown;
    throw new GrpcError("Unavailable", `connection error: dial unix ${path}: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    limit[Symbol.dispose]();
  }
}

class SocketClient implements GrpcClient {
  readonly #gone = new AbortController();
  readonly #ready = Promise.withResolvers<void>();

  constructor(private readonly session: ClientHttp2Session, socket: Duplex, private readonly clock: Clock) {
    // The session does not tell its streams that the peer has closed the connection.
    const gone = (why: unknown) => {
      const error = new GrpcError("Unavailable", `error reading from server: ${why ? messageOf(why) : "EOF"}`);
      this.#ready.reject(error);
      if (this.#gone.signal.aborted) return;
      this.#gone.abort(error);
      session.destroy();
    };
    socket.once("end", () => gone(undefined));
    socket.once("close", () => gone(undefined));
    socket.once("error", gone);
    session.once("remoteSettings", () => this.#ready.resolve());
    // Stays: an error that nobody listens for would end the process.
    session.on("error", gone);
    session.once("close", () => gone(undefined));
    // Whoever does not wait for it learns by its calls.
    this.#ready.promise.catch(() => {});
  }

  /** Resolves once the peer has shown that it speaks HTTP/2. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  async unary<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M["input"]>,
    call: GrpcCall = {},
  ): Promise<MessageShape<M["output"]>> {
    let answer: MessageShape<M["output"]> | undefined;
    for await (const message of this.#call(method, request, call)) answer = message as MessageShape<M["output"]>;
    if (answer === undefined) throw new GrpcError("Internal", `${method.name} was answered without a message`);
    return answer;
  }

  stream<M extends DescMethodServerStreaming>(
    method: M,
    request: MessageInitShape<M["input"]>,
    call: GrpcCall = {},
  ): AsyncIterable<MessageShape<M["output"]>> {
    return this.#call(method, request, call) as AsyncIterable<MessageShape<M["output"]>>;
  }

  async *#call<M extends DescMethodUnary | DescMethodServerStreaming>(
    method: M,
    request: MessageInitShape<M["input"]>,
    { signal, timeoutMs }: GrpcCall,
  ): AsyncGenerator<unknown> {
    const body = frameOf(toBinary(method.input, create(method.input, request)));
    if (signal?.aborted) throw abortedBy(signal);
    const gone = this.#gone.signal;
    if (gone.aborted || this.session.closed) throw new GrpcError("Unavailable", "the connection is closed");
    using limit = limitOf(this.clock, { signal, timeoutMs });
    const stream = this.session.request({
      ":method": "POST",
      ":path": `/${method.parent.typeName}/${method.name}`,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const answer = new Answer(stream);
    const stop = () => answer.fail(limit.reason);
    limit.signal.addEventListener("abort", stop, { once: true });
    if (limit.signal.aborted) stop();
    const cut = () => answer.fail(gone.reason);
    gone.addEventListener("abort", cut, { once: true });
    stream.end(Buffer.from(body.buffer));
    try {
      for await (const bytes of answer.messages()) yield fromBinary(method.output, bytes, reading);
    } finally {
      limit.signal.removeEventListener("abort", stop);
      gone.removeEventListener("abort", cut);
      stream.close();
    }
  }

  [Symbol.dispose](): void {
    this.session.destroy();
  }
}

/** What comes back on one stream. */
class Answer {
  readonly #arrived = new Channel<Uint8Array>();
  #end: unknown;
  #status: { code: number; message: string } | undefined;
  #http: number | undefined;

  constructor(stream: ClientHttp2Stream) {
    const frames = new FrameReader();
    stream.on("response", (headers: IncomingHttpHeaders & { ":status"?: number }) => {
      this.#http = headers[":status"];
      this.#note(headers);
    });
    stream.on("trailers", (headers: IncomingHttpHeaders) => this.#note(headers));
    stream.on("data", (bytes: Uint8Array) => {
      try {
        for (const message of frames.feed(bytes)) this.#arrived.push(message);
      } catch (thrown) {
        this.fail(thrown);
        stream.close();
      }
    });
    stream.on("error", (thrown: Error) => this.fail(new GrpcError("Unavailable", thrown.message, { cause: thrown })));
    stream.on("close", () => this.#arrived.close());
  }

  #note(headers: IncomingHttpHeaders): void {
    const code = headers["grpc-status"];
    if (code === undefined) return;
    this.#status = { code: Number(code), message: decoded(String(headers["grpc-message"] ?? "")) };
  }

  /** Ends the answer early; the first reason counts. */
  fail(reason: unknown): void {
    this.#end ??= reason;
    this.#arrived.close();
  }

  async *messages(): AsyncGenerator<Uint8Array> {
    for (let bytes = await this.#arrived.take(); bytes; bytes = await this.#arrived.take()) yield bytes;
    if (this.#status && this.#status.code !== 0) {
      throw new GrpcError(statusOfNumber(this.#status.code), this.#status.message);
    }
    if (this.#status) return;
    if (this.#end !== undefined) throw this.#end;
    const http = this.#http !== undefined && this.#http !== 200 ? `: HTTP status ${this.#http}` : "";
    throw new GrpcError("Unavailable", `error reading from server: EOF${http}`);
  }
}

/** grpc-message is percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // An encoder that is not right still says something.
    return text;
  }
}

/** A signal that aborts when the caller's does or the time is over, and why. */
function limitOf(clock: Clock, { signal, timeoutMs }: GrpcCall) {
  const controller = new AbortController();
  let reason: unknown;
  const end = (why: unknown) => {
    reason ??= why;
    controller.abort();
  };
  const onAbort = () => signal && end(abortedBy(signal));
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = timeoutMs === undefined
    ? undefined
    : clock.after(timeoutMs, () => end(new GrpcError("DeadlineExceeded", "context deadline exceeded")));
  return {
    signal: controller.signal,
    get reason(): unknown {
      return reason;
    },
    [Symbol.dispose](): void {
      timer?.[Symbol.dispose]();
      signal?.removeEventListener("abort", onAbort);
    },
  };
}

/** The promise's value, or the limit's reason; what comes too late is given to `drop`. */
async function within<T>(
  promise: Promise<T>,
  limit: { readonly signal: AbortSignal; readonly reason: unknown },
  drop: (late: T) => void,
): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const stop = () => {
    promise.then(drop, () => {});
    reject(limit.reason);
  };
  if (limit.signal.aborted) stop();
  limit.signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([promise, over]);
  } finally {
    limit.signal.removeEventListener("abort", stop);
  }
}
