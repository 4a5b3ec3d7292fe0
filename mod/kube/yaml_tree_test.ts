import assert from "@assert";
import { KubeletError } from "../base/errors.ts";
import { refusal } from "./testing.ts";
import { parseDocuments, parseText, resolvePlain, type Tree } from "./yaml_tree.ts";

const options = { what: "x.yaml" };
const tree = (text: string) => parseText(text, options).tree;

Deno.test("plain words mean what they mean to the API machinery", () => {
  const cases: [string, Tree][] = [
    ["", null],
    ["~", null],
    ["yes", true],
    ["Off", false],
    ["nope", "nope"],
    ["0644", 420],
    ["0o644", 420],
    ["0x1F", 31],
    ["0b101", 5],
    ["-7", -7],
    ["1_000", 1000],
    ["1.5", 1.5],
    ["1e3", 1000],
    [".5", 0.5],
    ["1:30", "1:30"],
    ["22:22:22", "22:22:22"],
    ["2026-01-01", "2026-01-01"],
    ["089", 89],
    ["1.2.3", "1.2.3"],
    ["64Mi", "64Mi"],
    [".inf", Infinity],
    ["-.inf", -Infinity],
    ["9223372036854775807", 9223372036854775807n],
    ["__proto__", "__proto__"],
  ];
  for (const [text, want] of cases) assert.deepEqual(resolvePlain(text), want, text);
  assert.ok(Number.isNaN(resolvePlain(".nan")));
});

Deno.test("quotes and tags make text; anchors, merges and doubled keys work", () => {
  assert.deepEqual(
    tree(`
a: "yes"
b: !!str 5
c: &c {x: 1, y: 2}
d: {<<: *c, y: 3}
e: {y: 4, <<: [*c]}
f: |
  line
g: !!binary aGk=
h: *c
`),
    new Map<string, Tree>([
      ["a", "yes"],
      ["b", "5"],
      ["c", new Map([["x", 1], ["y", 2]])],
      ["d", new Map([["x", 1], ["y", 3]])],
      ["e", new Map([["x", 1], ["y", 4]])],
      ["f", "line\n"],
      ["g", "hi"],
      ["h", new Map([["x", 1], ["y", 2]])],
    ]),
  );
  const { tree: doubled, warnings } = parseText("a: 1\na: 2\n", options);
  assert.deepEqual(doubled, new Map([["a", 2]]));
  assert.deepEqual(warnings, ['key "a" is given twice (line 2): the last one counts']);
});

Deno.test("JSON gives the same tree as YAML", () => {
  const json = '{"a": [1, "x", null, {"b": true}], "__proto__": {"c": 1.5}}';
  assert.deepEqual(tree(json), tree(`# as YAML\n${json}`));
});

Deno.test("only the first document counts, empty ones are passed over", () => {
  const { tree: first, warnings } = parseText("---\n# note\n---\na: 1\n---\nb: 2\n", options);
  assert.deepEqual(first, new Map([["a", 1]]));
  assert.deepEqual(warnings, ["1 more document ignored: only the first one is read"]);
  const documents = parseDocuments("a: 1\n---\n{\n---\nb: 2\n", options);
  assert.ok(documents.some((d) => d instanceof KubeletError));
});

Deno.test("hostile texts end in one clear error", () => {
  const laugh = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" +
    "bcdefgh".split("").map((name, i) => `${name}: &${name} [${Array(10).fill(`*${"abcdefg"[i]}`).join(",")}]`).join(
      "\n",
    );
  const cases: [string | Uint8Array, RegExp][] = [
    ["", /^x\.yaml: is empty/],
    ["# nothing\n", /is empty/],
    [new Uint8Array([0xc3, 0x28]), /not UTF-8/],
    ["a\0b", /NUL/],
    ["a: [1", /not valid YAML/],
    ["\ta: 1\n b", /not valid YAML|YAML/],
    [laugh, /more than 500000 values/],
    ["a: &a {b: *a}", /contains itself/],
    ["a: *nowhere", /nowhere/],
    ["[".repeat(1e6), /nested/],
    ["{a: ".repeat(1e5), /nested/],
    ["- ".repeat(1e5), /nested/],
    [`${"[".repeat(150)}${"]".repeat(150)}`, /nested more than 100/],
    [`${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`, /nested more than 100/],
    [`[${"1,".repeat(600_000)}1]`, /more than 500000/],
    ["a: b\n".repeat(300_000), /more than 500000/],
    ["- 'a'\n- \"b\"\n".repeat(300_000), /more than 500000/],
    ["{a: 1}: 2", /key/],
    ["<<: 5", /merges/],
  ];
  for (const [text, want] of cases) assert.match(refusal(() => parseText(text, options)), want);
  assert.match(refusal(() => parseText("aaaa", { ...options, limits: { bytes: 4 } })), /4 bytes long/);
});

Deno.test("a long text of few values is read: one of many lines is one value", () => {
  const read = tree(`a: |\n${"  x: y\n".repeat(300_000)}b: 1\n`);
  if (!(read instanceof Map)) throw new Error("no map");
  assert.equal(String(read.get("a")).length, 5 * 300_000);
  assert.equal(read.get("b"), 1);
});
