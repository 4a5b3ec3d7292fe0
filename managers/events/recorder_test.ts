import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { allSinks, EventRecorder } from "./recorder.ts";

const pod: BoundPod = {
  metadata: { name: "web", namespace: "ns", uid: "u1" },
  spec: { containers: [{ name: "c", image: "i" }] },
};

function world() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  api.create(resources.namespaces, { metadata: { name: "ns" } });
  api.create(resources.namespaces, { metadata: { name: "default" } });
  const log = new RecordingLogger();
  const client = api.client("events", { node: "n1" });
  const recorder = new EventRecorder({ client, nodeName: "n1", clock, random: () => 0.5, log });
  const scope = new Scope("test");
  scope.spawn("events", (signal) => recorder.run(signal));
  const events = () => api.list(resources.events);
  const settle = async () => {
    for (let i = 0; i < 30; i++) await turn();
  };
  return { clock, api, log, recorder, scope, events, settle, [Symbol.asyncDispose]: () => scope.close() };
}

Deno.test("events of pods and of the node are written in their order, repeated ones counted", async () => {
  await using w = world();
  w.recorder.pod({ pod, type: "Normal", reason: "Pulled", message: "m", fieldPath: "spec.containers{c}" });
  w.recorder.node({ type: "Normal", reason: "Starting", message: "Starting kubelet." });
  w.recorder.pod({ pod, type: "Normal", reason: "Pulled", message: "m", fieldPath: "spec.containers{c}" });
  await w.settle();
  const ofPod = w.events().find(({ involvedObject }) => involvedObject.kind === "Pod");
  const ofNode = w.events().find(({ involvedObject }) => involvedObject.kind === "Node");
  assert.equal(w.events().length, 2);
  assert.equal(ofPod?.count, 2);
  assert.equal(ofPod?.involvedObject.fieldPath, "spec.containers{c}");
  assert.equal(ofPod?.metadata.namespace, "ns");
  assert.deepEqual(ofPod?.source, { component: "kubelet", host: "n1" });
  assert.equal(ofNode?.metadata.namespace, "default");
  assert.deepEqual(ofNode?.involvedObject, { apiVersion: "v1", kind: "Node", name: "n1" });
  assert.deepEqual(w.api.calls.map(({ verb }) => verb), ["create", "create", "patch"]);
});

Deno.test("an event that is gone at the server is made anew with its count", async () => {
  await using w = world();
  const tell = () => w.recorder.pod({ pod, type: "Normal", reason: "Pulled", message: "m" });
  tell();
  await w.settle();
  const [event] = w.events();
  w.api.remove(resources.events, { namespace: "ns", name: event?.metadata.name ?? "" });
  tell();
  await w.settle();
  assert.equal(w.events()[0]?.count, 2);
});

Deno.test("while the server is away events wait and the oldest is dropped; then they come, and the loss is told", async () => {
  await using w = world();
  w.api.reach = "refused";
  for (let i = 0; i < 1003; i++) {
    w.recorder.pod({
      pod: { ...pod, metadata: { ...pod.metadata, uid: `u${i}` } },
      type: "Normal",
      reason: "Pulled",
      message: `m${i}`,
    });
  }
  await w.settle();
  assert(w.recorder.waiting <= 1000);
  w.api.reach = "up";
  await w.clock.advance(20_000);
  while (w.recorder.waiting > 0) await w.settle();
  await w.settle();
  assert(w.events().some(({ message }) => message === "m1002"));
  assert(w.log.lines.some(({ message, fields }) => message.includes("dropped") && Number(fields.dropped) >= 2));
});

Deno.test("a server in trouble is asked again, twelve times at most", async () => {
  await using w = world();
  const error = new ApiError("etcd is away", { status: 500, reason: "InternalError" });
  w.api.faults.add({ kind: "status", error }, {}, 2);
  w.recorder.node({ type: "Normal", reason: "A", message: "a" });
  await w.settle();
  assert.equal(w.events().length, 0);
  await w.clock.advance(5000 + 10_000);
  await w.settle();
  assert.equal(w.events().length, 1);
  w.api.faults.add({ kind: "unreachable" });
  w.recorder.node({ type: "Normal", reason: "B", message: "b" });
  await w.clock.advance(200_000);
  assert.equal(w.api.calls.filter(({ at }) => at > 0).length, 3 + 12);
  assert(w.log.lines.some(({ message }) => message === "an event could not be written and is dropped"));
});

Deno.test("what the server refuses is dropped at once, and told unless its namespace is ending", async () => {
  await using w = world();
  const refuse = (status: number, reason: string, message: string) =>
    w.api.faults.add({ kind: "status", error: new ApiError(message, { status, reason }) }, {}, 1);
  refuse(422, "Invalid", "bad event");
  w.recorder.node({ type: "Normal", reason: "A", message: "a" });
  await w.settle();
  refuse(403, "Forbidden", "unable to create new content in namespace ns because it is being terminated");
  w.recorder.node({ type: "Normal", reason: "B", message: "b" });
  await w.settle();
  assert.equal(w.api.calls.length, 2);
  assert.deepEqual(
    w.log.lines.map(({ level, fields }) => [level, fields.reason]),
    [["error", "A"], ["detail4", "B"]],
  );
});

Deno.test("several sinks all hear", () => {
  const a = new RecordingEvents(), b = new RecordingEvents();
  const both = allSinks(a, b);
  both.node({ type: "Normal", reason: "A", message: "a" });
  both.pod({ pod, type: "Normal", reason: "B", message: "b" });
  assert.deepEqual([a.nodeEvents.length, b.nodeEvents.length, a.events.length, b.events.length], [1, 1, 1, 1]);
});
