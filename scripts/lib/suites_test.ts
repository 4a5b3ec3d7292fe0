import assert from "@assert";
import { countJunit } from "./junit.ts";
import { judge, sum } from "./suites.ts";

const report = (cases: string) =>
  `<?xml version="1.0"?>\n<testsuites name="deno test">\n<testsuite>${cases}</testsuite>\n</testsuites>\n`;
const good = '<testcase name="a &gt; b" time="0.1">\n</testcase>';
const bad = '<testcase name="b"><failure message="Uncaught &lt;x&gt;">trace</failure></testcase>';
const skipped = '<testcase name="c"><skipped/></testcase>';

Deno.test("junit: counts what ran", () => {
  assert.deepEqual(countJunit(report(good + bad + skipped + '<testcase name="d"/>')), {
    passed: 2,
    failed: 1,
    failures: ["b\n  trace"],
  });
  assert.deepEqual(countJunit(report("")), { passed: 0, failed: 0, failures: [] });
  const long = `<testcase name="&lt;x&gt;"><failure message="m">${
    "&quot;line&quot;\n".repeat(99)
  }</failure></testcase>`;
  assert.deepEqual(countJunit(report(long)).failures, [`<x>${'\n  "line"'.repeat(12)}`]);
  const withLog = `<testcase name="y"><failure message="m">why\n\n  {"ts":1}\n${"z".repeat(500)}</failure></testcase>`;
  assert.deepEqual(countJunit(report(withLog)).failures, [`y\n  why\n  ${"z".repeat(240)}`]);
  assert.throws(() => countJunit(report(good).slice(0, -20)), /not complete/);
  assert.throws(() => countJunit(""), /not complete/);
});

Deno.test("suites: what a run of the tests amounts to", () => {
  const table: [what: string, code: number, text: string | undefined, passed: number, failed: number][] = [
    ["all good", 0, report(good + good), 2, 0],
    ["one failed", 1, report(good + bad), 1, 1],
    ["a file that could not be loaded", 1, report(good), 1, 1],
    ["a runner that crashed", 139, undefined, 0, 1],
    ["a report cut off", 137, report(good).slice(0, 30), 0, 1],
    ["nothing to run", 0, report(""), 0, 1],
    ["everything skipped", 0, report(skipped), 0, 1],
  ];
  for (const [what, code, text, passed, failed] of table) {
    const outcome = judge("suite", code, text);
    assert.deepEqual([outcome.passed, outcome.failed], [passed, failed], what);
    assert.equal(outcome.problems.length, failed > 0 ? 1 : 0, what);
  }
});

Deno.test("suites: sums", () => {
  const outcomes = [{ passed: 2, failed: 0, problems: [] }, { passed: 1, failed: 3, problems: ["x"] }];
  assert.deepEqual(sum(outcomes), { passed: 3, failed: 3, problems: ["x"] });
});
