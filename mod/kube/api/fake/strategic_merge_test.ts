import assert from "@assert";
import type { JsonObject } from "./json.ts";
import { PatchError, strategicMerge } from "./strategic_merge.ts";

const c = (name: string, image: string) => ({ name, image });
const condition = (type: string, status: string) => ({ type, status });

const cases: [name: string, type: string, original: JsonObject, patch: JsonObject, want: JsonObject][] = [
  [
    "members of a list are told apart by the list's key",
    "Pod",
    { spec: { containers: [c("a", "1"), c("b", "1")] } },
    { spec: { containers: [{ name: "b", image: "2" }, { name: "c", image: "3" }] } },
    { spec: { containers: [c("a", "1"), c("b", "2"), c("c", "3")] } },
  ],
  [
    "conditions by type; null removes a field",
    "Pod",
    { status: { phase: "Pending", reason: "x", conditions: [condition("Ready", "False"), condition("Own", "True")] } },
    { status: { phase: "Running", reason: null, conditions: [condition("Ready", "True")] } },
    { status: { phase: "Running", conditions: [condition("Ready", "True"), condition("Own", "True")] } },
  ],
  [
    "container statuses are replaced whole",
    "Pod",
    { status: { containerStatuses: [{ name: "a", ready: true }, { name: "b" }] } },
    { status: { containerStatuses: [{ name: "b", ready: false }] } },
    { status: { containerStatuses: [{ name: "b", ready: false }] } },
  ],
  [
    "a member is deleted by its key",
    "Node",
    { status: { addresses: [{ type: "InternalIP", address: "1" }, { type: "Hostname", address: "n" }] } },
    { status: { addresses: [{ $patch: "delete", type: "InternalIP" }] } },
    { status: { addresses: [{ type: "Hostname", address: "n" }] } },
  ],
  [
    "an order puts the members that it names in line, the server's own keep their place",
    "Pod",
    { status: { conditions: [condition("X", "1"), condition("A", "1"), condition("B", "1")] } },
    {
      status: {
        "$setElementOrder/conditions": [{ type: "B" }, { type: "A" }],
        conditions: [{ type: "A", status: "2" }],
      },
    },
    { status: { conditions: [condition("X", "1"), condition("B", "1"), condition("A", "2")] } },
  ],
  [
    "an order alone moves members",
    "Pod",
    { spec: { containers: [c("a", "1"), c("b", "1")] } },
    { spec: { "$setElementOrder/containers": [{ name: "b" }, { name: "a" }] } },
    { spec: { containers: [c("b", "1"), c("a", "1")] } },
  ],
  [
    "retained keys drop the others: a volume changes its source",
    "Pod",
    { spec: { volumes: [{ name: "v", emptyDir: {} }] } },
    { spec: { volumes: [{ $retainKeys: ["name", "hostPath"], name: "v", hostPath: { path: "/x" } }] } },
    { spec: { volumes: [{ name: "v", hostPath: { path: "/x" } }] } },
  ],
  [
    "plain values of a merged list are added once, and dropped by name",
    "Pod",
    { metadata: { finalizers: ["a", "b"] } },
    { metadata: { finalizers: ["c", "b"], "$deleteFromPrimitiveList/finalizers": ["a"] } },
    { metadata: { finalizers: ["b", "c"] } },
  ],
  [
    "taints are one value",
    "Node",
    { spec: { taints: [{ key: "a", effect: "NoExecute" }] } },
    { spec: { taints: [{ key: "b", effect: "NoSchedule" }] } },
    { spec: { taints: [{ key: "b", effect: "NoSchedule" }] } },
  ],
  [
    "maps are merged, prototype names are plain keys",
    "Node",
    { metadata: { labels: { a: "1" } } },
    { metadata: { labels: { a: null, toString: "2" } } },
    { metadata: { labels: { toString: "2" } } },
  ],
  ["a whole object is replaced on demand", "Pod", { a: 1, b: { c: 1 } }, { b: { $patch: "replace", d: 2 } }, {
    a: 1,
    b: { d: 2 },
  }],
];
for (const [name, type, original, patch, want] of cases) {
  Deno.test(`strategic merge: ${name}`, () => {
    const before = JSON.stringify(original);
    assert.deepEqual(strategicMerge(type, original, patch), want);
    assert.equal(JSON.stringify(original), before, "the original is not changed");
  });
}

Deno.test("strategic merge: a member without its key is refused", () => {
  assert.throws(() => strategicMerge("Pod", { spec: {} }, { spec: { containers: [{ image: "x" }] } }), PatchError);
});
