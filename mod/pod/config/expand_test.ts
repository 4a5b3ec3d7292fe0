import assert from "@assert";
import { expand, lookupIn } from "./expand.ts";

Deno.test("references are replaced once, the rest stays", () => {
  const lookup = lookupIn(
    new Map([["A", "a"], ["EMPTY", ""], ["REF", "$(A)"], ["", "nameless"]]),
    new Map([["A", "shadowed"], ["B", "b"]]),
  );
  const cases: [string, string][] = [
    ["", ""],
    ["plain", "plain"],
    ["$(A)", "a"],
    ["$(B)$(A)x", "bax"],
    ["x-$(EMPTY)-y", "x--y"],
    ["$(REF)", "$(A)"],
    ["$(NONE)", "$(NONE)"],
    ["$()", "nameless"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$a"],
    ["$$$$(A)", "$$(A)"],
    ["$$$$$(A)", "$$a"],
    ["$$", "$"],
    ["$", "$"],
    ["a$", "a$"],
    ["$A", "$A"],
    ["$(A", "$(A"],
    ["$(A$(B)", "$(A$(B)"],
    ["$(A) $(", "a $("],
    ["$$(A) $(A", "$(A) $(A"],
    ["\n$\n$(A)", "\n$\na"],
    ["$é$(A)", "$éa"],
    ["$(A)$(__proto__)$(constructor)", "a$(__proto__)$(constructor)"],
  ];
  for (const [text, want] of cases) assert.equal(expand(text, lookup), want, text);
});

Deno.test("an escape after a reference that isn't closed still counts", () => {
  assert.equal(expand("$(A $$", () => "x"), "$(A $");
});

Deno.test("a text of many open references takes no time", () => {
  const text = "$(".repeat(100_000);
  assert.equal(expand(text, () => "x"), text);
});
