import assert from "@assert";
import { table } from "./table.ts";

Deno.test("table: columns are aligned, the last one has no blanks behind it", () => {
  assert.equal(
    table(["NAME", "AGE"], [["web", "1s"], ["a-longer-one", "12m"]]),
    [
      "NAME          AGE",
      "web           1s",
      "a-longer-one  12m",
    ].join("\n"),
  );
});

Deno.test("table: a cell cannot move the cursor or break the line, and lines are cut to the width", () => {
  assert.equal(table(["A"], [["x\x1b[2Jy\nz"]]), "A\nx [2Jy z");
  assert.equal(table(["NAME"], [["abcdef"]], 4), "NAME\nabcd");
  assert.equal(table(["NAME"], [["äöü𝄞ß"]], 4), "NAME\näöü𝄞");
});
