import assert from "@assert";
import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import net from "node:net";
import tls from "node:tls";
import { systemClock } from "../../mod/base/clock.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { decodeResponse, encodeRequest } from "./grpc_codec.ts";
import { createGrpcCheck } from "./grpc_probe.ts";
import { createHttpGet } from "./http_get.ts";
import { httpProbe } from "./http_probe.ts";
import { createTcpCheck } from "./tcp_probe.ts";
import { testCert, testKey } from "./test_certificate.ts";

/** A server on a port of its own; `onData` gets each connection's first bytes. */
async function serve(
  onData: (request: string, socket: net.Socket) => void,
  { secure = false, address: listenOn = "127.0.0.1" } = {},
): Promise<{ port: number; accepted: Promise<void> } & AsyncDisposable> {
  const sockets = new Set<net.Socket>();
  const first = Promise.withResolvers<void>();
  const onSocket = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.once("data", (data) => {
      first.resolve();
      onData(String(data), socket);
    });
  };
  const server = secure ? tls.createServer({ cert: testCert, key: testKey }, onSocket) : net.createServer(onSocket);
  await new Promise<void>((resolve) => server.listen(0, listenOn, () => resolve()));
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("the server has no port");
  return {
    port: address.port,
    accepted: first.promise,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const get = createHttpGet({ clock: systemClock });
const probe = (port: number, extra: Record<string, unknown> = {}) =>
  httpProbe(get, {
    action: { port, path: "/start", ...extra },
    container: {},
    podIP: "127.0.0.1",
    timeoutMs: 30_000,
  });

Deno.test("http probe: what each status means", async () => {
  const cases: [string, string, RegExp][] = [
    ["200 OK", "success", /^body$/],
    ["299 Fine", "success", /^body$/],
    ["304 Same", "warning", /^Probe terminated redirects, Response body: $/],
    ["302 Found", "warning", /Response body: body$/],
    ["404 No", "failure", /^HTTP probe failed with statuscode: 404$/],
    ["500 Bad", "failure", /statuscode: 500$/],
  ];
  for (const [status, result, output] of cases) {
    await using server = await serve((_, s) => s.end(`HTTP/1.1 ${status}\r\nContent-Length: 4\r\n\r\nbody`));
    const outcome = await probe(server.port);
    assert.equal(outcome.result, result, status);
    assert.match(outcome.output, output);
  }
});

Deno.test("http probe sends the request that the contract says", async () => {
  let seen = "";
  await using server = await serve((request, s) => {
    seen = request;
    s.end("HTTP/1.1 200 OK\r\n\r\n");
  });
  await probe(server.port, { httpHeaders: [{ name: "Host", value: "a.b" }] });
  assert.equal(
    seen,
    "GET /start HTTP/1.1\r\nHost: a.b\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n",
  );
});

Deno.test("http probe follows redirects on the same host only, ten at most", async () => {
  const redirect = (to: string) => `HTTP/1.1 302 Found\r\nLocation: ${to}\r\nContent-Length: 2\r\n\r\nhi`;
  const paths: string[] = [];
  await using server = await serve((request, s) => {
    const path = request.split(" ")[1] ?? "";
    paths.push(path);
    if (path === "/start") s.end(redirect("/next?a=1"));
    else if (path === "/away") s.end(redirect("http://192.0.2.1/x"));
    else if (path === "/loop") s.end(redirect("/loop"));
    else if (path === "/mail") s.end(redirect("http://"));
    else s.end("HTTP/1.1 200 OK\r\n\r\nend");
  });
  assert.deepEqual(await probe(server.port), { result: "success", output: "end" });
  assert.deepEqual(paths.splice(0), ["/start", "/next?a=1"]);
  assert.deepEqual(await probe(server.port, { path: "/away" }), {
    result: "warning",
    output: "Probe terminated redirects, Response body: hi",
  });
  paths.length = 0;
  const loop = await probe(server.port, { path: "/loop" });
  assert.equal(loop.result, "failure");
  assert.match(loop.output, /stopped after 10 redirects$/);
  assert.equal(paths.length, 10);
  const bad = await probe(server.port, { path: "/mail" });
  assert.match(bad.output, /failed to parse Location header "http:\/\/"/);
});

Deno.test("https is not verified; a plain server is told apart", async () => {
  await using secure = await serve((_, s) => s.end("HTTP/1.1 200 OK\r\n\r\nsafe"), { secure: true });
  assert.deepEqual(await probe(secure.port, { scheme: "HTTPS" }), { result: "success", output: "safe" });
  await using plain = await serve((_, s) => s.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  const outcome = await get({
    action: { port: plain.port, scheme: "HTTPS" },
    container: {},
    podIP: "127.0.0.1",
    purpose: "lifecycle",
    timeoutMs: 0,
  });
  if (outcome.ok) throw new Error("a plain answer was taken for HTTPS");
  assert.deepEqual([outcome.plainHttp, outcome.stage], [true, "request"]);
  assert.match(outcome.message, /^Get "https:.*": http: server gave HTTP response to HTTPS client$/);
});

Deno.test("a refused connection is a failure with the usual words", async () => {
  let port = 0;
  {
    await using server = await serve(() => {});
    port = server.port;
  }
  const http = await probe(port);
  assert.deepEqual(http, {
    result: "failure",
    output: `Get "http://127.0.0.1:${port}/start": dial tcp 127.0.0.1:${port}: connect: connection refused`,
  });
  const tcp = createTcpCheck({ clock: systemClock });
  const signal = new AbortController().signal;
  assert.deepEqual(await tcp({ host: "127.0.0.1", port, timeoutMs: 30_000, signal }), {
    result: "failure",
    output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
  });
});

Deno.test("tcp probe: an open port is enough", async () => {
  await using server = await serve(() => {});
  const tcp = createTcpCheck({ clock: systemClock });
  const outcome = await tcp({
    host: "127.0.0.1",
    port: server.port,
    timeoutMs: 30_000,
    signal: new AbortController().signal,
  });
  assert.deepEqual(outcome, { result: "success", output: "" });
});

Deno.test("a server that never answers, or never finishes its headers, fails at the time limit", async () => {
  for (const dribble of ["", "HTTP/1.1 200 OK\r\nX-Slow: "]) {
    const clock = new FakeClock();
    await using server = await serve((_, s) => dribble !== "" && s.write(dribble));
    const pending = httpProbe(createHttpGet({ clock }), {
      action: { port: server.port },
      container: {},
      podIP: "127.0.0.1",
      timeoutMs: 1000,
    });
    await server.accepted;
    await clock.advance(1000);
    const outcome = await pending;
    assert.equal(outcome.result, "failure");
    assert.match(outcome.output, /context deadline exceeded \(Client.Timeout exceeded while awaiting headers\)$/);
    assert.equal(clock.pending, 0);
  }
});

/** False on a machine without IPv6 on its loopback. */
function hasIPv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test({
  name: "IPv6 addresses",
  ignore: !hasIPv6(),
  async fn() {
    let host = "";
    await using server = await serve(
      (request, s) => {
        host = /^Host: (.*)$/m.exec(request)?.[1]?.trim() ?? "";
        s.end("HTTP/1.1 302 Found\r\nLocation: /start\r\nContent-Length: 0\r\n\r\n");
      },
      { address: "::1" },
    );
    const outcome = await httpProbe(get, {
      action: { port: server.port },
      container: {},
      podIP: "::1",
      timeoutMs: 30_000,
    });
    assert.equal(host, `[::1]:${server.port}`);
    assert.match(outcome.output, /stopped after 10 redirects$/);
  },
});

Deno.test("a body that breaks off is the prober's error, not the container's", async () => {
  await using server = await serve((_, s) => s.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"));
  await assert.rejects(probe(server.port), { code: "Probe", message: "unexpected EOF" });
});

Deno.test("a host or port that cannot be used is the prober's error", async () => {
  await assert.rejects(probe(0), { code: "Probe", message: "invalid port number: 0" });
});

Deno.test("endless headers and bodies are cut off", async () => {
  const flood = (head: string, more: string) => (_: string, s: net.Socket) => {
    const pump = () => {
      while (!s.destroyed && s.write(more));
      s.once("drain", pump);
    };
    s.write(head);
    pump();
  };
  await using headers = await serve(flood("HTTP/1.1 200 OK\r\n", "X-More: more\r\n".repeat(100)));
  const one = await probe(headers.port);
  assert.equal(one.result, "failure");
  assert.match(one.output, /headers exceeded/);
  await using body = await serve(flood("HTTP/1.1 200 OK\r\n\r\n", "b".repeat(1000)));
  const two = await probe(body.port);
  assert.equal(two.result, "success");
  assert.equal(two.output.length, 10 * 1024);
});

Deno.test("abort ends a call that is under way", async () => {
  await using server = await serve(() => {});
  const controller = new AbortController();
  const pending = get({
    action: { port: server.port },
    container: {},
    podIP: "127.0.0.1",
    purpose: "lifecycle",
    timeoutMs: 0,
    signal: controller.signal,
  });
  await server.accepted;
  controller.abort();
  await assert.rejects(pending, { code: "Aborted" });
});

Deno.test("health codec", () => {
  assert.deepEqual([...encodeRequest("")], []);
  assert.deepEqual([...encodeRequest("ab")], [0x0a, 2, 97, 98]);
  assert.deepEqual([...encodeRequest("x".repeat(200)).subarray(0, 4)], [0x0a, 0xc8, 0x01, 120]);
  const cases: [number[], string][] = [
    [[], "UNKNOWN"],
    [[8, 1], "SERVING"],
    [[8, 2], "NOT_SERVING"],
    [[8, 3], "SERVICE_UNKNOWN"],
    [[8, 200, 1], "200"],
    [[0x12, 2, 9, 9, 8, 1], "SERVING"],
  ];
  for (const [wire, want] of cases) assert.equal(decodeResponse(new Uint8Array(wire)), want);
  for (const wire of [[8], [8, 0x80], [0x12, 9, 1], [0x0b], Array(12).fill(0xff)]) {
    assert.throws(() => decodeResponse(new Uint8Array(wire)), RangeError);
  }
});

type Answer = (service: string, user: string) => { error?: { code: number; details: string }; state?: number };

async function grpcServer(answer: Answer | undefined): Promise<{ port: number } & AsyncDisposable> {
  const server = new grpc.Server();
  if (answer) {
    server.addService({
      Check: {
        path: "/grpc.health.v1.Health/Check",
        requestStream: false,
        responseStream: false,
        requestSerialize: (service: string) => Buffer.from(encodeRequest(service)),
        requestDeserialize: (wire: Uint8Array) => new TextDecoder().decode(wire.subarray(2)),
        responseSerialize: (wire: Uint8Array) => Buffer.from(wire),
        responseDeserialize: (wire: Uint8Array) => wire,
      },
    }, {
      Check: (call: grpc.ServerUnaryCall<string, Uint8Array>, done: grpc.sendUnaryData<Uint8Array>) => {
        const { error, state } = answer(call.request, String(call.metadata.get("user-agent")[0]));
        if (error) done(error);
        else done(null, new Uint8Array(state === undefined ? [] : [8, state]));
      },
    });
  }
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (e, p) => e ? reject(e) : resolve(p))
  );
  return {
    port,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    },
  };
}

Deno.test("grpc probe: SERVING is success, all else a failure that says why", async () => {
  let agent = "";
  const cases: [Answer | undefined, string, RegExp][] = [
    [(s, user) => (agent = user, { state: s === "db" ? 1 : 2 }), "success", /^service healthy$/],
    [() => ({ state: 2 }), "failure", /^service unhealthy \(responded with "NOT_SERVING"\)$/],
    [() => ({ error: { code: 5, details: "no such" } }), "failure", /^error: health rpc probe failed: .*no such/],
    [undefined, "failure", /does not implement the grpc health protocol \(grpc.health.v1.Health\)/],
  ];
  for (const [answer, result, output] of cases) {
    await using server = await grpcServer(answer);
    const outcome = await createGrpcCheck({ clock: systemClock })({
      host: "127.0.0.1",
      port: server.port,
      service: "db",
      timeoutMs: 60_000,
      signal: new AbortController().signal,
    });
    assert.equal(outcome.result, result);
    assert.match(outcome.output, output);
  }
  assert.match(agent, /^kube-probe\/1\.36/);
});

Deno.test("grpc probe: no server fails at the time limit", async () => {
  const clock = new FakeClock();
  const pending = createGrpcCheck({ clock })({
    host: "127.0.0.1",
    port: 1,
    service: "",
    timeoutMs: 1000,
    signal: new AbortController().signal,
  });
  await clock.advance(1000);
  assert.deepEqual(await pending, {
    result: "failure",
    output: 'timeout: failed to connect service "127.0.0.1:1" within 1s: context deadline exceeded',
  });
});
