import assert from "@assert";
import { valueInEnvFile } from "./env_file.ts";

Deno.test("values stand in single quotes", () => {
  const cases: [string, string | undefined][] = [
    ["K='v'", "v"],
    ["\n  # c\n\tK='a b' # note\n", "a b"],
    ["A='1'\nK='two\nlines'\nB='3'", "two\nlines"],
    ["K='$(A) \\n \"'", '$(A) \\n "'],
    ["K='v'\r\nB='x'\r\n", "v"],
    ["K=''", undefined],
    ["K= 'v'", undefined],
    ["A= anything\nK='v'", "v"],
    ["A='v'", undefined],
    ["", undefined],
    ["K='v'\nnot checked", "v"],
    ["K='1'\nK='2'", "1"],
  ];
  for (const [text, want] of cases) assert.equal(valueInEnvFile(text, "K"), want, text);
});

Deno.test("other lines are refused with their number", () => {
  const cases: [string, RegExp][] = [
    ["A='1'\nK", /line 2: missing '='/],
    ["='v'", /line 1: empty variable name/],
    ["K ='v'", /line 1: whitespace before '='/],
    ["K=v", /line 1: value must be enclosed in single quotes/],
    ["K='v'x", /line 1: unexpected content after closing quote/],
    ["\nK='v\n\n", /line 2: unclosed single quote/],
  ];
  for (const [text, message] of cases) {
    assert.throws(() => valueInEnvFile(text, "K"), { name: "CreateContainerConfigError", message });
  }
});
