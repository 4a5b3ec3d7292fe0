import assert from "@assert";
import { inflateSync } from "node:zlib";
import { SpdyParser, SpdyWriter } from "./spdy.ts";
import { clientFrame } from "./testing.ts";
import { binaryFrame, closeFrame, type FrameEvent, FrameParser } from "./websocket.ts";

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Events of frames in short: joined messages, and what else there is. */
function told(events: FrameEvent[]): string[] {
  const out: string[] = [];
  let message = "";
  for (const event of events) {
    if (event.kind === "data") {
      message = event.first ? text(event.bytes) : message + text(event.bytes);
      if (event.last) out.push(`data ${message}`);
    } else out.push(event.kind === "ping" ? `ping ${text(event.bytes)}` : event.kind === "close" ? "close" : event.why);
  }
  return out;
}

Deno.test("a client's frames are read whatever pieces they come in", () => {
  const frames = [
    clientFrame(utf8.encode("one")),
    clientFrame(utf8.encode("")),
    clientFrame(utf8.encode("tw"), { final: false }),
    clientFrame(utf8.encode("hi"), { op: 9 }),
    clientFrame(utf8.encode("o"), { op: 0 }),
    clientFrame(utf8.encode("x".repeat(300)), { op: 1 }),
    clientFrame(utf8.encode("y".repeat(70_000))),
    clientFrame(utf8.encode("pong"), { op: 10 }),
    clientFrame(utf8.encode(""), { op: 9 }),
    clientFrame(Uint8Array.of(3, 232), { op: 8 }),
    clientFrame(utf8.encode("after the end")),
  ];
  const want = [
    "data one",
    "data ",
    "ping hi",
    "data two",
    `data ${"x".repeat(300)}`,
    `data ${"y".repeat(70_000)}`,
    "ping ",
    "close",
  ];
  const all = new Uint8Array(frames.reduce((n, f) => n + f.length, 0));
  let at = 0;
  for (const frame of frames) {
    all.set(frame, at);
    at += frame.length;
  }
  for (const size of [1, 2, 3, 7, 1000, all.length]) {
    const parser = new FrameParser();
    const events: FrameEvent[] = [];
    for (let from = 0; from < all.length; from += size) events.push(...parser.push(all.slice(from, from + size)));
    assert.deepEqual(told(events), want, `pieces of ${size}`);
  }
});

Deno.test("frames that break the protocol are told at once, and nothing is read after them", () => {
  const cases: [number[], RegExp][] = [
    [[0x82, 0x05], /not masked/],
    [[0xc2, 0x80], /reserved bits/],
    [[0x83, 0x80], /unknown opcode 3/],
    [[0x89, 0xfe], /longer than 125/],
    [[0x09, 0x80], /in pieces/],
    [[0x80, 0x80], /continuation without/],
    [[0x02, 0x80, 0, 0, 0, 0, 0x82, 0x80], /inside another/],
    [[0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], /too long/],
  ];
  for (const [bytes, why] of cases) {
    const parser = new FrameParser();
    const events = parser.push(Uint8Array.from(bytes));
    assert.match(told(events).join(), why);
    assert.deepEqual(parser.push(clientFrame(utf8.encode("x"))), []);
  }
});

Deno.test("a frame of terabytes is not waited for: its pieces are given as they come", () => {
  const parser = new FrameParser();
  parser.push(Uint8Array.of(0x82, 0xff, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  const [event] = parser.push(new Uint8Array(1000));
  assert.ok(event?.kind === "data" && event.bytes.length === 1000 && event.first && !event.last);
});

Deno.test("a server's frames have the right lengths", () => {
  for (
    const [size, head] of [[3, [0x82, 4]], [200, [0x82, 126, 0, 201]], [70_000, [
      0x82,
      127,
      0,
      0,
      0,
      0,
      0,
      1,
      0x11,
      0x71,
    ]]] as const
  ) {
    const frame = binaryFrame(Uint8Array.of(1), new Uint8Array(size));
    assert.deepEqual([...frame.subarray(0, head.length)], [...head]);
    assert.equal(frame.length, head.length + size + 1);
  }
  assert.deepEqual([...closeFrame(1002, "why")], [0x88, 5, 3, 234, ...utf8.encode("why")]);
});

Deno.test("SPDY header blocks make one zlib stream", () => {
  const writer = new SpdyWriter();
  const frames = [writer.open(1, { streamType: "error" }), writer.open(3, { streamType: "stdin", port: "80" })];
  const blocks = frames.flatMap((f) => [...f.subarray(18)]);
  const plain = inflateSync(Uint8Array.from(blocks), { finishFlush: 2 });
  const word = (n: number) => [0, 0, 0, n];
  const pair = (name: string, value: string) => [
    ...word(name.length),
    ...utf8.encode(name),
    ...word(value.length),
    ...utf8.encode(value),
  ];
  assert.deepEqual([...plain], [
    ...word(1),
    ...pair("streamtype", "error"),
    ...word(2),
    ...pair("streamtype", "stdin"),
    ...pair("port", "80"),
  ]);
  assert.deepEqual([...(frames[1]?.subarray(0, 8) ?? [])], [0x80, 3, 0, 1, 0, 0, 0, (frames[1]?.length ?? 0) - 8]);
  assert.deepEqual([...writer.data(3, utf8.encode("ab"), true)], [0, 0, 0, 3, 1, 0, 0, 2, 97, 98]);
});

Deno.test("a SPDY server's frames are read whatever pieces they come in", () => {
  const writer = new SpdyWriter();
  const control = (
    type: number,
    flags: number,
    body: number[],
  ) => [0x80, 3, 0, type, flags, 0, 0, body.length, ...body];
  const all = Uint8Array.from([
    ...control(2, 0, [0, 0, 0, 1, ...new Array(100).fill(7)]),
    ...writer.data(5, utf8.encode("out")),
    ...control(4, 0, []),
    ...control(6, 0, [0, 0, 0, 2]),
    ...writer.data(5, new Uint8Array(), true),
    ...control(3, 0, [0, 0, 0, 7, 0, 0, 0, 5]),
    ...control(9, 0, [0, 0, 0, 1, 0, 0, 1, 0]),
    ...control(7, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
  ]);
  for (const size of [1, 3, all.length]) {
    const parser = new SpdyParser();
    const seen: string[] = [];
    let out = "";
    for (let at = 0; at < all.length; at += size) {
      for (const event of parser.push(all.subarray(at, at + size))) {
        if (event.kind === "data") {
          assert.equal(event.stream, 5);
          out += text(event.bytes);
          if (event.fin) seen.push(`data ${out}`);
        } else if (event.kind === "ping") seen.push(`ping ${event.bytes.join(".")}`);
        else seen.push(event.kind === "goAway" ? "goAway" : `${event.kind} ${event.stream}`);
      }
    }
    assert.deepEqual(seen, ["reply 1", "ping 0.0.0.2", "data out", "reset 7", "goAway"], `pieces of ${size}`);
  }
});
