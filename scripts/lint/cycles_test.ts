import assert from "@assert";
import { cyclesOf, importGraph, importsOf } from "./cycles.ts";

Deno.test("cycles: finds statements of every form and nothing else", () => {
  const source = `import { a } from "./a.ts";
import type { T } from "./t.ts";
import {
  b,
  c,
} from "./b.ts";
import "./side.ts";
export * from "./all.ts";
export type { U } from "./u.ts";
export const x = "./no.ts";
export function from(): string { return "./no2.ts"; }
// import { z } from "./comment.ts";
`;
  assert.deepEqual(importsOf(source), [
    { specifier: "./a.ts", typeOnly: false },
    { specifier: "./t.ts", typeOnly: true },
    { specifier: "./b.ts", typeOnly: false },
    { specifier: "./side.ts", typeOnly: false },
    { specifier: "./all.ts", typeOnly: false },
    { specifier: "./u.ts", typeOnly: true },
  ]);
});

Deno.test("cycles: a circle is found, a diamond and type-only circles are not", () => {
  const files = new Map([
    ["mod/a.ts", 'import "./b.ts";\nimport "./c.ts";\n'],
    ["mod/b.ts", 'import "./d.ts";\n'],
    ["mod/c.ts", 'import "./d.ts";\n'],
    ["mod/d.ts", 'import type { A } from "./a.ts";\nimport "npm:x";\nimport "./missing.ts";\n'],
  ]);
  assert.deepEqual(cyclesOf(importGraph(files)), []);
  files.set("mod/d.ts", 'import { a } from "./a.ts";\n');
  const [cycle, ...more] = cyclesOf(importGraph(files));
  assert.deepEqual(cycle, ["mod/a.ts", "mod/b.ts", "mod/d.ts", "mod/a.ts"]);
  assert.deepEqual(more, []);
  assert.deepEqual(cyclesOf(new Map([["self", ["self"]]])), [["self", "self"]]);
});
