import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { decodeCheckpoint } from "../../mod/pod/resize/checkpoint.ts";
import { AllocationManager } from "./manager.ts";
import type { ResizeLook } from "./types.ts";

const rootDir = "/var/lib/kubelet";
const pod = (uid: string, cpu: string, generation = 1): BoundPod => ({
  metadata: { name: uid, namespace: "default", uid, generation },
  spec: { containers: [{ name: "c", resources: { requests: { cpu }, limits: { cpu } } }] },
});

function setUp(host = new FakeHost()) {
  const clock = new FakeClock();
  const events = new RecordingEvents();
  const counted: string[] = [];
  const manager = new AllocationManager({
    host,
    rootDir,
    clock,
    events,
    log: silent,
    scope: new Scope("test"),
    policy: {
      gates: { podLevel: true, initContainers: true },
      cpuManagerPolicy: "none",
      memoryManagerPolicy: "None",
      exclusiveCpus: false,
      exclusiveMemory: false,
      swaps: (p) => p.metadata.uid === "swapping",
    },
    meter: {
      asked: (...words) => counted.push(words.join(" ")),
      infeasible: (detail) => counted.push(detail),
      deferredAccepted: (trigger) => counted.push(`accepted ${trigger}`),
    },
  });
  return { host, clock, events, manager, counted };
}

/** A look at pods by UID, of which those on the list find no room. */
function look(pods: readonly BoundPod[], full: readonly string[] = []): ResizeLook {
  return {
    get: (uid) => pods.find((p) => p.metadata.uid === uid),
    admit: ({ metadata }) =>
      full.includes(metadata.uid)
        ? { admit: false, reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" }
        : { admit: true },
  };
}

const cpuOf = (of: BoundPod) => of.spec.containers[0]?.resources?.requests?.cpu;

Deno.test("what a pod was given outlives the agent, in both files, and is forgotten with the pod", async () => {
  const { host, manager } = setUp();
  await host.mkdir(rootDir);
  await manager.load();
  manager.admitted(pod("a", "1"));
  await manager.allocationKept();
  await manager.setContainer(pod("a", "1"), "c", { requests: { cpu: "1" } });
  for (const file of ["allocated_pods_state", "actuated_pods_state"]) {
    assert.deepEqual([...decodeCheckpoint(host.text(`${rootDir}/${file}`) ?? "").keys()], ["a"], file);
  }
  const next = setUp(host);
  await next.manager.load();
  const wanted = pod("a", "2", 2);
  assert.equal(cpuOf(next.manager.allocated(wanted)), "1");
  next.manager.added(wanted);
  assert(next.manager.waiting);
  next.manager.forgetAllBut(() => false);
  assert.equal(next.manager.allocated(wanted), wanted);
  assert(!next.manager.waiting);
});

Deno.test("a file that cannot be used stops the start, with its name and what to do", async () => {
  for (const text of ["", "{", '{"data":"{}","checksum":1}']) {
    const { host, manager } = setUp();
    await host.mkdir(rootDir);
    host.put(`${rootDir}/allocated_pods_state`, text);
    await assert.rejects(
      manager.load(),
      /checkpoint \/var\/lib\/kubelet\/allocated_pods_state: .*drain this node/s,
      text,
    );
  }
});

Deno.test("a resize waits, is told once, and has its turn; one that is taken back is forgotten", async () => {
  const { host, clock, manager, events, counted } = setUp();
  await host.mkdir(rootDir);
  const [before, now] = [pod("a", "1"), pod("a", "2", 2)];
  manager.admitted(before);
  manager.updated(before, now);
  assert.deepEqual(manager.retry("pod_updated", look([now], ["a"])).map((p) => p.metadata.uid), ["a"]);
  await clock.advance(180_000);
  assert.deepEqual(manager.retry("periodic_retry", look([now], ["a"])), []);
  assert.deepEqual(manager.conditions("a").map((c) => [c.type, c.reason, c.observedGeneration]), [
    ["PodResizePending", "Deferred", 2],
  ]);
  manager.updated(now, before);
  assert.deepEqual([manager.waiting, manager.conditions("a")], [false, []]);
  manager.updated(before, now);
  manager.retry("pod_updated", look([now], ["a"]));
  assert.deepEqual(manager.retry("pods_removed", look([now])), [now]);
  assert.equal(manager.allocated(now), now);
  assert.deepEqual(manager.conditions("a").map((c) => [c.type, c.observedGeneration]), [["PodResizeInProgress", 2]]);
  assert.deepEqual(events.events.map((e) => `${e.type} ${e.reason}`), [
    "Warning ResizeDeferred",
    "Warning ResizeDeferred",
    "Normal ResizeStarted",
  ]);
  assert(counted.includes("accepted pods_removed") && counted.includes("cpu limits increase"), counted.join(", "));
});

Deno.test("what can never be done is told so, and not tried again until it is changed", async () => {
  const { host, manager, events, counted } = setUp();
  await host.mkdir(rootDir);
  const sized = (memory: string, generation = 1): BoundPod => ({
    ...pod("swapping", "1", generation),
    spec: { containers: [{ name: "c", resources: { requests: { memory } } }] },
  });
  manager.admitted(sized("1Gi"));
  manager.updated(sized("1Gi"), sized("2Gi", 2));
  manager.retry("pod_updated", look([sized("2Gi", 2)]));
  assert.deepEqual([manager.conditions("swapping")[0]?.reason, manager.waiting], ["Infeasible", false]);
  assert.deepEqual(events.events.map((e) => e.reason), ["ResizeInfeasible"]);
  assert(counted.includes("swap_limitation"));
  assert.equal(manager.counts().pending.get("infeasible"), 1);
});

Deno.test("conditions of a status are taken over by the next agent, but not where nothing waits any more", async () => {
  const { host, manager } = setUp();
  await host.mkdir(rootDir);
  const condition = (type: string) => ({ type, status: "True", reason: "Deferred", observedGeneration: 2 });
  const known: BoundPod = {
    ...pod("a", "1"),
    status: { conditions: [condition("PodResizePending"), condition("PodResizeInProgress")] },
  };
  manager.admitted(known);
  manager.added(known);
  assert.deepEqual(manager.conditions("a").map((c) => c.type), ["PodResizeInProgress"]);
});

Deno.test("a pod whose figures cannot be read holds up no other", async () => {
  const { host, manager } = setUp();
  await host.mkdir(rootDir);
  const [bad, good] = [pod("bad", "many", 2), pod("good", "2", 2)];
  for (const uid of ["bad", "good"]) manager.admitted(pod(uid, "1"));
  manager.updated(pod("bad", "1"), bad);
  manager.updated(pod("good", "1"), good);
  assert.deepEqual(manager.retry("pod_updated", look([bad, good])), [good]);
  assert.equal(cpuOf(manager.allocated(bad)), "1");
});
