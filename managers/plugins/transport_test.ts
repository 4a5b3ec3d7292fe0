import assert from "@assert";
import { DevicePlugin, Registration } from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { connectGrpc } from "../../mod/base/grpc_client.ts";
import { GrpcError } from "../../mod/base/grpc_error.ts";
import { frameOf, FrameReader } from "../../mod/base/grpc_frames.ts";
import { served, serveGrpc } from "../../mod/base/grpc_server.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";

async function serving(run: (path: string, scope: Scope) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "denolet-grpc-" });
  const path = `${dir}/s.sock`;
  const scope = new Scope("test");
  const listening = Promise.withResolvers<void>();
  scope.spawn("server", (signal) =>
    serveGrpc({
      path,
      log: silent,
      signal,
      onListen: listening.resolve,
      methods: [
        served(Registration.method.register, (request) => {
          if (request.version === "hang") return Promise.withResolvers<never>().promise;
          if (request.version !== "v1beta1") throw new Error(`version "${request.version}" – no`);
          if (request.endpoint === "") throw new GrpcError("InvalidArgument", "no endpoint");
          return {};
        }),
      ],
    }));
  await listening.promise;
  try {
    await run(path, scope);
  } finally {
    await scope.close();
    await assert.rejects(Deno.stat(path), Deno.errors.NotFound, "the socket goes with its server");
    await Deno.remove(dir, { recursive: true });
  }
}

const within = { clock: systemClock, timeoutMs: 60_000 };

Deno.test("gRPC over a unix socket: answers, refusals in Go's words, methods that are not there", async () => {
  await serving(async (path) => {
    using client = await connectGrpc(path, within);
    const register = Registration.method.register;
    await client.unary(register, { version: "v1beta1", endpoint: "x".repeat(100_000), resourceName: "a/b" });
    await assert.rejects(client.unary(register, { version: "v0" }), {
      message: 'rpc error: code = Unknown desc = version "v0" – no',
    });
    await assert.rejects(client.unary(register, { version: "v1beta1" }), {
      message: "rpc error: code = InvalidArgument desc = no endpoint",
      status: "InvalidArgument",
    });
    await assert.rejects(client.unary(DevicePlugin.method.allocate, {}), { status: "Unimplemented" });
    const lists = client.stream(DevicePlugin.method.listAndWatch, {});
    await assert.rejects(Array.fromAsync(lists), { status: "Unimplemented" });
  });
});

Deno.test("gRPC calls end by their limit, their caller, and the server's end", async () => {
  await serving(async (path, scope) => {
    const clock = new FakeClock();
    using client = await connectGrpc(path, { ...within, clock });
    const hang = { version: "hang" };
    const limited = client.unary(Registration.method.register, hang, { timeoutMs: 5000 });
    const late = assert.rejects(limited, { status: "DeadlineExceeded", code: "Timeout" });
    await clock.advance(5000);
    await late;
    const caller = new AbortController();
    const aborted = client.unary(Registration.method.register, hang, { signal: caller.signal });
    caller.abort();
    await assert.rejects(aborted, { code: "Aborted" });
    const cut = client.unary(Registration.method.register, hang);
    const failed = assert.rejects(cut, { name: "GrpcError" });
    await scope.close();
    await failed;
    await assert.rejects(client.unary(Registration.method.register, hang), { status: "Unavailable" });
    await assert.rejects(connectGrpc(path, within), { status: "Unavailable" });
  });
});

Deno.test("a server whose process is gone ends its calls: it closes the connection and says no more", async () => {
  const dir = await Deno.makeTempDir({ prefix: "denolet-grpc-" });
  const path = `${dir}/s.sock`;
  using listener = Deno.listen({ transport: "unix", path });
  const connecting = connectGrpc(path, within);
  const conn = await listener.accept();
  // The settings with which a server begins.
  await conn.write(new Uint8Array([0, 0, 0, 4, 0, 0, 0, 0, 0]));
  using client = await connecting;
  const lists = Array.fromAsync(client.stream(DevicePlugin.method.listAndWatch, {}));
  const cut = assert.rejects(lists, { status: "Unavailable" });
  await conn.read(new Uint8Array(1000));
  conn.close();
  await cut;
  await assert.rejects(client.unary(DevicePlugin.method.allocate, {}), { status: "Unavailable" });
  await Deno.remove(dir, { recursive: true });
});

Deno.test("a socket that takes connections and says nothing is given up", async () => {
  const dir = await Deno.makeTempDir({ prefix: "denolet-grpc-" });
  const path = `${dir}/s.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const accepted = listener.accept();
  const clock = new FakeClock();
  const connecting = connectGrpc(path, { clock, timeoutMs: 10_000 });
  const late = assert.rejects(connecting, { status: "DeadlineExceeded" });
  const conn = await accepted;
  await clock.advance(10_000);
  await late;
  conn.close();
  listener.close();
  await Deno.remove(dir, { recursive: true });
});

Deno.test("frames arrive in pieces of any size; compressed and huge ones are refused", () => {
  const message = new Uint8Array([1, 2, 3]);
  const wire = new Uint8Array([...frameOf(message), ...frameOf(new Uint8Array()), ...frameOf(message)]);
  for (const size of [1, 4, 7, 100]) {
    const reader = new FrameReader();
    const got: Uint8Array[] = [];
    for (let at = 0; at < wire.length; at += size) got.push(...reader.feed(wire.subarray(at, at + size)));
    assert.deepEqual(got, [message, new Uint8Array(), message]);
  }
  assert.throws(() => new FrameReader().feed(new Uint8Array([1, 0, 0, 0, 0])), { status: "Internal" });
  assert.throws(() => new FrameReader().feed(new Uint8Array([0, 255, 255, 255, 255])), { status: "ResourceExhausted" });
});
