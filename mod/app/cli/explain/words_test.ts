import assert from "@assert";
import { line, span } from "./words.ts";

const spans: [number, string][] = [[0, "0s"], [-5, "0s"], [5400, "5s"], [60_000, "1m"], [3_725_000, "1h2m"], [
  90_000_000,
  "1d1h",
]];
for (const [ms, text] of spans) Deno.test(`span ${ms}`, () => assert.equal(span(ms), text));

Deno.test("a long text is cut in its middle, and stands on one line", () => {
  const text = line(`RunPodSandbox\n${"x".repeat(1000)}: cannot allocate memory`, 60);
  assert.match(text, /^RunPodSandbox x+…x+: cannot allocate memory$/);
  assert.equal(text.length, 61);
  assert.equal(line(" a\u001b[31mb\n"), "a [31mb");
});
