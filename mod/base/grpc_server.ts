import { Buffer } from "node:buffer";
import {
  create,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall } from "@grpc/grpc-js";
import { isAborted, messageOf } from "./errors.ts";
import { GrpcError, statusNumber } from "./grpc_error.ts";
import type { Logger } from "./log.ts";
import { duplexOf } from "./unix_duplex.ts";

/** One method that is served. */
export interface ServedMethod {
  readonly method: DescMethodUnary;
  readonly answer: (bytes: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>;
}

/** Serves a method by a function; a GrpcError is told as such, anything else as status Unknown, as Go's servers do. */
export function served<M extends DescMethodUnary>(
  method: M,
  answer: (
    request: MessageShape<M["input"]>,
    signal: AbortSignal,
  ) => MessageInitShape<M["output"]> | Promise<MessageInitShape<M["output"]>>,
): ServedMethod {
  return {
    method,
    answer: async (bytes, signal) => {
      const request = fromBinary(method.input, bytes) as MessageShape<M["input"]>;
      return toBinary(method.output, create(method.output, await answer(request, signal)));
    },
  };
}

export interface ServeGrpcOptions {
  readonly path: string;
  readonly methods: readonly ServedMethod[];
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told when clients can connect. */
  readonly onListen?: () => void;
}

/**
 * Serves gRPC on a unix socket until the signal aborts; the socket is removed then. A socket that is there already must
 * have been removed. Rejects when it cannot be made.
 */
export async function serveGrpc({ path, methods, log, signal, onListen }: ServeGrpcOptions): Promise<void> {
  if (signal.aborted) return;
  const listener = Deno.listen({ transport: "unix", path });
  const server = new Server({ "grpc.enable_channelz": 0 });
  for (const { parent, own } of byService(methods)) {
    const implementations = own.map(({ method, answer }) => [method.name, handlerOf(answer, signal)]);
    server.addService(
      Object.fromEntries(own.map(({ method }) => [method.name, definitionOf(method, parent)])),
      Object.fromEntries(implementations),
    );
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const stop = () => {
    try {
      listener.close();
    } catch (thrown) {
      // Closed by its own fault already.
      log.detail(4, "the socket was closed before", { path, error: messageOf(thrown) });
    }
  };
  signal.addEventListener("abort", stop, { once: true });
  onListen?.();
  try {
    for await (const conn of listener) {
      const socket = duplexOf(conn);
      // A client that is gone is not noticed by the session: its descriptor would stay.
      socket.once("end", () => socket.destroy());
      injector.injectConnection(socket);
    }
    if (!signal.aborted) throw new GrpcError("Internal", `the socket ${path} takes no connections any more`);
  } finally {
    signal.removeEventListener("abort", stop);
    injector.destroy();
    server.forceShutdown();
    await Deno.remove(path).catch((thrown) =>
      log.detail(4, "the socket could not be removed", { path, error: messageOf(thrown) })
    );
  }
}

function byService(methods: readonly ServedMethod[]): { parent: string; own: ServedMethod[] }[] {
  const services = Map.groupBy(methods, ({ method }) => method.parent.typeName);
  return [...services].map(([parent, own]) => ({ parent, own }));
}

function definitionOf(method: DescMethodUnary, service: string) {
  const same = (bytes: Buffer) => bytes;
  return {
    path: `/${service}/${method.name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  } as const;
}

function handlerOf(answer: ServedMethod["answer"], ended: AbortSignal) {
  return (call: ServerUnaryCall<Buffer, Buffer>, told: sendUnaryData<Buffer>): void => {
    const cancelled = new AbortController();
    call.on("cancelled", () => cancelled.abort());
    answer(call.request, AbortSignal.any([ended, cancelled.signal])).then(
      (bytes) => told(null, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
      (thrown) => told({ ...statusOf(thrown), name: "GrpcError" }),
    );
  };
}

function statusOf(thrown: unknown): { code: number; details: string; message: string } {
  const details = thrown instanceof GrpcError ? thrown.details : messageOf(thrown);
  const status = thrown instanceof GrpcError ? thrown.status : isAborted(thrown) ? "Canceled" : "Unknown";
  return { code: statusNumber(status), details, message: details };
}
