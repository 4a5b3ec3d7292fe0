import assert from "@assert";
import fc from "fast-check";
import { strategicMerge } from "../../mod/kube/api/fake/strategic_merge.ts";
import type { Node } from "../../mod/kube/types.ts";
import { same } from "./compare.ts";
import { nodePatch } from "./patch.ts";

const word = fc.constantFrom("a", "b", "c", "__proto__", "constructor", "kubernetes.io/x");
const quantity = fc.constantFrom("0", "1", "2Gi", "500m");
const map = (value: fc.Arbitrary<string>) => fc.dictionary(word, value, { maxKeys: 4 });
const condition = fc.record({
  type: fc.constantFrom("Ready", "MemoryPressure", "NetworkUnavailable"),
  status: fc.constantFrom("True", "False"),
  reason: word,
  lastHeartbeatTime: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"),
});
const conditions = fc.uniqueArray(condition, { selector: ({ type }) => type });
const address = fc.record({ type: fc.constantFrom("InternalIP", "Hostname"), address: word });
const status = fc.record({
  capacity: map(quantity),
  allocatable: map(quantity),
  addresses: fc.array(address, { maxLength: 3 }),
  images: fc.array(fc.record({ names: fc.array(word, { maxLength: 2 }), sizeBytes: fc.nat(9) }), { maxLength: 3 }),
  volumesInUse: fc.array(word, { maxLength: 2 }),
  runtimeHandlers: fc.array(fc.record({ name: word }), { maxLength: 2 }),
  declaredFeatures: fc.array(word, { maxLength: 2 }),
  features: fc.record({ supplementalGroupsPolicy: fc.boolean() }),
}, { requiredKeys: [] });
const node = fc.record({
  metadata: fc.record({ labels: map(word), annotations: map(word) }, { requiredKeys: [] }),
  status,
});

Deno.test("a patch makes the second of two nodes of the first, as an API server merges it", () => {
  fc.assert(
    fc.property(node, node, conditions, fc.array(condition, { maxLength: 3 }), (first, second, old, changed) => {
      // The one list that the API server in memory merges where the real one takes the patch's as it is.
      const types = second.status.addresses?.map(({ type }) => type) ?? [];
      fc.pre((first.status.addresses ?? []).length > 0 || new Set(types).size === types.length);
      // Conditions are only changed or added, as the agent does it.
      const next = [...old];
      for (const one of changed) {
        const at = next.findIndex(({ type }) => type === one.type);
        if (at < 0) next.push(one);
        else next[at] = one;
      }
      const before = { ...first, status: { ...first.status, conditions: old } } as Node;
      const after = { ...second, status: { ...second.status, conditions: next } } as Node;
      const patch = nodePatch(before, after);
      const merged = patch
        ? strategicMerge("Node", structuredClone(before) as never, structuredClone(patch) as never)
        : before;
      assert(same(merged, after), `${JSON.stringify({ before, after, patch, merged }, undefined, 1)}`);
      assert.equal(nodePatch(after, after), undefined);
    }),
    { numRuns: 500 },
  );
});
