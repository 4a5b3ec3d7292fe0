import assert from "@assert";
import { bytesOf, LineBytes } from "./line_bytes.ts";

const texts = ["", "a", "ä", "x".repeat(23) + "ä", "plain ä then 😀", "y".repeat(1000), "long " + "😀".repeat(100)];

Deno.test("pieces of any text and length come out as they went in", () => {
  const out = new LineBytes();
  for (const text of texts) {
    out.text(text);
    out.bytes(bytesOf(text));
  }
  assert.equal(new TextDecoder().decode(out.done()), texts.map((text) => text + text).join(""));
});

Deno.test("more than the first room is taken on", () => {
  const out = new LineBytes();
  const line = "0123456789".repeat(10);
  for (let n = 0; n < 10_000; n++) out.text(n % 2 ? line : "12\n");
  assert.equal(out.length, 5000 * (line.length + 3));
  assert.equal(new TextDecoder().decode(out.done().subarray(-103)), `12\n${line}`);
});
