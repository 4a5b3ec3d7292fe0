import assert from "@assert";
import { turn } from "../../mod/base/fake_clock.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { configHash, configMirror, configSource } from "../../mod/kube/pod.ts";
import type { BoundPod, Pod, PodStatus } from "../../mod/kube/types.ts";
import { running, setUp, status } from "./api_writer_testing.ts";

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
