import assert from "@assert";
import { lastContent, parseCriLine } from "./cri_log.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array) => new TextDecoder().decode(data);
const line = (content: string, tag = "F") => `2026-01-02T03:04:05.123456789Z stdout ${tag} ${content}\n`;

Deno.test("lines of the format, and what is none", () => {
  const cases: [string, [string, boolean, string] | undefined][] = [
    ["2026-01-02T03:04:05.1Z stdout F hello world\n", ["stdout", false, "hello world\n"]],
    ["2026-01-02T03:04:05.1+02:00 stderr P half\n", ["stderr", true, "half"]],
    ["2026-01-02T03:04:05.1Z stderr P:x:y half", ["stderr", true, "half"]],
    ["2026-01-02T03:04:05.1Z stdout F \n", ["stdout", false, "\n"]],
    ["2026-01-02T03:04:05.1Z stdout Q later\n", ["stdout", false, "later\n"]],
    ["2026-01-02T03:04:05.1Z stdout F\n", undefined],
    ["2026-01-02T03:04:05.1Z stdin F x\n", undefined],
    ["yesterday stdout F x\n", undefined],
    ["", undefined],
    [`${"x".repeat(300)} stdout F x`, undefined],
  ];
  for (const [given, want] of cases) {
    const got = parseCriLine(bytes(given));
    assert.deepEqual(got && [got.stream, got.partial, text(got.content)], want, given.slice(0, 50));
  }
});

Deno.test("the last content: lines and bytes are both limited", () => {
  const last = (given: string, maxLines = 80, maxBytes = 2048, cut = false) =>
    text(lastContent(bytes(given), { maxLines, maxBytes, cut }));
  assert.equal(last(""), "");
  assert.equal(last(line("a") + line("b", "P") + line("c")), "a\nbc\n");
  assert.equal(last(line("a") + line("b") + line("c"), 2), "b\nc\n");
  assert.equal(last(line("a") + "garbage\n" + line("c")), "a\nc\n");
  assert.equal(last(line("abc") + line("def"), 80, 5), "\ndef\n".slice(-5));
  assert.equal(last(line("no end").slice(0, -1)), "no end");
  assert.equal(last("tail of a cut line\n" + line("x"), 80, 2048, true), "x\n");
  assert.equal(last("y".repeat(5000) + "\n", 80, 2048, true), "y".repeat(2047) + "\n");
});
