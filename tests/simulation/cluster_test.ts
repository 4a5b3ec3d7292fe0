import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Node } from "../../mod/kube/types.ts";
import { podConditions, statusOf } from "./cluster_expect.ts";
import { ClusterScene, container } from "./cluster_scene.ts";

Deno.test("a pod of the API's runs and is ready; few writes tell all of its status", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const made = scene.create("web");
  await scene.advance(2000);
  const status = statusOf(scene.pod("web"));
  assert.deepEqual(scene.running("web"), ["c#0"]);
  assert.equal(status.phase, "Running");
  assert.deepEqual([status.hostIP, status.hostIPs, status.qosClass, status.observedGeneration], [
    "192.168.1.10",
    [{ ip: "192.168.1.10" }],
    "BestEffort",
    1,
  ]);
  assert(status.podIP && status.startTime);
  assert.deepEqual(status.podIPs, [{ ip: status.podIP }]);
  assert.deepEqual(podConditions(status), [
    "PodReadyToStartContainers=True",
    "Initialized=True",
    "Ready=True",
    "ContainersReady=True",
    "PodScheduled=True",
  ]);
  assert(status.conditions?.every((c) => c.observedGeneration === 1 && c.lastTransitionTime));
  const scheduled = made.status?.conditions?.[0]?.lastTransitionTime;
  assert.equal(scene.condition("web", "PodScheduled")?.lastTransitionTime, scheduled);
  const writes = scene.writes();
  assert(writes.length <= 3, `${writes.length} writes`);
  assert(writes.every((w) => w.verb === "patch" && w.subresource === "status"));
  await scene.advance(120_000);
  assert.equal(scene.writes().length, writes.length);
});

Deno.test("a deleted pod is stopped within its grace, told to have ended, deleted for good, and leaves nothing", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const uid = scene.create("web", { containers: [container("c", [{ stopMs: 5000, stopCode: 0 }])] }).metadata?.uid ??
    "";
  await scene.advance(2000);
  assert(scene.left(uid).length > 0);
  const from = scene.api.calls.length;
  scene.delete("web");
  await scene.advance(4000);
  assert.equal(scene.pod("web")?.status?.phase, "Running");
  await scene.advance(3000);
  assert.equal(scene.pod("web"), undefined);
  const writes = scene.writes(from);
  assert.deepEqual(writes.map((w) => w.verb).slice(-2), ["patch", "delete"]);
  assert(writes.length <= 3, `${writes.length} writes`);
  assert.deepEqual(writes.at(-1)?.body, {
    gracePeriodSeconds: 0,
    preconditions: { uid, resourceVersion: undefined },
  });
  await scene.advance(5000);
  assert.deepEqual(scene.left(uid), []);
});

Deno.test("a grace that is shortened later ends the pod sooner", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("slow", { containers: [container("c", [{ ignoresStop: true }])], terminationGracePeriodSeconds: 600 });
  await scene.advance(2000);
  scene.delete("slow");
  await scene.advance(60_000);
  assert.deepEqual(scene.running("slow"), ["c#0"]);
  scene.delete("slow", 5);
  await scene.advance(8000);
  assert.equal(scene.pod("slow"), undefined);
  assert.deepEqual(scene.running("slow"), []);
});

Deno.test("a pod that is deleted by force is stopped within seconds whatever its own grace, and nothing is written of it", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const spec = { containers: [container("c", [{ ignoresStop: true }])], terminationGracePeriodSeconds: 600 };
  const uid = scene.create("web", spec).metadata?.uid ?? "";
  await scene.advance(2000);
  const from = scene.api.calls.length;
  scene.delete("web", 0);
  assert.equal(scene.pod("web"), undefined);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  await scene.advance(10_000);
  assert.deepEqual([scene.left(uid), scene.writes(from)], [[], []]);
});

Deno.test("a pod whose object went unseen is stopped with its own grace", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const spec = { containers: [container("c", [{ ignoresStop: true }])], terminationGracePeriodSeconds: 20 };
  const uid = scene.create("web", spec).metadata?.uid ?? "";
  await scene.advance(2000);
  scene.api.remove(resources.pods, { name: "web", namespace: "default" });
  await scene.advance(15_000);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  await scene.advance(20_000);
  assert.deepEqual(scene.left(uid), []);
});

Deno.test("two pods of one name, one after the other: each has its own end and its own beginning", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const first = scene.create("web", { containers: [container("c", [{ stopMs: 8000 }])] }).metadata?.uid ?? "";
  await scene.advance(2000);
  scene.delete("web", 0);
  const second = scene.create("web").metadata?.uid ?? "";
  await scene.advance(3000);
  assert.equal(scene.pod("web")?.metadata?.uid, second);
  assert.equal(scene.pod("web")?.status?.phase, "Running");
  await scene.advance(20_000);
  assert.deepEqual(scene.left(first), []);
  assert.deepEqual([scene.running("web"), scene.pod("web")?.status?.phase], [["c#0"], "Running"]);
});

Deno.test("a pod that is done stays until it is deleted, its containers and logs with it, also when the agent restarts", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const spec = { restartPolicy: "Never", containers: [container("c", [{ ms: 3000, code: 0 }])] };
  const uid = scene.create("job", spec).metadata?.uid ?? "";
  await scene.advance(10_000);
  assert.equal(scene.pod("job")?.status?.phase, "Succeeded");
  assert.deepEqual(podConditions(scene.pod("job")?.status).slice(1, 4), [
    "Initialized=True",
    "Ready=False",
    "ContainersReady=False",
  ]);
  assert.equal(scene.condition("job", "Ready")?.reason, "PodCompleted");
  const from = scene.api.calls.length;
  await scene.restart();
  await scene.advance(120_000);
  assert.deepEqual([scene.writes(from), scene.running("job"), scene.pod("job")?.status?.phase], [[], [], "Succeeded"]);
  assert(scene.left(uid).some((what) => what === "container c"));
  scene.delete("job");
  await scene.advance(5000);
  assert.deepEqual([scene.pod("job"), scene.left(uid)], [undefined, []]);
});

Deno.test("a finalizer keeps the object, not the containers; when it goes, all goes", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const made = scene.create("web", {}, { finalizers: ["example.com/hold"] });
  const uid = made.metadata?.uid ?? "";
  await scene.advance(2000);
  scene.delete("web");
  await scene.advance(60_000);
  assert.deepEqual([scene.running("web"), scene.pod("web")?.status?.phase], [[], "Succeeded"]);
  assert.equal(scene.writes().filter((w) => w.verb === "delete").length, 1);
  scene.api.remove(resources.pods, { name: "web", namespace: "default" });
  await scene.advance(5000);
  assert.deepEqual(scene.left(uid), []);
});

Deno.test("a readiness gate holds Ready back until somebody sets its condition, which is kept", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("gated", { readinessGates: [{ conditionType: "example.com/up" }] });
  await scene.advance(2000);
  const ready = () => scene.condition("gated", "Ready");
  assert.deepEqual([ready()?.status, ready()?.reason], ["False", "ReadinessGatesNotReady"]);
  assert.equal(scene.condition("gated", "ContainersReady")?.status, "True");
  const gate = { type: "example.com/up", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" };
  scene.merge("gated", { status: { conditions: [gate, ...scene.pod("gated")?.status?.conditions ?? []] } });
  await scene.advance(1000);
  assert.deepEqual([ready()?.status, scene.condition("gated", "example.com/up")], ["True", gate]);
});

Deno.test("an ephemeral container joins, a new image replaces its container, each under the generation it belongs to", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("web", { containers: [container("c"), container("d")] });
  await scene.advance(2000);
  const debug = { ...container("debug"), targetContainerName: "c" };
  scene.edit("web", (spec) => ({ ...spec, ephemeralContainers: [debug] }));
  await scene.advance(2000);
  assert.deepEqual(scene.running("web"), ["c#0", "d#0", "debug#0"]);
  const status = () => statusOf(scene.pod("web"));
  assert(status().ephemeralContainerStatuses?.[0]?.state?.running);
  scene.edit("web", (spec) => ({
    ...spec,
    containers: spec.containers.map((c) => c.name === "d" ? { ...c, image: "registry.sim/app:2" } : c),
  }));
  await scene.advance(5000);
  assert.deepEqual(scene.running("web"), ["c#0", "d#1", "debug#0"]);
  assert.deepEqual([status().observedGeneration, status().containerStatuses?.[1]?.restartCount], [3, 1]);
  assert.equal(status().containerStatuses?.[1]?.image, "registry.sim/app:2");
});

Deno.test("a killed agent goes on: no container and no readiness changes, even without its own memory", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const readinessProbe = { exec: { command: ["probe", "k-c/readiness"] }, periodSeconds: 10 };
  scene.create("web", { containers: [container("c", [{ ms: 1000, code: 1 }, {}], { readinessProbe })] });
  await scene.advance(60_000);
  const before = statusOf(scene.pod("web"));
  assert.equal(before.containerStatuses?.[0]?.restartCount, 1);
  assert.equal(scene.condition("web", "Ready")?.status, "True");
  for (const forget of [false, true]) {
    const from = scene.api.calls.length;
    scene.kill();
    if (forget) await scene.world.host.removeTree("/var/lib/kubelet/pod_status");
    await scene.restart();
    await scene.advance(30_000);
    assert.deepEqual([scene.writes(from), scene.running("web")], [[], ["c#1"]]);
    assert.deepEqual(scene.pod("web")?.status, before);
  }
});

Deno.test("what happened to pods while no agent ran is made up for", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const uid = (name: string) => scene.pod(name)?.metadata?.uid ?? "";
  for (const name of ["gone", "deleted", "edited", "ended"]) scene.create(name);
  await scene.advance(3000);
  const gone = uid("gone"), deleted = uid("deleted");
  scene.kill();
  scene.delete("gone", 0);
  scene.delete("deleted");
  scene.edit("edited", (spec) => ({ ...spec, containers: [{ ...container("c"), image: "registry.sim/app:2" }] }));
  scene.merge("ended", { status: { phase: "Failed", reason: "NodeLost" } });
  scene.create("new");
  await scene.restart();
  await scene.advance(60_000);
  assert.deepEqual([scene.left(gone), scene.left(deleted), scene.pod("deleted")], [[], [], undefined]);
  assert.deepEqual([scene.running("edited"), scene.running("new"), scene.running("ended")], [["c#1"], ["c#0"], []]);
  assert.deepEqual([scene.pod("ended")?.status?.phase, scene.pod("ended")?.status?.reason], ["Failed", "NodeLost"]);
});

Deno.test("a pod that was never started ends as failed when it is deleted", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("stuck", { containers: [container("c", [{}], { image: "registry.sim/none:1" })] });
  await scene.advance(3000);
  assert.equal(scene.pod("stuck")?.status?.containerStatuses?.[0]?.state?.waiting?.reason, "ImagePullBackOff");
  const from = scene.api.calls.length;
  scene.delete("stuck");
  await scene.advance(3000);
  assert.equal(scene.pod("stuck"), undefined);
  const bodies = scene.writes(from).flatMap((w) => w.verb === "patch" ? [JSON.stringify(w.body)] : []);
  assert(bodies.some((body) => body.includes('"phase":"Failed"')), bodies.join("\n"));
});

Deno.test("a pod that does not fit is told so and never started, whatever room there is later", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const big = { containers: [container("c", [{}], { resources: { requests: { cpu: "3" } } })] };
  scene.create("first", big);
  await scene.advance(1000);
  const second = scene.create("second", big);
  await scene.advance(1000);
  const status = () => statusOf(scene.pod("second"));
  assert.deepEqual([status().phase, status().reason], ["Failed", "OutOfcpu"]);
  assert.match(status().message ?? "", /^Pod was rejected: Node didn't have enough resource: cpu/);
  const event = scene.events.events.find((e) => e.pod.metadata.uid === second.metadata?.uid);
  assert.deepEqual([event?.type, event?.reason], ["Warning", "OutOfcpu"]);
  scene.delete("first", 0);
  await scene.advance(60_000);
  await scene.restart();
  await scene.advance(60_000);
  assert.deepEqual([scene.running("second"), status().phase], [[], "Failed"]);
  scene.delete("second");
  await scene.advance(2000);
  assert.equal(scene.pod("second"), undefined);
});

Deno.test("room for a critical pod: the victim fails with its condition and an event, then the critical pod runs", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const cpu = (cpu: string) => ({ containers: [container("c", [{}], { resources: { requests: { cpu } } })] });
  scene.create("victim", cpu("3"));
  await scene.advance(2000);
  scene.create("vital", { ...cpu("2"), priority: 2_000_001_000, priorityClassName: "system-node-critical" });
  await scene.advance(5000);
  const status = statusOf(scene.pod("victim"));
  assert.deepEqual([status.phase, status.reason, status.message], [
    "Failed",
    "Preempting",
    "Preempted in order to admit critical pod",
  ]);
  const target = scene.condition("victim", "DisruptionTarget");
  assert.deepEqual([target?.status, target?.reason, target?.message], [
    "True",
    "TerminationByKubelet",
    "Pod was preempted by Kubelet to accommodate a critical pod.",
  ]);
  assert(scene.events.events.some((e) => e.reason === "Preempting" && e.pod.metadata.name === "victim"));
  assert.deepEqual([scene.running("victim"), scene.running("vital")], [[], ["c#0"]]);
});

Deno.test("a pod that is ended while none of its containers runs is told so with its cause", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const requests = { cpu: "3" };
  scene.create("victim", { containers: [container("c", [{ ms: 1000, code: 1 }], { resources: { requests } })] });
  await scene.advance(5000);
  assert.equal(statusOf(scene.pod("victim")).containerStatuses?.[0]?.state?.waiting?.reason, "CrashLoopBackOff");
  scene.create("vital", {
    containers: [container("c", [{}], { resources: { requests } })],
    priority: 2_000_001_000,
    priorityClassName: "system-node-critical",
  });
  await scene.advance(5000);
  const status = statusOf(scene.pod("victim"));
  assert.deepEqual([status.phase, status.reason], ["Failed", "Preempting"]);
  assert.equal(scene.condition("victim", "DisruptionTarget")?.reason, "TerminationByKubelet");
});

Deno.test("the active deadline fails the pod", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("late", { activeDeadlineSeconds: 5 });
  await scene.advance(12_000);
  const status = statusOf(scene.pod("late"));
  assert.deepEqual([status.phase, status.reason, scene.running("late")], ["Failed", "DeadlineExceeded", []]);
});

Deno.test("a pod that only newer labels of the node let in is not turned away by a watch that lags behind", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const name = { name: "node1" };
  const node = scene.api.get<Node>(resources.nodes, name);
  scene.nodeSeen = node;
  scene.api.merge(resources.nodes, name, { metadata: { labels: { disk: "fast" } } });
  scene.create("fast", { nodeSelector: { disk: "fast" } });
  scene.create("slow", { nodeSelector: { disk: "slow" } });
  await scene.advance(2000);
  assert.deepEqual([scene.running("fast"), scene.running("slow")], [["c#0"], []]);
  const status = statusOf(scene.pod("slow"));
  assert.deepEqual([status.phase, status.reason], ["Failed", "NodeAffinity"]);
});

Deno.test("a taint that a pod does not tolerate turns it away, resources that others gave the node count", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const taints = [{ key: "down", effect: "NoExecute" }];
  scene.api.merge(resources.nodes, { name: "node1" }, {
    spec: { taints },
    status: { allocatable: { "example.com/dongle": "1" } },
  });
  const dongle = { limits: { "example.com/dongle": "1" }, requests: { "example.com/dongle": "1" } };
  const tolerations = [{ key: "down", operator: "Exists" }];
  scene.create("plain");
  for (const name of ["first", "second"]) {
    scene.create(name, { tolerations, containers: [container("c", [{}], { resources: dongle })] });
    await scene.advance(2000);
  }
  const reasons = ["plain", "first", "second"].map((name) => scene.pod(name)?.status?.reason);
  assert.deepEqual(reasons, ["TaintToleration", undefined, "OutOfexample.com/dongle"]);
});

Deno.test("after the machine has come back from losing its power, its pods run again under the same objects", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const uid = scene.create("web").metadata?.uid;
  scene.create("job", { restartPolicy: "Never", containers: [container("c", [{ ms: 1000, code: 0 }])] });
  await scene.advance(5000);
  scene.kill();
  await scene.world.reboot();
  await scene.restart(20_000);
  await scene.advance(60_000);
  assert.deepEqual([scene.pod("web")?.metadata?.uid, scene.running("web")], [uid, ["c#1"]]);
  const status = statusOf(scene.pod("web"));
  assert.deepEqual(
    [status.phase, status.containerStatuses?.[0]?.restartCount, scene.condition("web", "Ready")?.status],
    [
      "Running",
      1,
      "True",
    ],
  );
  assert.deepEqual([scene.pod("job")?.status?.phase, scene.running("job")], ["Succeeded", []]);
});
