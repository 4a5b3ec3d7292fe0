import assert from "@assert";
import { span } from "./words.ts";

const spans: [number, string][] = [[0, "0s"], [-5, "0s"], [5400, "5s"], [60_000, "1m"], [3_725_000, "1h2m"], [
  90_000_000,
  "1d1h",
]];
for (const [ms, text] of spans) Deno.test(`span ${ms}`, () => assert.equal(span(ms), text));
