import assert from "@assert";
import { featureList } from "./feature_list.ts";
import { render, type Row, rowProblems, rowsOf, testsOf } from "./features.ts";

const features = [{ id: "A1", name: "Config | file", tier: "P0" }, { id: "A2", name: "Flags", tier: "P1" }] as const;
const good: Row[] = [
  { id: "A1", name: "Config | file", tier: "P0", state: "works", shown: '`mod/a_test.ts` "reads it"' },
  { id: "A2", name: "Flags", tier: "P1", state: "not yet", shown: "" },
];
const read = (path: string) =>
  Promise.resolve(path === "mod/a_test.ts" ? 'Deno.test("reads it", () => {});' : undefined);

Deno.test("features: good rows have no problem", async () => {
  assert.deepEqual(await rowProblems(good, features, read), []);
});

Deno.test("features: each fault is found", async () => {
  const [a1, a2] = good as [Row, Row];
  const table: [what: string, rows: Row[], problem: RegExp][] = [
    ["missing id", [a1], /A2 is missing/],
    ["unknown id", [...good, { ...a2, id: "Z9" }], /Z9: no such feature/],
    ["twice", [...good, a2], /A2: listed twice/],
    ["wrong tier", [a1, { ...a2, tier: "P3" }], /A2: must read "Flags", P1/],
    ["unknown state", [a1, { ...a2, state: "mostly" }], /A2: state "mostly"/],
    ["works without a test", [a1, { ...a2, state: "works" }], /A2: works, but names no test/],
    ["partly without a test", [a1, { ...a2, state: "partly" }], /A2: partly, but names no test/],
    ["no such file", [{ ...a1, shown: '`mod/b_test.ts` "reads it"' }, a2], /A1: there is no mod\/b_test.ts/],
    ["no such test", [{ ...a1, shown: '`mod/a_test.ts` "reads on"' }, a2], /A1: mod\/a_test.ts has no test "reads on"/],
    ["loose text", [{ ...a1, shown: "see the tests" }, a2], /A1: tests must be written/],
  ];
  for (const [what, rows, problem] of table) {
    const problems = await rowProblems(rows, features, read);
    assert.equal(problems.length, 1, `${what}: ${problems.join("; ")}`);
    assert.match(problems[0] ?? "", problem, what);
  }
});

Deno.test("features: the tests of a row", () => {
  assert.deepEqual(testsOf('`a_test.ts` "one"; `b_test.ts` "two; three"'), [
    { file: "a_test.ts", test: "one" },
    { file: "b_test.ts", test: "two; three" },
  ]);
  assert.deepEqual(testsOf(""), []);
  assert.equal(testsOf('`a_test.ts` "one" and more'), undefined);
});

Deno.test("features: writing the page keeps what rows say", () => {
  const first = featureList[0]?.features[0] ?? { id: "", name: "", tier: "P0" };
  const row = { ...first, state: "works", shown: '`a_test.ts` "with | bar"' };
  const again = rowsOf(render(rowsOf(render([row]))));
  assert.deepEqual(again.find((one) => one.id === first.id), row);
  const ids = featureList.flatMap((one) => one.features.map((feature) => feature.id));
  assert.deepEqual(again.map((one) => one.id), ids);
  assert.equal(new Set(ids).size, ids.length);
});
