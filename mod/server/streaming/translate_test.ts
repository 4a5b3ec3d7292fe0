import assert from "@assert";
import { clientFrame, WebSocketClient } from "./testing.ts";
import { accepted, request, spdyRuntime, utf8, websocket, world } from "./routes_testing.ts";

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
