import {
  create,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, connectivityState, credentials, type ServiceError } from "@grpc/grpc-js";
import { systemClock } from "../mod/base/clock.ts";
import { abortedBy, messageOf } from "../mod/base/errors.ts";
import { type Logger, silent } from "../mod/base/log.ts";
import { type CallOptions, grpcCode, RuntimeError } from "./api.ts";
import { socketPath } from "./endpoint.ts";
import { RuntimeService } from "./gen/runtime_pb.ts";
import { explain, statusOf } from "./remedy.ts";
import { readTextFast } from "./text.ts";

/** Largest message in either direction, as the kubelet has it. */
const maxMessage = 16 << 20;
/** Fields of a newer CRI are of no use here, and keeping them costs memory. */
const reading = { readUnknownFields: false };

export interface ConnectionOptions {
  /** `unix:///…`, or a bare path. */
  endpoint: string;
  /** Deadline of a call, milliseconds (runtimeRequestTimeout); 0 means none. */
  timeoutMs: number;
  log?: Logger;
  /** The configuration field that the endpoint comes from, for messages. Default `containerRuntimeEndpoint`. */
  field?: string;
  /** How long a call waits for the socket to be there, milliseconds. Default 2 s. */
  connectMs?: number;
}

/** What a call needs beside its request. */
export interface Calling {
  options: CallOptions | undefined;
  /** What the call acts on, for messages. */
  target?: string | undefined;
  /** Milliseconds by which the default deadline grows. */
  extraMs?: number;
}

/**
 * One gRPC connection to a runtime's unix socket, with typed calls. It connects at the first call and again by itself
 * when the socket is re-created; a call made meanwhile waits for that a bounded time. No call is ever sent twice.
 */
export class Connection implements Disposable {
  readonly path: string;
  readonly #client: Client;
  /** The default deadline, milliseconds; 0 means none. */
  readonly timeoutMs: number;
  readonly #connectMs: number;
  readonly #log: Logger;
  #connecting: Promise<string | undefined> | undefined;
  #reached = true;
  #closed = false;

  constructor(options: ConnectionOptions) {
    readTextFast();
    this.path = socketPath(options.endpoint, options.field);
    this.timeoutMs = options.timeoutMs;
    this.#connectMs = options.connectMs ?? 2_000;
    this.#log = options.log ?? silent;
    this.#client = new Client(`unix:${this.path}`, credentials.createInsecure(), {
      // Without it the authority is the path, and servers refuse one that begins with a slash.
      "grpc.default_authority": "localhost",
      "grpc.max_receive_message_length": maxMessage,
      "grpc.max_send_message_length": maxMessage,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.enable_channelz": 0,
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  /** Makes one call. Rejects with RuntimeError, or Aborted when the caller's signal aborts. */
  async unary<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M["input"]>,
    calling: Calling,
  ): Promise<MessageShape<M["output"]>> {
    const deadline = this.#deadline(calling);
    const argument = encode(method, request, calling.target);
    await this.#connected(method.name, calling, deadline);
    const { signal } = calling.options ?? {};
    const { promise, resolve, reject } = Promise.withResolvers<MessageShape<M["output"]>>();
    const call = this.#client.makeUnaryRequest(
      pathOf(method),
      (bytes: Buffer) => bytes,
      (data: Buffer) => fromBinary(method.output, data, reading) as MessageShape<M["output"]>,
      argument,
      deadline === undefined ? {} : { deadline },
      (error, response) => {
        if (error) reject(this.#failure(method.name, error, calling));
        else if (response === undefined) reject(failure(method.name, grpcCode.Internal, "empty answer", calling));
        else resolve(response);
      },
    );
    const onAbort = () => call.cancel();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /**
   * Makes a call that is answered by a stream. What the consumer does not take stays in the server, by gRPC's flow
   * control; leaving the iteration cancels the call.
   */
  async *stream<M extends DescMethodServerStreaming>(
    method: M,
    request: MessageInitShape<M["input"]>,
    calling: Calling,
  ): AsyncGenerator<MessageShape<M["output"]>> {
    const argument = encode(method, request, calling.target);
    const { signal, timeoutMs = 0 } = calling.options ?? {};
    const deadline = timeoutMs > 0 ? Date.now() + timeoutMs : undefined;
    await this.#connected(method.name, calling, deadline);
    const call = this.#client.makeServerStreamRequest(
      pathOf(method),
      (bytes: Buffer) => bytes,
      (data: Buffer) => fromBinary(method.output, data, reading) as MessageShape<M["output"]>,
      argument,
      deadline === undefined ? {} : { deadline },
    );
    const onAbort = () => call.cancel();
    signal?.addEventListener("abort", onAbort, { once: true });
    // The iterator stops listening when it ends, and the cancellation below is told as one more error.
    call.on("error", () => {});
    try {
      for await (const message of call) {
        if (signal?.aborted) throw abortedBy(signal);
        yield message as MessageShape<M["output"]>;
      }
    } catch (thrown) {
      throw isServiceError(thrown) ? this.#failure(method.name, thrown, calling) : thrown;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      call.cancel();
    }
    if (signal?.aborted) throw abortedBy(signal);
  }

  /** The moment at which a call has to be answered, milliseconds since the epoch. */
  #deadline(calling: Calling): number | undefined {
    const own = calling.options?.timeoutMs;
    const ms = own ?? (this.timeoutMs > 0 ? this.timeoutMs + (calling.extraMs ?? 0) : 0);
    return ms > 0 ? Date.now() + ms : undefined;
  }

  /** Waits for the connection, `connectMs` and the deadline at most; rejects with what keeps it from coming about. */
  async #connected(name: string, calling: Calling, deadline: number | undefined): Promise<void> {
    const { signal } = calling.options ?? {};
    if (signal?.aborted) throw abortedBy(signal);
    if (this.#closed) throw failure(name, grpcCode.Cancelled, "the client has been closed", calling);
    if (this.#client.getChannel().getConnectivityState(true) === connectivityState.READY) return;
    // One wait for all calls, so that calls to a runtime that is away do not pile up watchers.
    this.#connecting ??= this.#connect().finally(() => this.#connecting = undefined);
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(signal ? abortedBy(signal) : undefined);
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = deadline === undefined ? undefined : systemClock.after(
      deadline - Date.now(),
      () => reject(failure(name, grpcCode.DeadlineExceeded, `no connection to ${this.path} in time`, calling)),
    );
    let problem: string | undefined;
    try {
      problem = await Promise.race([this.#connecting, aborted]);
    } finally {
      timer?.[Symbol.dispose]();
      signal?.removeEventListener("abort", onAbort);
    }
    if (signal?.aborted) throw abortedBy(signal);
    if (problem !== undefined) throw failure(name, grpcCode.Unavailable, problem, calling);
  }

  /** Resolves when connected, or with what is wrong. */
  async #connect(): Promise<string | undefined> {
    const failed = await new Promise<Error | undefined>((resolve) =>
      this.#client.waitForReady(Date.now() + this.#connectMs, resolve)
    );
    if (!failed) {
      if (!this.#reached) this.#log.info("connected to the container runtime again", { socket: this.path });
      this.#reached = true;
      return undefined;
    }
    const problem = this.#closed ? "the client has been closed" : await this.#whyNot();
    if (this.#reached) this.#log.warn("cannot connect to the container runtime", { socket: this.path, error: problem });
    this.#reached = false;
    return problem;
  }

  /** Asks grpc-js why there is no connection: it tells only a call, so a harmless one is made. */
  #whyNot(): Promise<string> {
    const method = RuntimeService.method.version;
    return new Promise((resolve) =>
      this.#client.makeUnaryRequest(
        pathOf(method),
        (bytes: Buffer) => bytes,
        (data: Buffer) => data,
        encode(method, {}, undefined),
        { deadline: Date.now() + 200 },
        (error) =>
          resolve(
            error?.code === grpcCode.Unavailable
              ? explain(error.code, error.details, this.path)
              : `${this.path} takes connections but does not speak gRPC, or the runtime hangs: ` +
                `check the endpoint, or restart the runtime`,
          ),
      )
    );
  }

  #failure(name: string, error: ServiceError, calling: Calling): Error {
    const { signal } = calling.options ?? {};
    if (signal?.aborted && error.code === grpcCode.Cancelled) return abortedBy(signal);
    const status = statusOf(error.code, error.details);
    return failure(name, status, explain(status, error.details, this.path), calling, error);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#client.close();
  }
}

function pathOf(method: DescMethodUnary | DescMethodServerStreaming): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Encodes a request; one that cannot be is the caller's fault and says which field. */
function encode<M extends DescMethodUnary | DescMethodServerStreaming>(
  method: M,
  request: MessageInitShape<M["input"]>,
  target: string | undefined,
): Buffer {
  try {
    const bytes = toBinary(method.input, create(method.input, request));
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } catch (thrown) {
    throw failure(method.name, grpcCode.InvalidArgument, messageOf(thrown), { options: undefined, target }, thrown);
  }
}

function failure(name: string, status: number, details: string, calling: Calling, cause?: unknown): RuntimeError {
  const { target } = calling;
  return new RuntimeError(name, status, details, { ...(target === undefined ? {} : { target }), cause });
}

function isServiceError(thrown: unknown): thrown is ServiceError {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "number" && "details" in thrown;
}
