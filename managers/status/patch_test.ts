import assert from "@assert";
import fc from "fast-check";
import { strategicMerge } from "../../mod/kube/api/fake/strategic_merge.ts";
import type { PodStatus } from "../../mod/kube/types.ts";
import { statusPatch } from "./patch.ts";

const apply = (before: PodStatus, patch: ReturnType<typeof statusPatch>) =>
  strategicMerge("PodStatus", { ...before }, { ...patch?.status });

const text = fc.constantFrom("", "a", "b", "__proto__");
const condition = fc.record({
  type: fc.constantFrom("Ready", "Initialized", "PodScheduled", "example.com/gate", "DisruptionTarget"),
  status: fc.constantFrom("True", "False"),
  reason: text,
  message: text,
}, { requiredKeys: ["type", "status"] });
const container = fc.record({
  name: fc.constantFrom("a", "b"),
  ready: fc.boolean(),
  restartCount: fc.nat(3),
  image: text,
  imageID: text,
  state: fc.constantFrom({}, { running: {} }, { waiting: { reason: "X" } }),
});
const ips = fc.uniqueArray(fc.record({ ip: fc.constantFrom("10.0.0.1", "10.0.0.2", "fd00::1") }), {
  selector: (item) => item.ip,
});
const status: fc.Arbitrary<PodStatus> = fc.record({
  phase: fc.constantFrom("Pending", "Running", "Failed"),
  reason: text,
  observedGeneration: fc.nat(3),
  conditions: fc.uniqueArray(condition, { selector: (c) => c.type }),
  podIPs: ips,
  containerStatuses: fc.array(container, { maxLength: 2 }),
  resources: fc.record({
    requests: fc.dictionary(fc.constantFrom("cpu", "memory"), fc.constantFrom("1", "2")),
    limits: fc.dictionary(fc.constantFrom("cpu", "memory"), fc.constantFrom("1", "2")),
  }, { requiredKeys: [] }),
}, { requiredKeys: [] });

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

Deno.test("a patch turns the one status into the other, and there is none when they are the same", () => {
  fc.assert(fc.property(status, status, (before, next) => {
    const patch = statusPatch("u", before, next);
    assert.deepEqual(withoutEmpty(plain(apply(before, patch))), withoutEmpty(plain(next)));
    assert.equal(statusPatch("u", next, next), undefined);
  }));
});

/** An empty list or map says as much as none. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, withoutEmpty(one)] as const)
      .filter(([, one]) => typeof one !== "object" || one === null || Object.keys(one).length > 0),
  );
}

Deno.test("only what differs is sent, lists of ours whole, with the UID it is meant for", () => {
  const before: PodStatus = {
    phase: "Pending",
    qosClass: "BestEffort",
    conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
  };
  const next: PodStatus = {
    phase: "Running",
    qosClass: "BestEffort",
    conditions: [
      { type: "Ready", status: "True" },
      { type: "PodScheduled", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1 },
    ],
  };
  const old: PodStatus = {
    ...before,
    conditions: [...before.conditions ?? [], { type: "x", status: "True", reason: "y" }],
  };
  assert.deepEqual(
    statusPatch("u1", old, { ...before, conditions: [{ type: "x", status: "True" }] })?.status.conditions,
    [
      { reason: null, type: "x", status: "True" },
      { $patch: "delete", type: "PodScheduled" },
    ],
  );
  assert.deepEqual(statusPatch("u1", before, next), {
    metadata: { uid: "u1" },
    status: {
      phase: "Running",
      "$setElementOrder/conditions": [{ type: "Ready" }, { type: "PodScheduled" }],
      conditions: next.conditions,
    },
  });
});

Deno.test("a time that the server shows as null is none", () => {
  const shown = JSON.parse('{"conditions":[{"type":"Ready","status":"True","lastProbeTime":null}]}') as PodStatus;
  assert.equal(statusPatch("u", shown, { conditions: [{ type: "Ready", status: "True" }] }), undefined);
});

Deno.test("a quantity is what it is worth, whatever its text; other texts are as they are written", () => {
  const of = (cpu: string, message: string): PodStatus => ({
    message,
    allocatedResources: { cpu },
    resources: { limits: { cpu } },
    containerStatuses: [{
      name: "c",
      image: "i",
      imageID: "",
      ready: true,
      restartCount: 0,
      allocatedResources: { cpu },
      resources: { requests: { cpu } },
    }],
  });
  assert.equal(statusPatch("u", of("500m", "1"), of("0.5", "1")), undefined);
  assert.deepEqual(statusPatch("u", of("500m", "1"), of("0.5", "1.0"))?.status, { message: "1.0" });
  assert.equal(Object.keys(statusPatch("u", of("500m", "1"), of("0.6", "1"))?.status ?? {}).length, 3);
  assert.equal(Object.keys(statusPatch("u", of("500m", "1"), of("much", "1"))?.status ?? {}).length, 3);
});
