import assert from "@assert";
import { bodyLimit, headLimit, ReplyParser } from "./http_reply.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function parse(wire: string, step: number): { status: number; body: string } {
  const parser = new ReplyParser();
  const all = bytes(wire);
  let done = false;
  for (let at = 0; at < all.length && !done; at += step) done = parser.push(all.slice(at, at + step));
  if (!done) parser.end();
  const { status, body } = parser.reply();
  return { status, body: new TextDecoder().decode(body) };
}

Deno.test("replies in every framing, however they are cut", () => {
  const cases: [string, number, string][] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore", 200, "ok"],
    ["HTTP/1.0 503 Busy\r\n\r\nuntil the end", 503, "until the end"],
    ["HTTP/1.1 200\n\nlf only", 200, "lf only"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", 200, "abcde"],
    ["HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", 204, ""],
    [
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
      200,
      "",
    ],
    [`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(bodyLimit + 500)}`, 200, "x".repeat(bodyLimit)],
  ];
  for (const [wire, status, body] of cases) {
    for (const step of [1, 3, 7, 1 << 20]) assert.deepEqual(parse(wire, step), { status, body }, wire.slice(0, 60));
  }
});

Deno.test("what is no HTTP is refused at once and in bounded memory", () => {
  const cases: [string, RegExp][] = [
    ["", /^KubeletError: EOF/],
    ["SSH-2.0-x\r\n", /malformed HTTP response "SSH-2.0-x"/],
    ["HTTP/2 200\r\n\r\n", /malformed HTTP response "HTTP\/2 200"/],
    ["HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", /malformed MIME header line/],
    ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", /bad Content-Length "-1"/],
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", /unexpected EOF/],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", /invalid byte in chunk length/],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", /malformed chunked encoding/],
    [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1".repeat(3000)}`, /line too long/],
    [`HTTP/1.1 200 OK\r\nX: ${"y".repeat(headLimit)}`, /headers exceeded/],
    ["HTTP/1.1 100 Continue\r\n\r\n".repeat(5000), /headers exceeded/],
  ];
  for (const [wire, want] of cases) assert.throws(() => parse(wire, 4096), want, wire.slice(0, 60));
});
