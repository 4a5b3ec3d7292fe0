import assert from "@assert";
import { grpcCode, RuntimeError, type RuntimeService } from "../../../cri/api.ts";
import { FakeHost } from "../../base/fake_host.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { streamingRoutes } from "./routes.ts";
import { SpdyWriter } from "./spdy.ts";
import { clientFrame, RawClient, sceneBackend, serve, WebSocketClient } from "./testing.ts";

const utf8 = new TextEncoder();
const uid = "u-1";
const pod = {
  metadata: { name: "web", namespace: "default", uid },
  spec: {
    containers: [{ name: "c", tty: true }, { name: "d" }, { name: "ended" }],
    initContainers: [{ name: "side" }],
  },
} as unknown as BoundPod;

function seen(more: Partial<ObservedPod> = {}): ObservedPod {
  const container = (name: string, id: string, state = "running") => ({ name, id, state });
  return {
    uid,
    name: "web",
    namespace: "default",
    sandboxes: [{ id: "s-2", ready: true, createdAt: 5 }, { id: "s-1", ready: false, createdAt: 1 }],
    containers: [
      container("c", "c-2"),
      container("c", "c-1", "exited"),
      container("side", "i-1"),
      container("d", "d-1"),
      container("ended", "e-1", "exited"),
    ],
    readAt: 0,
    ...more,
  } as unknown as ObservedPod;
}

interface Asked {
  call: string;
  request: Record<string, unknown>;
}

interface World extends AsyncDisposable {
  port: number;
  asked: Asked[];
  /** What the runtime's streaming server does with each connection. */
  onConnection: (client: RawClient, head: string) => Promise<void>;
  answer: (call: string) => void;
  observed: ObservedPod[];
  execResult: { stdout: string; stderr: string; exitCode: number };
}

/** A server with our routes before a streaming server that does what the test says. */
async function world(): Promise<World> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Promise<void>[] = [];
  const url = (call: string) => `http://127.0.0.1:${listener.addr.port}/${call}/token`;
  const stream = (call: string) => (request: Record<string, unknown>) => {
    made.asked.push({ call, request });
    made.answer(call);
    return Promise.resolve(url(call));
  };
  const runtime = {
    exec: stream("exec"),
    attach: stream("attach"),
    portForward: stream("portforward"),
    execSync: (id: string, command: string[], timeout: number) => {
      made.asked.push({ call: "execSync", request: { id, command, timeout } });
      made.answer("execSync");
      const { stdout, stderr, exitCode } = made.execResult;
      return Promise.resolve({ stdout: utf8.encode(stdout), stderr: utf8.encode(stderr), exitCode });
    },
  } as unknown as RuntimeService;
  const backend = sceneBackend({ pods: [pod], observed: () => made.observed, runtime, host: new FakeHost() });
  let accepting = Promise.resolve();
  const server = await serve([streamingRoutes(backend)]);
  const made: World = {
    port: server.port,
    asked: [],
    onConnection: () => Promise.resolve(),
    answer: () => {},
    observed: [seen()],
    execResult: { stdout: "", stderr: "", exitCode: 0 },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      listener.close();
      await accepting;
      await Promise.allSettled(connections);
    },
  };
  accepting = (async () => {
    for await (const connection of listener) {
      connections.push((async () => {
        using client = RawClient.of(connection);
        await made.onConnection(client, await client.until("\r\n\r\n"));
      })());
    }
  })();
  return made;
}

/** A request without an upgrade, or with one that is refused: status and body. */
async function request(
  port: number,
  method: string,
  path: string,
  headers: string[] = [],
): Promise<[number, string, string]> {
  using raw = await RawClient.connect(port);
  await raw.write([`${method} ${path} HTTP/1.1`, "Host: node", "Content-Length: 0", ...headers, "", ""].join("\r\n"));
  const head = await raw.until("\r\n\r\n");
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return [Number(head.split(" ")[1]), new TextDecoder().decode(await raw.bytes(length)), head];
}

const spdy = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];
const websocket = (protocol: string) => [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  `Sec-WebSocket-Protocol: ${protocol}`,
];
const accepted =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";

Deno.test("requests that cannot be served, and what they are told", async () => {
  await using w = await world();
  const none = "you must specify at least 1 of stdin, stdout, stderr";
  const ws = websocket("v4.channel.k8s.io");
  const cases: [string, string, string[], number, string][] = [
    ["GET", "/exec/default/web/c", spdy, 400, none],
    ["POST", "/exec/default/web/c?input=true&output=0&command=x", spdy, 400, none],
    ["POST", "/exec/default/web/c?tty=1&error=1", spdy, 400, none],
    ["POST", "/attach/default/web/c?command=x", spdy, 400, none],
    ["POST", "/exec/default/none/c?output=1", spdy, 404, "pod does not exist"],
    ["POST", "/attach/other/web/c?output=1", spdy, 404, "pod does not exist"],
    ["POST", "/exec/default/web/nope?output=1", spdy, 500, 'container not found ("nope")'],
    ["POST", "/exec/default/web/ended?output=1", spdy, 500, 'container not found ("ended")'],
    ["POST", "/attach/default/web/__proto__?output=1", spdy, 500, 'container not found ("__proto__")'],
    ["POST", "/exec/default/web/other-uid/c?output=1", spdy, 500, 'container not found ("c")'],
    ["POST", "/exec/default/web/c?output=1&command=x", [], 500, "Upgrade request required\n"],
    ["POST", "/portForward/default/web", [], 500, "Upgrade request required\n"],
    ["POST", "/portForward/default/none", spdy, 404, "pod does not exist"],
    ["POST", "/portForward/default/web/other-uid", spdy, 404, "pod not found"],
    ["GET", "/portForward/default/web", ws, 400, 'query parameter "port" is required'],
    ["GET", "/portForward/default/web?port=", ws, 400, 'query parameter "port" cannot be empty'],
    ["GET", "/portForward/default/web?port=0", ws, 400, 'port "0" must be > 0'],
    [
      "GET",
      "/portForward/default/web?port=80,x",
      ws,
      400,
      'unable to parse "80,x" as a port: strconv.ParseUint: parsing "x": invalid syntax',
    ],
    [
      "GET",
      "/portForward/default/web?port=65536",
      ws,
      400,
      'unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range',
    ],
    ["POST", "/run/default/none/c?cmd=x", [], 404, "pod does not exist"],
    ["POST", "/run/default/web/nope?cmd=x", [], 500, 'container not found ("nope")'],
  ];
  for (const [method, path, headers, status, text] of cases) {
    assert.deepEqual((await request(w.port, method, path, headers)).slice(0, 2), [status, text], `${method} ${path}`);
  }
  assert.deepEqual(w.asked, [], "the runtime was not asked for any");
  w.observed = [];
  assert.deepEqual((await request(w.port, "POST", "/portForward/default/web", spdy)).slice(0, 2), [
    500,
    'pod not found ("web_default")',
  ]);
});

Deno.test("the runtime's errors become statuses", async () => {
  await using w = await world();
  const cases: [Error, number, string, RegExp?][] = [
    [new RuntimeError("Exec", grpcCode.NotFound, "no such"), 404, "rpc error: code = NotFound desc = no such"],
    [
      new RuntimeError("Exec", grpcCode.ResourceExhausted, "maximum number of in-flight requests exceeded"),
      429,
      "rpc error: code = ResourceExhausted desc = maximum number of in-flight requests exceeded",
      /retry-after: 60/i,
    ],
    [new RuntimeError("Exec", grpcCode.Unavailable, "away"), 500, "rpc error: code = Unavailable desc = away"],
    [new Error("odd"), 500, "odd"],
  ];
  for (const [error, status, text, head] of cases) {
    w.answer = () => {
      throw error;
    };
    for (const path of ["/exec/default/web/c?output=1", "/attach/default/web/c?output=1", "/portForward/default/web"]) {
      const got = await request(w.port, "POST", path, spdy);
      assert.deepEqual(got.slice(0, 2), [status, text], path);
      if (head) assert.match(got[2], head);
    }
    const run = await request(w.port, "POST", "/run/default/web/c?cmd=x");
    assert.deepEqual(run.slice(0, 2), [500, text], "/run");
  }
});

Deno.test("what the runtime is asked for", async () => {
  await using w = await world();
  w.onConnection = (client) =>
    client.write("HTTP/1.1 403 Forbidden\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nno");
  const ask = async (path: string, headers = spdy) => {
    w.asked.length = 0;
    const got = await request(w.port, headers === spdy ? "POST" : "GET", path, headers);
    assert.deepEqual(got.slice(0, 2), [403, "no"], path);
    assert.match(got[2], /content-type: text\/x/i);
    return w.asked.map(({ call, request }): Record<string, unknown> => ({ call, ...request }));
  };
  const streams = { stdin: false, stdout: true, stderr: false, tty: false };
  assert.deepEqual(await ask("/exec/default/web/c?output=1&command=a&command=b%20c&command="), [
    { call: "exec", containerId: "c-2", cmd: ["a", "b c", ""], ...streams },
  ]);
  assert.deepEqual(await ask(`/exec/default/web/${uid}/side?input=1&error=1&output=1&tty=1`), [
    { call: "exec", containerId: "i-1", cmd: [], stdin: true, stdout: true, stderr: false, tty: true },
  ]);
  // The terminal of an attach is the container's own.
  assert.deepEqual(await ask("/attach/default/web/c?output=1"), [{
    call: "attach",
    containerId: "c-2",
    ...streams,
    tty: true,
  }]);
  assert.deepEqual(await ask("/attach/default/web/d?output=1&tty=1"), [{
    call: "attach",
    containerId: "d-1",
    ...streams,
  }]);
  assert.deepEqual(await ask("/portForward/default/web?port=80"), [{
    call: "portforward",
    podSandboxId: "s-2",
    port: [],
  }]);
  assert.deepEqual(await ask(`/portForward/default/web/${uid}?port=80,81&port=82`, websocket("v4.channel.k8s.io")), [
    { call: "portforward", podSandboxId: "s-2", port: [80, 81, 82] },
  ]);
  // A predecessor of the same name that still runs, while nothing of the pod does yet.
  const old = seen({
    uid: "old",
    containers: [{ name: "c", id: "old-c", state: "running" }] as unknown as ObservedPod["containers"],
  });
  w.observed = [seen({ sandboxes: [], containers: [] }), old];
  assert.equal((await ask("/exec/default/web/c?output=1"))[0]?.containerId, "old-c");
});

Deno.test("run gives the output, both streams in a row, or the failure", async () => {
  await using w = await world();
  w.execResult = { stdout: "out", stderr: "err", exitCode: 0 };
  const [status, , head] = await request(w.port, "POST", "/run/default/web/c?cmd=ls%20%20-l");
  assert.equal(status, 200);
  assert.match(head, /content-type: application\/json/i);
  assert.deepEqual(w.asked[0]?.request, { id: "c-2", command: ["ls", "", "-l"], timeout: 0 });
  const answer = await fetch(`http://127.0.0.1:${w.port}/run/default/web/${uid}/c?cmd=x`, { method: "POST" });
  assert.equal(await answer.text(), "outerr");
  w.execResult = { stdout: "out", stderr: "err", exitCode: 3 };
  assert.deepEqual((await request(w.port, "POST", "/run/default/web/c?cmd=a%20b")).slice(0, 2), [
    500,
    "command 'a b' exited with 3: err",
  ]);
  const wrong = await fetch(`http://127.0.0.1:${w.port}/run/default/web/c?cmd=x`);
  assert.equal(wrong.status, 405);
  await wrong.body?.cancel();
});

/** Opens SPDY through the server; what follows is the test's own bytes. */
async function open(w: World, extra: string[] = []): Promise<RawClient> {
  const raw = await RawClient.connect(w.port);
  await raw.write(["POST /exec/default/web/c?output=1 HTTP/1.1", "Host: node", ...spdy, ...extra, "", ""].join("\r\n"));
  return raw;
}

Deno.test("bytes go both ways as they are, with what comes right behind the heads, and each direction ends by itself", async () => {
  await using w = await world();
  const heads: string[] = [];
  w.onConnection = async (client, head) => {
    heads.push(head);
    await client.write(utf8.encode(`${accepted}early`));
    assert.equal(await client.until("end"), "first\0\xffend");
    // The client has ended its side; ours goes on.
    assert.equal(await client.rest(), "");
    await client.write("late");
  };
  using raw = await open(w, ["Authorization: Bearer secret", "X-Forwarded-For: 192.0.2.1"]);
  await raw.write("first\0\xff");
  assert.equal(await raw.until("early"), `${accepted}early`);
  await raw.write("end");
  await raw.closeWrite();
  assert.equal(await raw.rest(), "late");
  assert.match(heads[0] ?? "", /^POST \/exec\/token HTTP\/1\.1\r\n/);
  assert.match(heads[0] ?? "", /\r\nUpgrade: SPDY\/3\.1\r\n/);
  assert.match(heads[0] ?? "", /\r\nX-Forwarded-For: 192\.0\.2\.1, 127\.0\.0\.1\r\n/);
  assert.doesNotMatch(heads[0] ?? "", /secret/);
});

Deno.test("a client that still sends when the runtime is through gets all output", async () => {
  await using w = await world();
  // What fits into the buffers of the connection: what does not is lost with it, whoever reads.
  const size = 40_000;
  w.onConnection = async (client) => {
    await client.write(accepted);
    await client.bytes(1);
    await client.write(new Uint8Array(size));
  };
  using raw = await open(w);
  await raw.until("\r\n\r\n");
  const sending = (async () => {
    // Ends when nobody takes it any more.
    for (let i = 0; i < 50; i++) await raw.write(new Uint8Array(10_000));
  })().catch(() => {});
  assert.equal((await raw.bytes(size)).length, size);
  await sending;
});

Deno.test("a client that goes away ends the runtime's side; one that resets its connection too", async () => {
  await using w = await world();
  const ended = Promise.withResolvers<string>();
  w.onConnection = async (client) => {
    await client.write(accepted);
    ended.resolve(await client.rest().catch(() => "reset"));
  };
  {
    using raw = await open(w);
    await raw.until("\r\n\r\n");
    await raw.write("x");
  }
  assert.match(await ended.promise, /^x$|^reset$/);
});

Deno.test("answers of the runtime's server that are no upgrade", async () => {
  await using w = await world();
  const path = "/exec/default/web/c?output=1";
  const answers: [string, number, string | RegExp][] = [
    ["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", 404, "gone"],
    ["HTTP/1.1 400 Bad Request\r\n\r\nup to the end", 400, "up to the end"],
    ["HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 500, ""],
    ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 500, "invalid upgrade response: status code 200\n"],
    ["SSH-2.0-OpenSSH\r\n\r\n\r\n", 500, /sent no HTTP answer/],
    ["", 500, /unexpected EOF/],
  ];
  for (const [answer, status, text] of answers) {
    w.onConnection = (client) => client.write(answer);
    const got = await request(w.port, "POST", path, spdy);
    assert.equal(got[0], status, answer);
    if (typeof text === "string") assert.equal(got[1], text, answer);
    else assert.match(got[1], text, answer);
  }
});

/** Plays a runtime that speaks SPDY: takes the streams, then does what the test says with the bare connection. */
function spdyRuntime(w: World, play: (client: RawClient, writer: SpdyWriter) => Promise<void>): void {
  w.onConnection = async (client, head) => {
    assert.match(head, /X-Stream-Protocol-Version: v4\.channel\.k8s\.io/);
    await client.write(accepted);
    await play(client, new SpdyWriter());
  };
}

Deno.test("v5: channels become streams, the close of the input its last frame, the status comes last", async () => {
  await using w = await world();
  const inputs: string[] = [];
  spdyRuntime(w, async (client, writer) => {
    while (inputs.at(-1) !== "3 end") {
      const head = await client.bytes(8);
      const body = await client.bytes((head[5]! << 16) | (head[6]! << 8) | head[7]!);
      if (head[0] === 0x80) continue;
      inputs.push(head[4] ? `${head[3]} end` : `${head[3]} ${new TextDecoder().decode(body)}`);
    }
    // The status is there before the output: it must wait.
    await client.write(writer.data(1, utf8.encode('{"status":"Success"}'), true));
    await client.write(writer.pong(Uint8Array.of(0, 0, 0, 2)));
    assert.deepEqual([...(await client.bytes(12)).subarray(8)], [0, 0, 0, 2]);
    await client.write(writer.data(7, utf8.encode("err"), true));
    await client.write(writer.data(5, utf8.encode("out"), true));
  });
  using client = await WebSocketClient.open(w.port, "/exec/default/web/c?input=1&output=1&error=1", [
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
  ]);
  assert.equal(client.status, 101);
  assert.match(client.head, /Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  await client.raw.write(clientFrame(utf8.encode("ping"), { op: 9 }));
  await client.send(0, "a");
  await client.send(7, "a channel that is none");
  await client.send(2, "not to be written");
  // One message in two frames.
  await client.raw.write(clientFrame(Uint8Array.of(0, 0x62), { final: false }));
  await client.raw.write(clientFrame(utf8.encode("c"), { op: 0 }));
  await client.send(255, Uint8Array.of(0));
  await client.send(0, "after its end");
  assert.deepEqual([...(await client.frame()).payload], [1], "the connection stands");
  assert.deepEqual(await client.frame(), { op: 10, payload: utf8.encode("ping") });
  const order: number[] = [];
  for (let frame = await client.frame(); frame.op !== 8; frame = await client.frame()) {
    order.push(frame.payload[0] ?? -1);
  }
  assert.deepEqual(order, [2, 1, 3]);
  assert.deepEqual(inputs.filter((i) => i.startsWith("3")), ["3 a", "3 b", "3 c", "3 end"]);
});

Deno.test("v5: failures are told on the error channel", async () => {
  await using w = await world();
  const path = "/exec/default/web/c?output=1";
  const failure = async () => {
    using client = await WebSocketClient.open(w.port, path, ["v5.channel.k8s.io"]);
    const status = JSON.parse((await client.channels())[3] ?? "");
    assert.deepEqual([status.status, status.reason, status.code], ["Failure", "InternalError", 500]);
    return status.message;
  };
  w.onConnection = (client) => client.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  assert.match(await failure(), /unable to upgrade connection: no/);
  spdyRuntime(w, () => Promise.resolve());
  assert.match(await failure(), /closed the connection before it told/);
  const bad = await request(w.port, "GET", path, websocket("v5.channel.k8s.io").map((h) => h.replace("13", "8")));
  assert.deepEqual([bad[0], bad[1]], [400, "unable to upgrade: Sec-WebSocket-Version must be 13\n"]);
});

Deno.test("v5: a client that breaks the protocol is told so and let go, with its command", async () => {
  await using w = await world();
  const gone = Promise.withResolvers<void>();
  spdyRuntime(w, async (client) => {
    await client.rest().catch(() => {});
    gone.resolve();
  });
  using client = await WebSocketClient.open(w.port, "/exec/default/web/c?input=1&output=1", ["v5.channel.k8s.io"]);
  await client.frame();
  await client.raw.write(Uint8Array.of(0x82, 0x05));
  let frame = await client.frame();
  assert.deepEqual([frame.op, [...frame.payload.subarray(0, 2)]], [8, [3, 234]]);
  while (frame.op !== 8) frame = await client.frame();
  await gone.promise;
});

Deno.test("tunnelled port-forward: the bytes inside the messages are the runtime's, and its answers come as messages", async () => {
  await using w = await world();
  w.onConnection = async (client, head) => {
    assert.match(head, /^POST \/portforward\/token HTTP\/1\.1/);
    assert.match(head, /X-Stream-Protocol-Version: portforward\.k8s\.io/);
    assert.doesNotMatch(head, /Sec-WebSocket/i);
    await client.write(accepted.replace("v4.channel", "portforward"));
    assert.equal(await client.until("two"), "one two");
    await client.write("answer");
  };
  using client = await WebSocketClient.open(w.port, "/portForward/default/web", ["SPDY/3.1+portforward.k8s.io"]);
  assert.equal(client.status, 101);
  assert.match(client.head, /Sec-WebSocket-Protocol: SPDY\/3\.1\+portforward\.k8s\.io/);
  await client.raw.write(clientFrame(utf8.encode("one ")));
  await client.raw.write(clientFrame(new Uint8Array(), { op: 9 }));
  await client.raw.write(clientFrame(utf8.encode("two")));
  assert.equal((await client.frame()).op, 10);
  assert.equal(new TextDecoder().decode((await client.frame()).payload), "answer");
  assert.equal((await client.frame()).op, 8);

  w.onConnection = (c) => c.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  const refused = await request(w.port, "GET", "/portForward/default/web", websocket("SPDY/3.1+portforward.k8s.io"));
  assert.deepEqual(refused.slice(0, 2), [403, "no"]);
});
