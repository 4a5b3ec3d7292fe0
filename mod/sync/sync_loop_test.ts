import assert from "@assert";
import { Channel } from "../base/channel.ts";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { Journal } from "../base/journal.ts";
import { silent } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import { RecordingEvents } from "../kube/events.ts";
import { configSource } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";
import type { ObservedPod } from "../pod/observed.ts";
import type { PodChange } from "../sources/types.ts";
import { PodStore } from "./pod_store.ts";
import type { PodSyncer } from "./pod_worker.ts";
import { PodWorkers } from "./pod_workers.ts";
import { type Admission, SyncLoop } from "./sync_loop.ts";

const pod = (uid: string, name = `p${uid}`): BoundPod => ({
  metadata: { name, namespace: "default", uid, annotations: { [configSource]: "file" } },
  spec: { containers: [] },
});
const observed = (uid: string, name = `p${uid}`): ObservedPod => ({
  uid,
  name,
  namespace: "default",
  sandboxes: [],
  containers: [],
  readAt: 0,
});

function setUp(options: {
  admit?: (pod: BoundPod, active: readonly BoundPod[]) => Admission;
  hasEnded?: (pod: BoundPod) => boolean;
  lookAgain?: (pod: BoundPod, reason: string, again: () => void) => boolean;
  prepare?: (pod: BoundPod, done: (answer: Admission) => void) => boolean;
} = {}) {
  const clock = new FakeClock(0);
  const did: string[] = [];
  const note = (step: string) => (p: BoundPod) => {
    did.push(`${step} ${p.metadata.uid}`);
    return Promise.resolve();
  };
  const syncer: PodSyncer = {
    sync: async (p) => {
      await note("sync")(p);
      return {};
    },
    terminate: note("terminate"),
    release: note("release"),
    purge: note("purge"),
  };
  const scope = new Scope("test");
  const changes = new Channel<readonly PodChange[]>();
  const sources = { allReady: false, changes: (signal: AbortSignal) => changes.values(signal) };
  const runtime: ObservedPod[] = [];
  const store = new PodStore();
  const journal = new Journal({ clock });
  const events = new RecordingEvents();
  const rejected: string[] = [];
  const forgotten: string[] = [];
  const added: string[] = [];
  let housekeepings = 0;
  const workers = new PodWorkers({
    scope,
    syncer,
    clock,
    random: () => 0,
    log: silent,
    resyncMs: 60_000,
    onFreed: () => {},
  });
  const loop = new SyncLoop({
    sources,
    store,
    workers,
    clock,
    journal,
    events,
    log: silent,
    pleg: { all: () => runtime, get: (uid) => runtime.find((o) => o.uid === uid) },
    onAdded: (p) => added.push(p.metadata.uid),
    ...(options.hasEnded ? { hasEnded: options.hasEnded } : {}),
    ...(options.lookAgain ? { lookAgain: options.lookAgain } : {}),
    ...(options.prepare ? { prepare: options.prepare } : {}),
    admit: options.admit ?? (() => ({ admit: true })),
    onRejected: (p, why) => rejected.push(`${p.metadata.uid}: ${why.reason}: ${why.message}`),
    onForgotten: (uid) => forgotten.push(uid),
    housekeep: () => housekeepings++,
  });
  const start = async () => {
    scope.spawn("loop", (signal) => loop.run(signal));
    await turn();
  };
  const give = async (batch: PodChange[], ready = true) => {
    sources.allReady = ready;
    changes.push(batch);
    await turn();
  };
  const end = () => scope.close();
  return {
    clock,
    did,
    syncer,
    loop,
    store,
    sources,
    changes,
    runtime,
    journal,
    events,
    rejected,
    forgotten,
    added,
    workers,
    start,
    give,
    end,
    housekeepings: () => housekeepings,
  };
}

Deno.test("a pod that is added is run, and one that is removed goes through its end", async () => {
  const t = setUp();
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }]);
  await t.give([{ op: "remove", pod: pod("1") }]);
  assert.deepEqual(t.did, ["sync 1", "terminate 1", "release 1", "purge 1"]);
  await t.end();
});

Deno.test("a rejected pod is never run, says why once, and is forgotten with its source", async () => {
  const t = setUp({ admit: () => ({ admit: false, reason: "OutOfcpu", message: "too big" }) });
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }]);
  await t.give([{ op: "update", pod: pod("1") }]);
  assert.deepEqual([t.did, t.rejected], [[], ["1: OutOfcpu: too big"]]);
  assert.deepEqual(t.journal.records("1").map((r) => [r.action, r.reason]), [["Reject", "OutOfcpu"]]);
  assert.deepEqual(t.events.events.map((e) => e.reason), ["OutOfcpu"]);
  await t.give([{ op: "remove", pod: pod("1") }]);
  assert.deepEqual(t.forgotten, ["1"]);
  await t.end();
});

Deno.test("a pod on its way out does not count against its successor", async () => {
  const seen: string[][] = [];
  const t = setUp({
    admit: (_p, active) => {
      seen.push(active.map((a) => a.metadata.uid));
      return { admit: true };
    },
  });
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }, { op: "add", pod: pod("2") }]);
  await t.give([{ op: "remove", pod: pod("1") }, { op: "add", pod: pod("3") }]);
  assert.deepEqual(seen, [[], ["1"], ["2"]]);
  await t.end();
});

Deno.test("runtime pods that nobody wants are ended, but not before every source has been read", async () => {
  const t = setUp();
  t.runtime.push(observed("9"));
  await t.start();
  await t.give([], false);
  await t.clock.advance(10_000);
  assert.deepEqual(t.did, []);
  await t.give([], true);
  await t.clock.advance(2000);
  assert.deepEqual(t.did, ["terminate 9", "release 9", "purge 9"]);
  assert.ok(t.housekeepings() > 0);
  await t.end();
});

Deno.test("a clean-up that is queued before the first pods are taken in takes none of them for orphans", async () => {
  const t = setUp();
  t.runtime.push(observed("1"));
  await t.start();
  // The sources say that they are ready as they hand over, while the clean-up already waits in the queue.
  t.sources.allReady = true;
  await t.clock.advance(2000);
  t.changes.push([{ op: "add", pod: pod("1") }]);
  await turn();
  await t.clock.advance(2000);
  assert.deepEqual(t.did, ["sync 1"]);
  await t.end();
});

Deno.test("a predecessor that only the runtime knows goes before its static successor starts", async () => {
  const t = setUp();
  t.runtime.push(observed("old", "web"));
  await t.start();
  await t.give([{ op: "add", pod: pod("new", "web") }]);
  await turn();
  assert.deepEqual(t.did, ["terminate old", "release old", "purge old", "sync new"]);
  await t.end();
});

Deno.test("life-cycle events and probe results wake their pod only, the runtime's return all", async () => {
  const t = setUp();
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }, { op: "add", pod: pod("2") }]);
  t.loop.pleg({ uid: "1", observed: observed("1"), died: true });
  await turn();
  t.loop.probe("2");
  await turn();
  t.loop.wakeAll();
  await turn();
  assert.deepEqual(t.did.slice(2), ["sync 1", "sync 2", "sync 1", "sync 2"]);
  await t.end();
});

Deno.test("a deletion timestamp ends the pod although its source still names it", async () => {
  const t = setUp();
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }]);
  const deleted = pod("1");
  deleted.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
  await t.give([{ op: "delete", pod: deleted }]);
  assert.deepEqual(t.did.slice(1), ["terminate 1", "release 1"]);
  await t.end();
});

Deno.test("a pod that runs already is not asked again whether it fits, and counts before those that do not run", async () => {
  const asked: string[] = [];
  const t = setUp({
    admit: (p, active) => {
      asked.push(`${p.metadata.uid} beside ${active.map((a) => a.metadata.uid)}`);
      return { admit: false, reason: "OutOfcpu", message: "no room" };
    },
  });
  const sandbox = {
    id: "s",
    attempt: 0,
    ready: true,
    createdAt: 0,
    ips: [],
    hostNetwork: false,
    hasNetwork: true,
    handler: "",
  };
  t.runtime.push({ ...observed("2"), sandboxes: [sandbox] });
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }, { op: "add", pod: pod("2") }]);
  assert.deepEqual(asked, ["1 beside 2"]);
  assert.deepEqual(t.rejected.map((r) => r.slice(0, 1)), ["1"]);
  assert.ok(t.workers.has("2"));
  await t.end();
});

Deno.test("what has ended, or is to end, is never judged, takes no room, and is only cleaned up", async () => {
  const asked: string[] = [];
  const t = setUp({
    admit: (p, active) => {
      asked.push(`${p.metadata.uid} beside ${active.map((a) => a.metadata.uid)}`);
      return { admit: false, reason: "OutOfcpu", message: "no room" };
    },
    hasEnded: (p) => p.metadata.uid === "1",
  });
  const deleted = pod("2");
  deleted.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }, { op: "add", pod: deleted }, { op: "add", pod: pod("3") }]);
  assert.deepEqual(asked, ["3 beside 2"]);
  assert.deepEqual(t.added, ["1", "2", "3"]);
  assert.ok(t.workers.has("1") && t.workers.has("2"));
  await t.end();
});

Deno.test("of pods that want the same room the oldest gets it", async () => {
  const asked: string[] = [];
  const t = setUp({
    admit: (p) => {
      asked.push(p.metadata.uid);
      return { admit: true };
    },
  });
  const made = (uid: string, creationTimestamp: string): PodChange => {
    const one = pod(uid);
    return { op: "add", pod: { ...one, metadata: { ...one.metadata, creationTimestamp } } };
  };
  await t.start();
  await t.give([made("young", "2026-01-02T00:00:00Z"), made("old", "2026-01-01T00:00:00Z")]);
  assert.deepEqual(asked, ["old", "young"]);
  await t.end();
});

Deno.test("a pod that comes back under its UID and does not fit is turned away only when its predecessor is gone", async () => {
  let full = false;
  const t = setUp({ admit: () => full ? { admit: false, reason: "Evicted", message: "no room" } : { admit: true } });
  await t.start();
  const end = Promise.withResolvers<void>();
  t.syncer.terminate = (p) => {
    t.did.push(`terminate ${p.metadata.uid}`);
    return end.promise;
  };
  await t.give([{ op: "add", pod: pod("1") }]);
  await t.give([{ op: "remove", pod: pod("1") }]);
  full = true;
  await t.give([{ op: "add", pod: pod("1") }]);
  await t.clock.advance(10_000);
  await turn();
  assert.deepEqual([t.rejected, t.did.includes("terminate 1")], [[], true]);
  end.resolve();
  for (let i = 0; i < 10; i++) await turn();
  await t.clock.advance(2_000);
  await turn();
  assert.deepEqual(t.rejected, ["1: Evicted: no room"]);
  assert.equal(t.did.filter((step) => step === "sync 1").length, 1);
  await t.end();
});

Deno.test("a pod that cannot even be judged is rejected and stops nothing", async () => {
  const t = setUp({
    admit: (p) => {
      if (p.metadata.uid === "1") throw new Error('spec.containers[0].resources: "x" is no quantity');
      return { admit: true };
    },
  });
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }, { op: "add", pod: pod("2") }]);
  assert.deepEqual(t.rejected, ['1: UnexpectedAdmissionError: spec.containers[0].resources: "x" is no quantity']);
  assert.deepEqual(t.did, ["sync 2"]);
  await t.end();
});

Deno.test("a change of status wakes a pod only when it is not an echo of its own", async () => {
  const t = setUp();
  await t.start();
  await t.give([{ op: "add", pod: pod("1") }]);
  const gate = { type: "example.com/gate", status: "True" };
  const echo = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  const looks = async (status: BoundPod["status"]) => {
    const before = t.did.length;
    await t.give([{ op: "reconcile", pod: { ...pod("1"), ...(status ? { status } : {}) } }]);
    return t.did.slice(before);
  };
  assert.deepEqual(await looks(echo), []);
  assert.deepEqual(await looks({ ...echo, conditions: [gate, ...echo.conditions] }), ["sync 1"]);
  assert.deepEqual(await looks({ ...echo, message: "x", conditions: [gate] }), []);
  assert.deepEqual(await looks({ phase: "Failed", conditions: [gate] }), ["sync 1"]);
  assert.equal(t.store.get("1")?.status?.phase, "Failed");
  await t.end();
});

Deno.test("a pod that is judged by what may be out of date is judged once more, and neither started nor counted before", async () => {
  const again = new Map<string, () => void>();
  const fits = new Set<string>();
  const seen: string[][] = [];
  const t = setUp({
    admit: (p, active) => {
      seen.push(active.map((a) => a.metadata.uid));
      return fits.has(p.metadata.uid) ? { admit: true } : { admit: false, reason: "NodeAffinity", message: "no" };
    },
    lookAgain: (p, _, tell) => {
      again.set(p.metadata.uid, tell);
      return true;
    },
  });
  await t.start();
  await t.give(["1", "2", "3"].map((uid) => ({ op: "add", pod: pod(uid) })));
  await t.give([{ op: "update", pod: pod("1") }, { op: "remove", pod: pod("3") }]);
  assert.deepEqual([t.did, t.rejected, seen], [[], [], [[], [], []]]);
  fits.add("1").add("3");
  for (const tell of again.values()) tell();
  await turn();
  assert.deepEqual([t.did, t.rejected], [["sync 1"], ["2: NodeAffinity: no"]]);
  await t.end();
});

Deno.test("what a pod needs is got before it is judged; it counts meanwhile, and others do not wait", async () => {
  const told = new Map<string, (answer: Admission) => void>();
  const counted: string[] = [];
  const t = setUp({
    prepare: (p, done) => {
      if (p.metadata.uid === "plain") return false;
      told.set(p.metadata.uid, done);
      return true;
    },
    admit: (p, active) => {
      counted.push(`${p.metadata.uid}: ${active.map(({ metadata }) => metadata.uid).toSorted().join(" ")}`);
      return { admit: true };
    },
  });
  await t.start();
  await t.give(["good", "bad", "gone"].map((uid) => ({ op: "add", pod: pod(uid) })));
  await t.give([{ op: "add", pod: pod("plain") }, { op: "update", pod: pod("good") }]);
  assert.deepEqual([...t.loop.preparing], ["good", "bad", "gone"]);
  assert.deepEqual(t.did, ["sync plain"]);
  await t.give([{ op: "remove", pod: pod("gone") }]);
  told.get("gone")?.({ admit: true });
  told.get("bad")?.({ admit: false, reason: "UnexpectedAdmissionError", message: "no device" });
  told.get("good")?.({ admit: true });
  await t.give([]);
  assert.deepEqual(t.did, ["sync plain", "sync good"]);
  assert.deepEqual(t.rejected, ["bad: UnexpectedAdmissionError: no device"]);
  assert.deepEqual(t.forgotten, ["gone"]);
  assert.deepEqual(counted, ["plain: bad gone good", "good: plain"]);
  assert.equal(t.loop.preparing.size, 0);
  await t.end();
});
