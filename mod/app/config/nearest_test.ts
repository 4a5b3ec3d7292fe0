import assert from "@assert";
import { didYouMean, listOr, nearest } from "./nearest.ts";

const known = ["max-pods", "max-open-files", "port", "pod-cidr", "healthz-port", "config", "config-dir"];
const cases: [word: string, best: string | undefined][] = [
  ["maxpods", "max-pods"],
  ["max-pdos", "max-pods"],
  ["MAX-PODS", "max-pods"],
  ["prot", "port"],
  ["confg", "config"],
  ["zzzzzzzz", undefined],
  ["", undefined],
];
for (const [word, best] of cases) {
  Deno.test(`nearest to ${JSON.stringify(word)}`, () => assert.equal(nearest(word, known)[0], best));
}

Deno.test("hints end after many mistakes, and huge words cost little", () => {
  assert.equal(didYouMean("maxpods", known, { prefix: "--" }), "; did you mean --max-pods?");
  assert.equal(didYouMean("maxpods", known, { before: 20 }), "");
  assert.equal(didYouMean("x".repeat(1e6), known), "");
});

Deno.test("lists in words", () => {
  assert.equal(listOr([]), "");
  assert.equal(listOr(["a"]), "a");
  assert.equal(listOr(["a", "b", "c"]), "a, b or c");
});
