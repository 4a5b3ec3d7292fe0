import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { configHash, configMirror, configSeen, configSource, isMirror } from "../../mod/kube/pod.ts";
import type { BoundPod, Pod } from "../../mod/kube/types.ts";
import { MirrorManager } from "./mirror_manager.ts";

const staticPod = (hash: string): BoundPod => ({
  metadata: {
    name: "web-n1",
    namespace: "default",
    uid: hash,
    labels: { app: "web" },
    annotations: { [configHash]: hash, [configSource]: "file", [configSeen]: "2026-01-01T00:00:00Z", own: "1" },
  },
  spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], terminationGracePeriodSeconds: 30 },
  status: { phase: "Pending" },
});
const name = { name: "web-n1", namespace: "default" };

function setUp() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const node = api.create(resources.nodes, { metadata: { name: "n1" } });
  const t = {
    wanted: [] as BoundPod[],
    leaving: [] as BoundPod[],
    ready: true,
    read: true,
    nodeKnown: true,
    /** What the watch shows, when it lags behind. */
    shown: undefined as BoundPod[] | undefined,
  };
  const present = () => api.list<Pod>(resources.pods).map((pod) => pod as BoundPod).filter(isMirror);
  const manager = new MirrorManager({
    client: api.client("main", { node: "n1" }),
    clock,
    log,
    scope,
    node: () => t.nodeKnown ? { name: "n1", uid: node.metadata?.uid ?? "" } : undefined,
    wanted: () => t.wanted,
    leaving: () => t.leaving,
    mirrors: () => t.read ? t.shown ?? present() : undefined,
    sourcesReady: () => t.ready,
  });
  const did = () => api.calls.map((c) => `${c.verb} ${c.name}`);
  const got = () => api.get<Pod>(resources.pods, name);
  const look = async () => {
    manager.look();
    await turn();
  };
  return { t, clock, api, log, scope, node, manager, did, got, look, present };
}

Deno.test("a static pod gets its mirror: its spec, marks and labels, owned by the node, as soon as the node is known", async () => {
  const { t, api, scope, node, did, got, look } = setUp();
  t.wanted = [staticPod("h1")];
  t.nodeKnown = false;
  await look();
  assert.deepEqual(did(), []);
  t.nodeKnown = true;
  await look();
  assert.deepEqual(did(), ["create web-n1"]);
  assert.deepEqual(api.calls[0]?.body, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...name,
      labels: { app: "web" },
      annotations: { ...t.wanted[0]?.metadata.annotations, [configMirror]: "h1" },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n1", uid: node.metadata?.uid, controller: true }],
    },
    spec: t.wanted[0]?.spec,
  });
  assert.notEqual(got()?.metadata?.uid, "h1");
  await look();
  assert.equal(did().length, 1);
  await scope.close();
});

Deno.test("a mirror is made anew when somebody deletes it, by force or with grace", async () => {
  const { t, api, scope, did, got, look } = setUp();
  t.wanted = [staticPod("h1")];
  await look();
  api.remove(resources.pods, name);
  await look();
  assert.deepEqual(did(), ["create web-n1", "create web-n1"]);
  const second = got()?.metadata?.uid;
  api.delete(resources.pods, name, { gracePeriodSeconds: 30 });
  assert(got()?.metadata?.deletionTimestamp);
  await look();
  assert.deepEqual(did().slice(2), ["delete web-n1", "create web-n1"]);
  assert.notEqual(got()?.metadata?.uid, second);
  assert.equal(got()?.metadata?.deletionTimestamp, undefined);
  await scope.close();
});

Deno.test("an edited static pod gets another mirror, once the older pod has ended", async () => {
  const { t, scope, did, got, look } = setUp();
  t.wanted = [staticPod("h1")];
  await look();
  t.leaving = t.wanted;
  t.wanted = [staticPod("h2")];
  await look();
  assert.equal(did().length, 1);
  t.leaving = [];
  await look();
  assert.deepEqual(did().slice(1), ["delete web-n1", "create web-n1"]);
  assert.equal(got()?.metadata?.annotations?.[configMirror], "h2");
  await scope.close();
});

Deno.test("a mirror without a static pod goes, but not before every source was read and the pod has ended", async () => {
  const { t, scope, did, got, look } = setUp();
  t.wanted = [staticPod("h1")];
  await look();
  t.leaving = t.wanted;
  t.wanted = [];
  await look();
  t.ready = false;
  t.leaving = [];
  await look();
  assert.equal(did().length, 1);
  t.ready = true;
  await look();
  assert.deepEqual(did().slice(1), ["delete web-n1"]);
  assert.equal(got(), undefined);
  await scope.close();
});

Deno.test("before the API's pods were read nothing is done", async () => {
  const { t, scope, did, look } = setUp();
  t.wanted = [staticPod("h1")];
  t.read = false;
  await look();
  assert.deepEqual(did(), []);
  await scope.close();
});

Deno.test("a watch that lags behind is waited for; what was done is not done again for ten seconds", async () => {
  const { t, clock, scope, manager, did, look } = setUp();
  scope.spawn("mirrors", (signal) => manager.run(signal));
  t.wanted = [staticPod("h1")];
  t.shown = [];
  await look();
  await clock.advance(9000);
  assert.deepEqual(did(), ["create web-n1"]);
  t.shown = undefined;
  await clock.advance(60_000);
  assert.deepEqual(did(), ["create web-n1"]);
  await scope.close();
});

Deno.test("what fails is tried again with longer and longer waits and told once; other pods do not wait", async () => {
  const { t, clock, api, log, scope, manager, did, look } = setUp();
  scope.spawn("mirrors", (signal) => manager.run(signal));
  const other = staticPod("h2");
  t.wanted = [staticPod("h1"), { ...other, metadata: { ...other.metadata, name: "other-n1" } }];
  const fault = api.faults.add({ kind: "unreachable" }, { name: "web-n1" });
  await look();
  assert.deepEqual(did(), ["create web-n1", "create other-n1"]);
  await clock.advance(60_000);
  const tries = did().length - 1;
  assert(tries >= 7 && tries <= 10, `${tries} tries`);
  assert.equal(log.lines.filter((l) => l.level === "warn").length, 1);
  fault[Symbol.dispose]();
  await clock.advance(12_000);
  assert(api.get(resources.pods, name));
  await scope.close();
});

Deno.test("a pod of that name that is no mirror stands in the way, and is left alone", async () => {
  const { t, clock, api, log, scope, did, look } = setUp();
  api.create<Pod>(resources.pods, { metadata: name, spec: { containers: [{ name: "c" }] } });
  t.wanted = [staticPod("h1")];
  await look();
  await clock.advance(1000);
  await look();
  assert.deepEqual(did(), ["create web-n1", "create web-n1"]);
  assert.equal(log.lines.filter((l) => l.level === "warn").length, 1);
  await scope.close();
});

Deno.test("a mirror that somebody deletes again and again is made anew more and more seldom, which is told", async () => {
  const { t, clock, api, log, scope, did, present, look } = setUp();
  t.wanted = [staticPod("h1")];
  const made = () => did().filter((one) => one.startsWith("create")).length;
  /** Deletes each mirror as soon as it is there, for so long; how many were made. */
  const war = async (seconds: number) => {
    const before = made();
    for (let i = 0; i < seconds * 2; i++) {
      await look();
      for (let left = 20; left > 0 && present().length > 0; left--) {
        api.remove(resources.pods, name);
        await look();
      }
      await clock.advance(500);
    }
    return made() - before;
  };
  const warnings = () => log.lines.filter(({ level }) => level === "warn").length;
  assert.equal(await war(1), 3);
  assert.equal(warnings(), 0);
  assert.equal(await war(30), 4);
  assert.equal(warnings(), 1);
  assert(await war(120) <= 5);
  assert.equal(warnings(), 1);
  await clock.advance(30_000);
  await look();
  await clock.advance(60_000);
  await look();
  assert.equal(present().length, 1, "left alone");
  assert.equal(await war(1), 3, "after a quiet minute it is made anew at once again");
  await scope.close();
});

Deno.test("so is one that is deleted with grace, which the agent itself brings to an end", async () => {
  const { t, clock, log, scope, did, present, look } = setUp();
  t.wanted = [staticPod("h1")];
  for (let i = 0; i < 60; i++) {
    const leaving = present().map((one) => ({
      ...one,
      metadata: { ...one.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
    }));
    t.shown = leaving;
    await look();
    t.shown = undefined;
    await clock.advance(500);
  }
  assert.equal(log.lines.filter(({ level }) => level === "warn").length, 1);
  assert(did().filter((one) => one.startsWith("create")).length <= 7);
  await scope.close();
});

Deno.test("a manifest that comes and goes has its mirror each time", async () => {
  const { t, scope, present, look } = setUp();
  for (let i = 0; i < 10; i++) {
    t.wanted = [staticPod("h1")];
    await look();
    assert.equal(present().length, 1);
    t.wanted = [];
    await look();
    assert.equal(present().length, 0);
  }
  await scope.close();
});
