import assert from "@assert";
import type { BoundPod } from "../../mod/kube/types.ts";
import { type Correlated, EventCorrelator } from "./correlator.ts";
import { eventName, newEvent, nodeReference, podReference } from "./event_object.ts";
import { Recent } from "./recent.ts";
import type { Occurrence } from "./types.ts";

const t0 = Date.UTC(2026, 10, 30, 12, 0, 0, 750);
const pod = { kind: "Pod", namespace: "ns", name: "web", uid: "u1", apiVersion: "v1" };
const what = (message: string, more: Partial<Occurrence> = {}): Occurrence => ({
  about: pod,
  type: "Normal",
  reason: "Pulled",
  message,
  ...more,
});
/** What is written of an occurrence; something must be. */
function written(correlator: EventCorrelator, occurrence: Occurrence, at: number): Correlated {
  const taken = correlator.take(occurrence, at);
  if (!taken) throw new Error(`nothing is written of ${occurrence.message}`);
  return taken;
}

Deno.test("an event: source, reporter, times of whole seconds, a name by object and time", () => {
  const event = newEvent(what("m", { annotations: { a: "1" } }), "n1", t0, 5);
  assert.deepEqual(event, {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: `web.${(BigInt(t0) * 1_000_000n + 5n).toString(16)}`,
      namespace: "ns",
      annotations: { a: "1" },
    },
    involvedObject: pod,
    reason: "Pulled",
    message: "m",
    source: { component: "kubelet", host: "n1" },
    firstTimestamp: "2026-11-30T12:00:00Z",
    lastTimestamp: "2026-11-30T12:00:00Z",
    count: 1,
    type: "Normal",
    reportingComponent: "kubelet",
    reportingInstance: "n1",
  });
  assert.equal(newEvent({ ...what("m"), about: nodeReference("n1") }, "n1", t0, 0).metadata.namespace, "default");
  assert.match(eventName("a".repeat(250), t0, 0), /^[0-9a-f]{32}$/);
});

Deno.test("what is told again is counted in the event that is there", () => {
  const correlator = new EventCorrelator("n1");
  const first = written(correlator, what("m"), t0);
  assert.equal(first.patch, undefined);
  const second = correlator.take(what("m"), t0 + 5000);
  assert.equal(second?.event.metadata.name, first.event.metadata.name);
  assert.deepEqual(second?.patch, { count: 2, lastTimestamp: "2026-11-30T12:00:05Z", message: "m" });
  assert.equal(second?.event.firstTimestamp, "2026-11-30T12:00:00Z");
  assert.equal(correlator.take(what("other"), t0 + 5000)?.patch, undefined);
  const part = { about: { ...pod, fieldPath: "spec.containers{c}" } };
  assert.equal(correlator.take(what("m", part), t0 + 5000)?.patch, undefined);
});

Deno.test("the API server's name and count are taken over", () => {
  const correlator = new EventCorrelator("n1");
  const first = written(correlator, what("m"), t0);
  correlator.written(first, { ...first.event, metadata: { name: "renamed", namespace: "ns" }, count: 7 });
  const second = correlator.take(what("m"), t0);
  assert.equal(second?.event.metadata.name, "renamed");
  assert.equal(second?.patch?.count, 8);
});

Deno.test("the tenth text of one reason within ten minutes begins a common event", () => {
  const correlator = new EventCorrelator("n1");
  const names: string[] = [];
  for (let i = 1; i <= 9; i++) {
    const taken = written(correlator, what(`m${i}`), t0 + i);
    assert.equal(taken.event.message, `m${i}`);
    names.push(taken.event.metadata.name);
  }
  const tenth = written(correlator, what("m10", { annotations: { a: "1" } }), t0 + 10);
  assert.equal(tenth.event.message, "(combined from similar events): m10");
  assert.equal(tenth.patch, undefined);
  assert.equal(tenth.event.metadata.annotations, undefined);
  assert(!names.includes(tenth.event.metadata.name));
  const eleventh = correlator.take(what("m11"), t0 + 11);
  assert.equal(eleventh?.event.metadata.name, tenth.event.metadata.name);
  assert.deepEqual(eleventh?.patch, {
    count: 2,
    lastTimestamp: "2026-11-30T12:00:00Z",
    message: "(combined from similar events): m11",
  });
  assert.equal(correlator.take(what("m12", { reason: "Other" }), t0 + 12)?.event.message, "m12");
  const later = correlator.take(what("m13"), t0 + 11 + 600_001);
  assert.equal(later?.event.message, "m13");
});

Deno.test("an object has 25 events of a type at once, then one each five minutes", () => {
  const correlator = new EventCorrelator("n1");
  const burst = (count: number, at: number, more: Partial<Occurrence> = {}) =>
    Array.from({ length: count }, () => correlator.take(what("m", more), at)).filter((taken) => taken).length;
  assert.equal(burst(40, t0), 25);
  assert.equal(burst(5, t0 + 299_000), 0);
  assert.equal(burst(5, t0 + 300_000), 1);
  assert.equal(burst(5, t0, { type: "Warning" }), 5);
  assert.equal(burst(5, t0, { about: { ...pod, uid: "u2" } }), 5);
});

Deno.test("a clock that goes back takes nothing away", () => {
  const correlator = new EventCorrelator("n1");
  correlator.take(what("m"), t0);
  for (let i = 0; i < 24; i++) assert(correlator.take(what("m"), t0 - 3_600_000));
});

Deno.test("references: a pod with its part, a node without UID", () => {
  const bound: BoundPod = {
    metadata: { name: "web", namespace: "ns", uid: "u1", resourceVersion: "7" },
    spec: { containers: [{ name: "c", image: "i" }] },
  };
  assert.deepEqual(podReference({ pod: bound, fieldPath: "spec.containers{c}" }), {
    ...pod,
    resourceVersion: "7",
    fieldPath: "spec.containers{c}",
  });
  assert.deepEqual(nodeReference("n1"), { apiVersion: "v1", kind: "Node", name: "n1" });
});

Deno.test("what was not used for longest is forgotten", () => {
  const recent = new Recent<number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  recent.get("a");
  recent.set("c", 3);
  assert.deepEqual(["a", "b", "c"].map((name) => recent.get(name)), [1, undefined, 3]);
  recent.set("__proto__", 4);
  assert.equal(recent.get("__proto__"), 4);
});
