import assert from "@assert";
import fc from "fast-check";
import { canonicalDump } from "./canonical_dump.ts";
import { sameValue } from "./equal.ts";

Deno.test("a dump is one text for one meaning", () => {
  const dump = (value: unknown) => canonicalDump("Pod", value);
  assert.equal(
    dump({ spec: { containers: [{ name: "c", image: "i", ports: [{ containerPort: 80 }] }], hostNetwork: true } }),
    '[["spec",[["containers",[[["image","i"],["name","c"],["ports",[[["containerPort",80]]]]]]],["hostNetwork",true]]]]',
  );
  // What Go always has is not told when it is zero; a pointer's zero is.
  assert.equal(dump({ spec: { containers: [{ name: "" }] } }), '[["spec",[["containers",[[]]]]]]');
  assert.notEqual(dump({ spec: { hostUsers: false } }), dump({ spec: {} }));
  assert.notEqual(
    dump({ spec: { volumes: [{ name: "v", emptyDir: {} }] } }),
    dump({ spec: { volumes: [{ name: "v" }] } }),
  );
  assert.equal(
    dump({ metadata: { labels: { "10": "a", "9": "b" } } }),
    '[["metadata",[["labels",[["10","a"],["9","b"]]]]]]',
  );
  assert.equal(dump({ metadata: { labels: {}, finalizers: [] }, unknown: 1 }), '[["metadata",[]]]');
});

Deno.test("the order of keys never counts, in dumps and in comparisons", () => {
  const labels = fc.dictionary(fc.string(), fc.string());
  fc.assert(fc.property(labels, (labels) => {
    const turned = Object.fromEntries(Object.entries(labels).reverse());
    assert.equal(canonicalDump("ObjectMeta", { labels }), canonicalDump("ObjectMeta", { labels: turned }));
    assert.ok(sameValue({ labels }, { labels: turned }));
  }));
});

Deno.test("values are the same when they mean the same", () => {
  const cases: [unknown, unknown, boolean][] = [
    [{ a: 1, b: undefined }, { a: 1 }, true],
    [{ a: undefined }, { b: undefined }, true],
    [{ a: 1 }, { a: 1, b: null }, false],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [null, {}, false],
    [NaN, NaN, true],
    [{ toString: 1 }, {}, false],
    [{ a: { b: [1] } }, { a: { b: [1] } }, true],
  ];
  for (const [a, b, want] of cases) {
    assert.equal(sameValue(a, b), want);
    assert.equal(sameValue(b, a), want);
  }
});
