import assert from "@assert";
import { create, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { isAborted, type KubeletError } from "../mod/base/errors.ts";
import { RecordingLogger } from "../mod/base/log.ts";
import { grpcCode, isNotFound, isUnimplemented, RuntimeError } from "./api.ts";
import * as pb from "./gen/runtime_pb.ts";
import { createImageClient, createRuntimeClient } from "./grpc.ts";

const because = { reason: "Test", message: "a test" };

type Handlers = Record<string, grpc.UntypedHandleCall>;
type Service = typeof pb.RuntimeService | typeof pb.ImageService;

/** Serves some methods of a CRI service on a unix socket; the others answer Unimplemented. */
async function serve(path: string, handlers: Handlers, service: Service = pb.RuntimeService): Promise<AsyncDisposable> {
  const server = new grpc.Server({ "grpc.max_send_message_length": -1, "grpc.max_receive_message_length": -1 });
  const definition: Record<string, grpc.MethodDefinition<Message, Message>> = {};
  for (const method of service.methods) {
    if (!(method.localName in handlers)) continue;
    definition[method.localName] = {
      path: `/${service.typeName}/${method.name}`,
      requestStream: false,
      responseStream: method.methodKind === "server_streaming",
      requestSerialize: (m: Message) => Buffer.from(toBinary(method.input, m)),
      requestDeserialize: (b: Buffer) => fromBinary(method.input, b),
      responseSerialize: (m: Message) => Buffer.from(toBinary(method.output, create(method.output, m))),
      responseDeserialize: (b: Buffer) => fromBinary(method.output, b),
    };
  }
  server.addService(definition, handlers);
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(
      `unix:${path}`,
      grpc.ServerCredentials.createInsecure(),
      (error) => error ? reject(error) : resolve(),
    )
  );
  return { [Symbol.asyncDispose]: () => Promise.resolve(server.forceShutdown()) };
}

async function socket(): Promise<{ path: string } & AsyncDisposable> {
  const directory = await Deno.makeTempDir({ prefix: "denolet-cri-" });
  return {
    path: `${directory}/cri.sock`,
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

type Unary<I, O> = grpc.handleUnaryCall<I, O>;
const version: Unary<pb.VersionRequest, pb.VersionResponse> = (_call, answer) =>
  answer(null, create(pb.VersionResponseSchema, { runtimeName: "test" }));

/** A signal that counts its listeners. */
function countingSignal(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    count++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    count--;
    removeEventListener.apply(signal, args);
  };
  return { controller, listeners: () => count };
}

Deno.test("requests and answers arrive whole; the authority is localhost", async () => {
  await using at = await socket();
  let authority = "";
  const listContainers: Unary<pb.ListContainersRequest, pb.ListContainersResponse> = (call, answer) => {
    authority = call.getHost();
    const labels = call.request.filter?.labelSelector ?? {};
    answer(null, create(pb.ListContainersResponseSchema, { containers: [{ id: "c1", labels, createdAt: 1n << 60n }] }));
  };
  await using _server = await serve(at.path, { listContainers });
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 5_000 });
  const [container] = await client.listContainers({ labelSelector: { app: "web" } });
  assert.equal(container?.labels["app"], "web");
  assert.equal(container?.createdAt, 1n << 60n);
  assert.equal(authority, "localhost");
});

Deno.test("each call has the deadline that is its due", async () => {
  await using at = await socket();
  const seen: number[] = [];
  const take: Unary<unknown, unknown> = (call, answer) => {
    const deadline = call.getDeadline();
    seen.push(deadline === Infinity ? Infinity : Math.round((Number(deadline) - Date.now()) / 1_000));
    answer(null, {});
  };
  await using _server = await serve(at.path, {
    version: take,
    stopContainer: take,
    execSync: take,
    runPodSandbox: take,
  });
  using client = createRuntimeClient({ endpoint: `unix://${at.path}`, timeoutMs: 120_000 });
  await client.version();
  await client.version({ timeoutMs: 7_000 });
  await client.version({ timeoutMs: 0 });
  await client.stopContainer("c", 30, { because });
  await client.stopContainer("c", 30, { because, timeoutMs: 5_000 });
  await client.execSync("c", ["true"], 10);
  await client.execSync("c", ["true"], 0);
  await client.runPodSandbox({}, "", { because });
  assert.deepEqual(seen, [120, 7, Infinity, 150, 5, 130, Infinity, 240]);
});

Deno.test("a pull has no deadline", async () => {
  await using at = await socket();
  let deadline: unknown;
  const pullImage: Unary<pb.PullImageRequest, pb.PullImageResponse> = (call, answer) => {
    deadline = call.getDeadline();
    answer(null, create(pb.PullImageResponseSchema, { imageRef: call.request.auth?.username ?? "" }));
  };
  await using _server = await serve(at.path, { pullImage }, pb.ImageService);
  using client = createImageClient({ endpoint: at.path, timeoutMs: 5_000 });
  assert.equal(await client.pullImage({ image: { image: "x" }, auth: { username: "me" } }, { because }), "me");
  assert.equal(deadline, Infinity);
});

Deno.test("the runtime's status and words become a RuntimeError", async () => {
  await using at = await socket();
  const containerStatus: grpc.UntypedHandleCall = ((
    _call: unknown,
    answer: grpc.sendUnaryData<unknown>,
  ) => answer({ code: grpcCode.NotFound, details: "no such container" })) as Unary<unknown, unknown>;
  await using _server = await serve(at.path, { containerStatus });
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 5_000 });
  await assert.rejects(client.containerStatus("abc"), (e: unknown) => {
    assert(isNotFound(e));
    assert.equal((e as Error).message, "ContainerStatus abc: no such container");
    return true;
  });
  await assert.rejects(client.runtimeConfig(), isUnimplemented);
});

Deno.test("deadline and abort end a call on both sides and leave no listener", async () => {
  await using at = await socket();
  const cancelled: Promise<void>[] = [];
  const hang: Unary<unknown, unknown> = (call) => {
    cancelled.push(new Promise((resolve) => call.on("cancelled", resolve)));
  };
  await using _server = await serve(at.path, { execSync: hang, version });
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 5_000 });
  const { controller, listeners } = countingSignal();
  const { signal } = controller;
  for (let i = 0; i < 20; i++) await client.version({ signal });
  assert.equal(listeners(), 0);
  await assert.rejects(
    client.execSync("c", ["x"], 1, { timeoutMs: 50, signal }),
    (e: KubeletError) => e.code === "Timeout",
  );
  assert.equal(listeners(), 0);
  const call = assert.rejects(client.execSync("c", ["x"], 1, { signal }), isAborted);
  while (cancelled.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  controller.abort();
  await call;
  await Promise.all(cancelled);
  assert.equal(listeners(), 0);
  await assert.rejects(client.version({ signal }), isAborted);
});

Deno.test("it connects again when the socket is re-created, and says so", async () => {
  await using at = await socket();
  const log = new RecordingLogger();
  const first = await serve(at.path, { version });
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 5_000, log, connectMs: 5_000 });
  assert.equal((await client.version()).runtimeName, "test");
  await first[Symbol.asyncDispose]();
  await Deno.remove(at.path).catch(() => {});
  const impatient = createRuntimeClient({ endpoint: at.path, timeoutMs: 5_000, connectMs: 100 });
  await assert.rejects(impatient.version(), /does not exist: start the container runtime/);
  impatient[Symbol.dispose]();
  const waiting = Promise.all([client.version(), client.version()]);
  await using _second = await serve(at.path, { version });
  assert.deepEqual((await waiting).map((v) => v.runtimeName), ["test", "test"]);
});

Deno.test("an endpoint that cannot be used is told with its remedy, and without leaks", async () => {
  await using at = await socket();
  const log = new RecordingLogger();
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 5_000, log, connectMs: 100 });
  const { controller, listeners } = countingSignal();
  for (let i = 0; i < 3; i++) {
    await assert.rejects(client.version({ signal: controller.signal }), (e: KubeletError) => {
      assert.equal(e.code, "RuntimeUnavailable");
      assert.match(e.message, /^Version: the socket .* does not exist: start the container runtime/);
      return true;
    });
  }
  assert.equal(listeners(), 0);
  assert.deepEqual(log.lines.map((l) => l.message), ["cannot connect to the container runtime"], "said once");

  await assert.rejects(client.version({ timeoutMs: 10 }), (e: KubeletError) => e.code === "Timeout");
  const leaving = new AbortController();
  const left = assert.rejects(client.version({ signal: leaving.signal }), isAborted);
  leaving.abort();
  await left;

  await using _server = await serve(at.path, { listImages: version }, pb.ImageService);
  await assert.rejects(
    createThen(at.path, (c) => c.version()),
    (e: unknown) => isUnimplemented(e),
  );
});

async function createThen<T>(
  path: string,
  run: (client: ReturnType<typeof createRuntimeClient>) => Promise<T>,
): Promise<T> {
  using client = createRuntimeClient({ endpoint: path, timeoutMs: 5_000, connectMs: 300 });
  return await run(client);
}

Deno.test("a listener that does not speak gRPC is told apart", async () => {
  await using at = await socket();
  using listener = Deno.listen({ transport: "unix", path: at.path });
  const accepted: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of listener) accepted.push(connection);
  })();
  await assert.rejects(createThen(at.path, (c) => c.version()), /does not speak gRPC, or the runtime hangs/);
  for (const connection of accepted) connection.close();
  listener.close();
  await accepting;
});

Deno.test("messages up to 16 MiB pass, larger ones are refused", async () => {
  await using at = await socket();
  const execSync: Unary<pb.ExecSyncRequest, pb.ExecSyncResponse> = (call, answer) =>
    answer(null, create(pb.ExecSyncResponseSchema, { stdout: new Uint8Array(Number(call.request.cmd[0])) }));
  await using _server = await serve(at.path, { execSync });
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 20_000 });
  assert.equal((await client.execSync("c", [String(15 << 20)], 1)).stdout.length, 15 << 20);
  await assert.rejects(
    client.execSync("c", [String(17 << 20)], 1),
    (e: unknown) => e instanceof RuntimeError && e.status === grpcCode.ResourceExhausted,
  );
});

Deno.test("a request that cannot be encoded is refused before it is sent", async () => {
  using client = createRuntimeClient({ endpoint: "/nowhere.sock", timeoutMs: 1_000 });
  const port = { containerPort: 2 ** 40 };
  await assert.rejects(
    client.runPodSandbox({ metadata: { name: "web" }, portMappings: [port] }, "", { because }),
    (e: unknown) =>
      e instanceof RuntimeError && e.status === grpcCode.InvalidArgument && /container_port/.test(e.message),
  );
});

/** Passes bytes between a socket of its own and the server's, and counts those that the client was sent. */
function counting(path: string, server: string): { sent: () => number } & AsyncDisposable {
  const listener = Deno.listen({ transport: "unix", path });
  const open: Deno.Conn[] = [];
  let bytes = 0;
  const pass = async (from: Deno.Conn, to: Deno.Conn, count: (n: number) => void) => {
    const buffer = new Uint8Array(65_536);
    for (let n = await from.read(buffer); n !== null; n = await from.read(buffer)) {
      count(n);
      for (let at = 0; at < n;) at += await to.write(buffer.subarray(at, n));
    }
  };
  const done = (async () => {
    const down = await listener.accept();
    const up = await Deno.connect({ transport: "unix", path: server });
    open.push(down, up);
    await Promise.allSettled([pass(down, up, () => {}), pass(up, down, (n) => bytes += n)]);
  })();
  return {
    sent: () => bytes,
    async [Symbol.asyncDispose]() {
      for (const connection of open) connection.close();
      listener.close();
      await done;
    },
  };
}

Deno.test("events: back-pressure holds the server, leaving cancels, the end is an error", async () => {
  await using at = await socket();
  let sent = 0;
  let gone = 0;
  let breakOff: (() => void) | undefined;
  const getContainerEvents: grpc.handleServerStreamingCall<pb.GetEventsRequest, pb.ContainerEventResponse> = (call) => {
    const event = create(pb.ContainerEventResponseSchema, { containerId: "x".repeat(10_000) });
    const fill = () => {
      while (sent < 5_000) {
        sent++;
        if (!call.write(event)) {
          call.once("drain", fill);
          return;
        }
      }
    };
    call.on("cancelled", () => gone++);
    breakOff = () => call.emit("error", { code: grpcCode.Unavailable, details: "stopping" });
    fill();
  };
  await using _server = await serve(at.path, { getContainerEvents });
  await using line = counting(`${at.path}.counted`, at.path);
  using client = createRuntimeClient({ endpoint: `${at.path}.counted`, timeoutMs: 1_000 });

  const { controller, listeners } = countingSignal();
  let taken = 0;
  for await (const event of client.containerEvents({ signal: controller.signal })) {
    assert.equal(event.containerId.length, 10_000);
    taken++;
    if (taken === 10) await new Promise((resolve) => setTimeout(resolve, 200));
    if (taken === 20) break;
  }
  // 5,000 events are 50 MB; windows of HTTP/2 and of the socket are some hundred kilobytes.
  assert(line.sent() < 2_000_000, `${line.sent()} bytes were let come to a reader of 20 events`);
  assert.equal(listeners(), 0);
  while (gone < 1) await new Promise((resolve) => setTimeout(resolve, 1));

  sent = 4_990;
  const reading = (async () => {
    for await (const _ of client.containerEvents({ signal: controller.signal })) if (++taken === 30) controller.abort();
  })();
  await assert.rejects(reading, isAborted);
  assert.equal(listeners(), 0);

  sent = 4_999;
  const events = client.containerEvents({})[Symbol.asyncIterator]();
  assert.equal((await events.next()).done, false);
  breakOff?.();
  await assert.rejects(events.next(), (e: unknown) => e instanceof RuntimeError);
});

Deno.test("a runtime without events says so", async () => {
  await using at = await socket();
  await using _server = await serve(at.path, { version });
  using client = createRuntimeClient({ endpoint: at.path, timeoutMs: 1_000 });
  await assert.rejects(client.containerEvents({})[Symbol.asyncIterator]().next(), isUnimplemented);
});

Deno.test("a closed client says so", async () => {
  const client = createRuntimeClient({ endpoint: "/nowhere.sock", timeoutMs: 1_000 });
  client[Symbol.dispose]();
  await assert.rejects(client.version(), /the client has been closed/);
});
