import assert from "@assert";
import fc from "fast-check";
import { getPath, isObject, type Json, mergePatch, setPath } from "./json.ts";

// The examples of RFC 7386, appendix A.
const examples: [target: string, patch: string, result: string][] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', "{}"],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', "null", "null"],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ["[1,2]", '{"a":"b","c":null}', '{"a":"b"}'],
  ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];
for (const [target, patch, result] of examples) {
  Deno.test(`merge ${patch} into ${target}`, () => {
    assert.equal(JSON.stringify(mergePatch(JSON.parse(target), JSON.parse(patch))), result);
  });
}

Deno.test("a patch with __proto__ changes no prototype", () => {
  const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":1}}'));
  assert.equal(Object.getPrototypeOf(merged), Object.prototype);
  assert.equal(JSON.stringify(merged), '{"__proto__":{"polluted":1}}');
  const target = {};
  setPath(target, "__proto__.polluted", 1);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.equal(getPath(target, "constructor.name"), undefined);
});

Deno.test("property: merging twice is merging once, and neither argument changes", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (target, patch) => {
    const before = JSON.stringify([target, patch]);
    const once = mergePatch(target as Json, patch as Json);
    assert.equal(JSON.stringify([target, patch]), before);
    assert.deepEqual(mergePatch(once, patch as Json), once);
    if (isObject(patch)) assert(isObject(once));
  }));
});
