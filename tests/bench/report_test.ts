import assert from "@assert";
import { figureJson, figureTable, median, ratio, within } from "./report.ts";

Deno.test("report: the median", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
});

Deno.test("report: a figure is judged by its median; one that was not measured is over its limit", () => {
  const table: [values: number[], limit: number | undefined, ok: boolean][] = [
    [[1, 1.1, 9], 1.2, true],
    [[1.3, 1.3, 1], 1.2, false],
    [[1.2], 1.2, true],
    [[], 1.2, false],
    [[5], undefined, true],
  ];
  for (const [values, limit, ok] of table) {
    const figure = { name: "x", unit: "ratio" as const, values, ...(limit === undefined ? {} : { limit }) };
    assert.equal(within(figure), ok, JSON.stringify(values));
    assert.equal(figureJson([figure])[0]?.["ok"], ok);
    assert.equal(/\bover\b/.test(figureTable([figure])), !ok);
  }
});

Deno.test("report: a ratio is against the floor's median", () => {
  assert.deepEqual(ratio("start", [120, 240], [90, 100, 500], 1.2).values, [1.2, 2.4]);
});
