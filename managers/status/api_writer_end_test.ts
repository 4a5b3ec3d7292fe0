import assert from "@assert";
import { turn } from "../../mod/base/fake_clock.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { running, setUp } from "./api_writer_testing.ts";

Deno.test("a pod that is gone, or is another one of its name, is left alone", async () => {
  const { clock, api, scope, writer, statuses, make, writes, got, t } = setUp();
  const gone = make("gone"), other = make("other");
  statuses.set(gone, running());
  statuses.set(other, running());
  await turn();
  t.deaf = true;
  for (const name of ["gone", "other"]) api.remove(resources.pods, { name, namespace: "default" });
  const successor = make("other");
  statuses.set(gone, running("again"));
  statuses.set(other, running("again"));
  await clock.advance(60_000);
  assert.deepEqual(writes().slice(2), ["patch gone/status", "patch other/status"]);
  assert.deepEqual([got("other")?.status?.phase, got("other")?.metadata?.uid], ["Pending", successor.metadata.uid]);
  t.deaf = false;
  writer.heard();
  await clock.advance(20_000);
  assert.equal(writes().length, 4);
  await scope.close();
});

Deno.test("an end that somebody else has set is never taken back", async () => {
  const { clock, api, scope, statuses, make, writes } = setUp();
  const pod = make("a");
  api.merge(resources.pods, { name: "a", namespace: "default" }, { status: { phase: "Failed", reason: "NodeLost" } });
  statuses.set(pod, running());
  await clock.advance(30_000);
  assert.deepEqual(writes(), []);
  await scope.close();
});

Deno.test("a deleted pod goes for good once it has ended and everything is given back, and not before", async () => {
  const { clock, api, scope, writer, statuses, make, writes, got } = setUp();
  const name = { name: "a", namespace: "default" };
  let pod = make("a", { metadata: { finalizers: ["example.com/hold"] } });
  statuses.set(pod, running());
  await turn();
  api.delete(resources.pods, name, { gracePeriodSeconds: 30 });
  writer.heard();
  pod = got("a") as BoundPod;
  statuses.set(pod, { phase: "Succeeded" });
  await clock.advance(30_000);
  assert.deepEqual(writes(), ["patch a/status", "patch a/status"]);
  statuses.set(pod, { phase: "Succeeded" }, { finished: true });
  await turn();
  assert.deepEqual(writes().slice(2), ["delete a"]);
  assert.deepEqual(api.calls.at(-1)?.body, {
    gracePeriodSeconds: 0,
    preconditions: { uid: pod.metadata.uid, resourceVersion: undefined },
  });
  // A finalizer holds the object; it is not deleted again and again.
  writer.heard();
  await clock.advance(60_000);
  assert.equal(writes().length, 3);
  assert.equal(got("a")?.status?.phase, "Succeeded");
  await scope.close();
});

Deno.test("a pod that ended long ago goes as soon as it is heard to be deleted", async () => {
  const { clock, api, scope, writer, statuses, make, writes, got } = setUp();
  const pod = make("job", { metadata: { finalizers: ["example.com/hold"] } });
  statuses.set(pod, { phase: "Failed" }, { finished: true });
  await clock.advance(60_000);
  assert.deepEqual(writes(), ["patch job/status"]);
  api.delete(resources.pods, { name: "job", namespace: "default" });
  assert(got("job"));
  writer.heard();
  await turn();
  assert.deepEqual(writes().slice(1), ["delete job"]);
  await scope.close();
});

Deno.test("a deletion that fails is tried again", async () => {
  const { clock, api, scope, statuses, make, writes, got } = setUp();
  const pod = make("a");
  api.delete(resources.pods, { name: "a", namespace: "default" });
  using _fault = api.faults.add({ kind: "unreachable" }, { verb: "delete" }, 1);
  statuses.set({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "x" } }, { phase: "Failed" }, {
    finished: true,
  });
  await clock.advance(1000);
  assert.deepEqual([writes(), got("a")], [["patch a/status", "delete a", "delete a"], undefined]);
  await scope.close();
});

Deno.test("a pod that is forgotten is not written any more", async () => {
  const { clock, api, scope, writer, statuses, make, writes } = setUp();
  const pod = make("a");
  using _fault = api.faults.add({ kind: "unreachable" });
  statuses.set(pod, running());
  await clock.advance(1000);
  assert.equal(writes().length, 2);
  writer.forget(pod.metadata.uid);
  await clock.advance(60_000);
  assert.equal(writes().length, 2);
  await scope.close();
});

Deno.test("that a pod is being ended waits for its end, but not for long", async () => {
  const { clock, api, scope, statuses, make, writes, got } = setUp();
  for (const name of ["quick", "slow"]) {
    const pod = make(name);
    statuses.set(pod, running());
    await turn();
    api.delete(resources.pods, { name, namespace: "default" }, { gracePeriodSeconds: 30 });
    const from = writes().length;
    const deleted = got(name) as BoundPod;
    statuses.set(deleted, { ...running(), observedGeneration: 2 });
    await clock.advance(name === "quick" ? 200 : 400);
    statuses.set(deleted, { phase: "Succeeded" });
    await turn();
    assert.equal(writes().length - from, name === "quick" ? 1 : 2);
    assert.equal(got(name)?.status?.phase, "Succeeded");
  }
  await scope.close();
});
