import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { configHash, configMirror, configSource } from "../../mod/kube/pod.ts";
import type { BoundPod, Pod, PodStatus } from "../../mod/kube/types.ts";
import { ApiStatusWriter } from "./api_writer.ts";
import { StatusManager } from "./status_manager.ts";

const running = (reason = ""): PodStatus => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: "True" }],
  ...(reason ? { reason } : {}),
});

/** A clock whose wall time can be stepped. */
class SteppedClock extends FakeClock {
  stepMs = 0;
  override now(): number {
    return super.now() + (this.stepMs ?? 0);
  }
}

function setUp() {
  const clock = new SteppedClock();
  const api = new FakeApi({ clock });
  api.create(resources.nodes, { metadata: { name: "n1" } });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const arrived: number[] = [];
  const heard = new Map<string, BoundPod>();
  const t = { deaf: false };
  const writer = new ApiStatusWriter({
    client: api.client("main", { node: "n1" }),
    clock,
    log,
    scope,
    known: ({ name, namespace }) => {
      const key = `${namespace}/${name}`;
      const now = api.get<Pod>(resources.pods, { name, ...(namespace ? { namespace } : {}) });
      if (t.deaf) return heard.get(key);
      if (now) heard.set(key, now as BoundPod);
      return now as BoundPod | undefined;
    },
    onWritten: (_, ms) => arrived.push(ms),
  });
  scope.spawn("resync", (signal) => writer.run(signal));
  const statuses = new StatusManager({ onChange: (entry) => writer.status(entry) });
  const make = (name: string, rest: { metadata?: object; spec?: object } = {}): BoundPod =>
    api.create<Pod>(resources.pods, {
      metadata: { name, namespace: "default", ...rest.metadata },
      spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], ...rest.spec },
    }) as BoundPod;
  const writes = () =>
    api.calls.filter((c) => c.verb === "patch" || c.verb === "delete")
      .map((c) => `${c.verb} ${c.name}${c.subresource ? `/${c.subresource}` : ""}`);
  const got = (name: string) => api.get<Pod>(resources.pods, { name, namespace: "default" });
  return { clock, api, log, scope, writer, statuses, make, writes, got, arrived, t };
}

Deno.test("the first word of a pod goes at once, what follows of its start in one write; what others say is kept", async () => {
  const { clock, api, scope, statuses, make, writes, got, arrived } = setUp();
  const pod = make("a");
  const gate = { type: "example.com/gate", status: "True" };
  api.merge(resources.pods, { name: "a", namespace: "default" }, {
    status: { conditions: [gate], qosClass: "Burstable" },
  });
  const starting: PodStatus = { phase: "Pending", containerStatuses: [status("ContainerCreating")] };
  statuses.set(pod, { ...starting, qosClass: "BestEffort" });
  await turn();
  assert.deepEqual([writes(), got("a")?.status?.qosClass], [["patch a/status"], "Burstable"]);
  statuses.set(pod, { ...starting, podIP: "10.0.0.2", podIPs: [{ ip: "10.0.0.2" }] });
  await clock.advance(299);
  assert.deepEqual(writes(), ["patch a/status"]);
  statuses.set(pod, running());
  await turn();
  assert.deepEqual(writes(), ["patch a/status", "patch a/status"]);
  assert.deepEqual(api.calls.at(-1)?.body, {
    metadata: { uid: pod.metadata.uid },
    status: {
      phase: "Running",
      "$setElementOrder/conditions": [{ type: "example.com/gate" }, { type: "Ready" }],
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: null,
    },
  });
  assert.deepEqual(got("a")?.status?.conditions, [gate, { type: "Ready", status: "True" }]);
  assert.deepEqual(arrived, [0, 299]);
  await scope.close();
});

Deno.test("when many pods start at once, even the first word of each waits for what follows", async () => {
  const { clock, scope, statuses, make, writes } = setUp();
  const pods = Array.from({ length: 30 }, (_, i) => make(`p${i}`));
  for (const pod of pods) statuses.set(pod, { phase: "Pending", containerStatuses: [status("ContainerCreating")] });
  await clock.advance(3900);
  for (const pod of pods) statuses.set(pod, running());
  await clock.advance(1000);
  assert.equal(writes().length, 40);
  await scope.close();
});

function status(reason: string) {
  return { name: "c", state: { waiting: { reason } }, ready: false, restartCount: 0, image: "i", imageID: "" };
}

Deno.test("a start that takes longer is told by itself, and one that fails at once", async () => {
  const { clock, scope, statuses, make, writes, got } = setUp();
  const pod = make("a");
  const starting: PodStatus = { phase: "Pending", containerStatuses: [status("ContainerCreating")] };
  statuses.set(pod, starting);
  await turn();
  statuses.set(pod, { ...starting, podIP: "10.0.0.2", podIPs: [{ ip: "10.0.0.2" }] });
  await clock.advance(300);
  assert.deepEqual(writes(), ["patch a/status", "patch a/status"]);
  statuses.set(pod, { phase: "Pending", containerStatuses: [status("ErrImagePull")] });
  await turn();
  assert.equal(got("a")?.status?.containerStatuses?.[0]?.state?.waiting?.reason, "ErrImagePull");
  await scope.close();
});

Deno.test("of one pod one write at a time, the newest only; other pods do not wait for it", async () => {
  const { clock, api, scope, statuses, make, writes, got } = setUp();
  const slow = make("slow"), quick = make("quick");
  using _fault = api.faults.add({ kind: "slow", ms: 1000 }, { name: "slow" });
  for (const reason of ["1", "2", "3"]) {
    statuses.set(slow, running(reason));
    await turn();
  }
  statuses.set(quick, running());
  await turn();
  assert.deepEqual([got("quick")?.status?.phase, got("slow")?.status?.phase], ["Running", "Pending"]);
  await clock.advance(2000);
  assert.deepEqual(writes(), ["patch slow/status", "patch quick/status", "patch slow/status"]);
  assert.equal(got("slow")?.status?.reason, "3");
  await scope.close();
});

Deno.test("no more than ten pods are written at once", async () => {
  const { clock, api, scope, statuses, make, writes } = setUp();
  using _fault = api.faults.add({ kind: "slow", ms: 1000 });
  for (let i = 0; i < 25; i++) statuses.set(make(`p${i}`), running());
  await turn();
  assert.equal(writes().length, 10);
  await clock.advance(1000);
  assert.equal(writes().length, 20);
  await clock.advance(2000);
  assert.equal(writes().length, 25);
  await scope.close();
});

Deno.test("a failing write is tried again with longer and longer waits, told once, and never out of order", async () => {
  const { clock, api, log, scope, statuses, make, writes, got } = setUp();
  const pod = make("a");
  const broken = api.faults.add({
    kind: "status",
    error: new ApiError("boom", { status: 500, reason: "InternalError" }),
  });
  statuses.set(pod, running("1"));
  await clock.advance(1000 + 2000 + 4000 + 8000 + 10_000);
  assert.equal(writes().length, 6);
  statuses.set(pod, running("2"));
  await turn();
  assert.equal(writes().length, 6);
  broken[Symbol.dispose]();
  await clock.advance(10_000);
  assert.deepEqual([writes().length, got("a")?.status?.reason], [7, "2"]);
  assert.equal(log.lines.filter((l) => l.level === "warn").length, 1);
  await scope.close();
});

Deno.test("too many requests: not before the server has said; unreachable: as soon as it is heard of again", async () => {
  const { clock, api, scope, writer, statuses, make, writes, got } = setUp();
  const error = new ApiError("slow down", { status: 503, reason: "ServiceUnavailable", retryAfterMs: 7000 });
  const busy = api.faults.add({ kind: "status", error }, {}, 1);
  statuses.set(make("a"), running());
  await clock.advance(6999);
  assert.equal(writes().length, 1);
  await clock.advance(1);
  assert.deepEqual([writes().length, got("a")?.status?.phase], [2, "Running"]);
  busy[Symbol.dispose]();
  api.reach = "refused";
  statuses.set(make("b"), running());
  await clock.advance(5000);
  api.reach = "up";
  writer.heard();
  await turn();
  assert.equal(got("b")?.status?.phase, "Running");
  await scope.close();
});

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

Deno.test("what somebody has overwritten is put right within ten seconds, and what the server makes of it is no reason", async () => {
  const { clock, api, scope, statuses, make, writes, got } = setUp();
  statuses.set(make("a"), running());
  await clock.advance(25_000);
  assert.equal(writes().length, 1);
  api.merge(resources.pods, { name: "a", namespace: "default" }, { status: { phase: "Pending", message: "mine" } });
  await clock.advance(10_000);
  assert.deepEqual([writes().length, got("a")?.status?.phase, got("a")?.status?.message], [2, "Running", undefined]);
  await clock.advance(30_000);
  assert.equal(writes().length, 2);
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

Deno.test("a static pod's status goes to its mirror, whichever that is now, and never deletes it", async () => {
  const { clock, api, scope, writer, statuses, make, writes, got } = setUp();
  const pod: BoundPod = {
    metadata: {
      name: "s",
      namespace: "default",
      uid: "h1",
      annotations: { [configSource]: "file", [configHash]: "h1" },
    },
    spec: { containers: [{ name: "c" }] },
  };
  statuses.set(pod, running());
  await clock.advance(20_000);
  assert.deepEqual(writes(), []);
  const mirror = (hash: string) =>
    make("s", {
      metadata: {
        annotations: { [configMirror]: hash },
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "n", controller: true }],
      },
    });
  mirror("h0");
  writer.heard();
  await clock.advance(20_000);
  assert.deepEqual(writes(), []);
  for (let i = 1; i <= 2; i++) {
    api.remove(resources.pods, { name: "s", namespace: "default" });
    mirror("h1");
    writer.heard();
    await turn();
    assert.deepEqual([writes().length, got("s")?.status?.phase], [i, "Running"]);
  }
  statuses.set(pod, { phase: "Failed" }, { finished: true });
  api.delete(resources.pods, { name: "s", namespace: "default" });
  writer.heard();
  await clock.advance(20_000);
  assert.deepEqual(writes().filter((w) => w.startsWith("delete")), []);
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

Deno.test("a pod that was changed behind a watch that lags is still brought to what it is", async () => {
  const { clock, api, scope, statuses, make, writes, got, t } = setUp();
  const pod = make("a");
  const full = (status: string): PodStatus => ({
    phase: "Running",
    conditions: ["Initialized", "Ready"].map((type) => ({ type, status: type === "Ready" ? status : "True" })),
  });
  statuses.set(pod, full("True"));
  await turn();
  t.deaf = true;
  api.merge(resources.pods, { name: "a", namespace: "default" }, { status: { conditions: [] } });
  statuses.set(pod, full("False"));
  await turn();
  assert.deepEqual(got("a")?.status?.conditions, full("False").conditions);
  assert.equal(writes().length, 3);
  await clock.advance(60_000);
  assert.equal(writes().length, 3);
  await scope.close();
});

Deno.test("what the server makes of a status is written once more and then accepted", async () => {
  const { clock, api, scope, statuses, make, writes, writer } = setUp();
  const patch = api.server.patch.bind(api.server);
  api.server.patch = (...given) => {
    const made = patch(...given) as Pod;
    return api.put<Pod>(resources.pods, { ...made, status: { ...made.status, message: "cut" } });
  };
  statuses.set(make("a"), { ...running(), message: "cut short by the server" });
  await clock.advance(100);
  assert.equal(writes().length, 2);
  writer.heard();
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

Deno.test("a clock that is put back by an hour holds no status up: neither one that waits for more, nor one that failed", async () => {
  const { clock, api, scope, statuses, make, got } = setUp();
  const [a, b] = [make("a"), make("b")];
  statuses.set(a, { phase: "Pending" });
  await turn();
  statuses.set(a, { phase: "Pending", podIP: "10.0.0.2" });
  api.reach = "refused";
  statuses.set(b, running());
  await turn();
  api.reach = "up";
  clock.stepMs = -3_600_000;
  await clock.advance(12_000);
  assert.deepEqual([got("a")?.status?.podIP, got("b")?.status?.phase], ["10.0.0.2", "Running"]);
  await scope.close();
});
