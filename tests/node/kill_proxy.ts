import type { DescMethod, DescService } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { ImageService, RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { signal } from "../../scripts/node/processes.ts";

/**
 * Where the agent is killed: at the n-th call from now on, counted from 1. `before`: the runtime never sees the call.
 * `after`: it has been carried out, and the agent never hears of it. `under`: it is under way, and goes on.
 */
export interface KillPoint {
  readonly n: number;
  /** Counts only calls that change something. */
  readonly mutating: boolean;
  readonly when: "before" | "after" | "under";
}

/** What the proxy is told, a line of JSON each. */
export interface Order {
  readonly pid: number;
  readonly point: KillPoint;
}

/** What the proxy tells, a line of JSON each; first of all that it listens. */
export type Report = { readonly listens: string } | { readonly killed: string; readonly when: KillPoint["when"] };

const mutating = new Set([
  "RunPodSandbox",
  "StopPodSandbox",
  "RemovePodSandbox",
  "CreateContainer",
  "StartContainer",
  "StopContainer",
  "RemoveContainer",
  "PullImage",
  "RemoveImage",
]);
/** Kills at one kind of change in one way; so that those which come first do not get all of them. */
const most = 3;
const limits = { "grpc.max_send_message_length": -1, "grpc.max_receive_message_length": -1 };
const raw = (bytes: Buffer) => bytes;

/** Hands every call to the runtime and its answer back, and kills the agent at the point that it was given. */
class KillProxy {
  readonly #client: grpc.Client;
  readonly #tell: (report: Report) => void;
  #order: Order | undefined;
  #seen = 0;
  /** How often an agent was killed at a change of this kind in this way. */
  readonly #done = new Map<string, number>();

  constructor(options: { upstream: string; tell: (report: Report) => void }) {
    this.#client = new grpc.Client(`unix:${options.upstream}`, grpc.credentials.createInsecure(), {
      ...limits,
      "grpc.default_authority": "localhost",
    });
    this.#tell = options.tell;
  }

  arm(order: Order): void {
    this.#order = order;
    this.#seen = 0;
  }

  /** Tells how this call is to end when it is the one. */
  #here(method: string): KillPoint["when"] | undefined {
    const { point } = this.#order ?? {};
    if (!point || (point.mutating && !mutating.has(method))) return undefined;
    const kind = `${method} ${point.when}`;
    const done = this.#done.get(kind) ?? 0;
    if ((mutating.has(method) && done >= most) || ++this.#seen < point.n) return undefined;
    this.#done.set(kind, done + 1);
    return point.when;
  }

  #kill(method: string): void {
    const order = this.#order;
    if (!order) return;
    this.#order = undefined;
    signal(order.pid, "SIGKILL");
    this.#tell({ killed: method, when: order.point.when });
  }

  unary(path: string, method: string): grpc.handleUnaryCall<Buffer, Buffer> {
    return (call, answer) => {
      const here = this.#here(method);
      if (here === "before") return this.#kill(method);
      const forwarded = this.#client.makeUnaryRequest(
        path,
        raw,
        raw,
        call.request,
        { deadline: call.getDeadline() },
        (error, response) => {
          if (here === "after") this.#kill(method);
          else if (here === undefined) answer(error, response);
        },
      );
      if (here === "under") this.#kill(method);
      // A client that goes takes its call along; not the one with which the agent is killed, for that has effect.
      if (here === undefined) call.on("cancelled", () => forwarded.cancel());
    };
  }

  stream(path: string): grpc.handleServerStreamingCall<Buffer, Buffer> {
    return (call) => {
      const forwarded = this.#client.makeServerStreamRequest(path, raw, raw, call.request);
      forwarded.on("data", (data: Buffer) => call.write(data));
      forwarded.on("end", () => call.end());
      forwarded.on("error", (error) => call.destroy(error));
      call.on("cancelled", () => forwarded.cancel());
    };
  }

  definition(service: DescService): [grpc.ServiceDefinition, grpc.UntypedServiceImplementation] {
    const methods: Record<string, grpc.MethodDefinition<Buffer, Buffer>> = {};
    const handlers: grpc.UntypedServiceImplementation = {};
    for (const method of service.methods as readonly DescMethod[]) {
      const path = `/${service.typeName}/${method.name}`;
      const streams = method.methodKind === "server_streaming";
      methods[method.name] = {
        path,
        requestStream: false,
        responseStream: streams,
        requestSerialize: raw,
        requestDeserialize: raw,
        responseSerialize: raw,
        responseDeserialize: raw,
      };
      handlers[method.name] = streams ? this.stream(path) : this.unary(path, method.name);
    }
    return [methods, handlers];
  }
}

async function main([upstream, path]: string[]): Promise<void> {
  if (upstream === undefined || path === undefined) throw new Error("usage: kill_proxy.ts UPSTREAM SOCKET");
  const tell = (report: Report) => Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(report)}\n`));
  const proxy = new KillProxy({ upstream, tell });
  const server = new grpc.Server(limits);
  for (const service of [RuntimeService, ImageService]) server.addService(...proxy.definition(service));
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(
      `unix:${path}`,
      grpc.ServerCredentials.createInsecure(),
      (error) => error ? reject(error) : resolve(),
    )
  );
  tell({ listens: path });
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) proxy.arm(JSON.parse(line) as Order);
  }
  server.forceShutdown();
}

if (import.meta.main) {
  await main(Deno.args);
  Deno.exit(0);
}
