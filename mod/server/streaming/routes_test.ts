import assert from "@assert";
import { grpcCode, RuntimeError } from "../../../cri/api.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { accepted, open, request, seen, spdy, uid, utf8, websocket, world } from "./routes_testing.ts";

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
