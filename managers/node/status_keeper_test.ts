import assert from "@assert";
import type { Clock } from "../../mod/base/clock.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { Node } from "../../mod/kube/types.ts";
import { registerNode } from "./registrar.ts";
import { NodeStatusKeeper } from "./status_keeper.ts";
import { testProfile, testSituation } from "./testing.ts";
import type { NodeProfile, NodeSituation } from "./types.ts";
import { NodeRecord } from "./view.ts";

const name = { name: "n1" };

function world(random = 0.5, fake = new FakeClock(), clock: Clock = fake) {
  const api = new FakeApi({ clock: fake });
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const record = new NodeRecord();
  const scope = new Scope("test");
  const state: { situation: NodeSituation; profile: NodeProfile } = {
    situation: testSituation,
    profile: testProfile,
  };
  const client = api.client("heartbeat", { node: "n1", timeoutMs: 10_000 });
  const situation = () => Promise.resolve(state.situation);
  const keeper = () =>
    new NodeStatusKeeper({
      client,
      profile: state.profile,
      record,
      situation,
      urgency: () => state.situation,
      lookMs: 10_000,
      reportMs: 300_000,
      clock,
      random: () => random,
      log,
      events,
    });
  return {
    clock: fake,
    api,
    log,
    events,
    record,
    scope,
    state,
    client,
    keeper,
    register: (signal = scope.signal) =>
      registerNode({ client, profile: state.profile, situation, clock, log, events }, signal),
    set: (change: Partial<NodeSituation>) => state.situation = { ...state.situation, ...change },
    node: () => api.get(resources.nodes, name),
    patches: () => api.calls.filter(({ verb }) => verb === "patch"),
    [Symbol.asyncDispose]: () => scope.close(),
  };
}

const ready = (node: Node | undefined) => node?.status?.conditions?.find(({ type }) => type === "Ready");

/** A registered node whose status is kept, and was written once. */
async function kept(...how: Parameters<typeof world>) {
  const w = world(...how);
  w.record.note(await w.register());
  await w.clock.advance(1000);
  w.scope.spawn("status", (signal) => w.keeper().run(signal));
  await w.clock.advance(0);
  return w;
}

Deno.test("a node that is not there is created with its whole status; its first events are told once", async () => {
  await using w = world();
  const node = await w.register();
  assert.equal(node.metadata?.uid, w.node()?.metadata?.uid);
  assert.equal(ready(w.node())?.status, "True");
  assert.deepEqual(w.events.nodeEvents.map(({ reason }) => reason), [
    "NodeHasSufficientMemory",
    "NodeHasNoDiskPressure",
    "NodeHasSufficientPID",
  ]);
});

Deno.test("an existing node is brought into line by one patch, or left when it is", async () => {
  await using w = world();
  await w.register();
  w.api.merge(resources.nodes, name, { metadata: { labels: { "kubernetes.io/hostname": "x", theirs: "1" } } });
  const node = await w.register();
  assert.equal(node.metadata?.labels?.["kubernetes.io/hostname"], "n1");
  assert.equal(w.node()?.metadata?.labels?.theirs, "1");
  assert.deepEqual(w.patches().map(({ subresource, body }) => [subresource, body]), [
    ["status", { metadata: { labels: { "kubernetes.io/hostname": "n1" } } }],
  ]);
  await w.register();
  assert.equal(w.patches().length, 1);
});

Deno.test("registration is tried again after 100 ms, doubled up to 7 s, until the server is there", async () => {
  await using w = world();
  const fault = w.api.faults.add({ kind: "unreachable" });
  w.scope.spawn("register", async (signal) => w.record.note(await w.register(signal)));
  await w.clock.advance(30_000);
  const begin = w.api.calls[0]?.at ?? 0;
  const gaps = w.api.calls.map(({ at }) => at - begin).map((at, i, all) => at - (all[i - 1] ?? at));
  assert.deepEqual(gaps, [0, 100, 200, 400, 800, 1600, 3200, 6400, 7000, 7000]);
  fault[Symbol.dispose]();
  await w.clock.advance(7000);
  assert(w.record.node);
  assert.equal(w.log.lines.filter(({ level }) => level === "error").length, 1);
  assert.equal(w.events.nodeEvents.length, 3);
});

Deno.test("who may not create nodes finds his own; without one he is told the refusal", async () => {
  await using w = world();
  const error = new ApiError("nodes is forbidden", { status: 403, reason: "Forbidden" });
  w.api.faults.add({ kind: "status", error }, { verb: "create" });
  w.scope.spawn("register", async (signal) => w.record.note(await w.register(signal)));
  await w.clock.advance(0);
  assert.equal(w.log.lines.find(({ level }) => level === "error")?.fields.error, "nodes is forbidden");
  w.api.create(resources.nodes, { metadata: name });
  await w.clock.advance(100);
  assert.equal(w.record.node?.metadata?.labels?.["kubernetes.io/arch"], "amd64");
});

Deno.test("a status that is true already is written once after the start, then once a report period", async () => {
  await using w = await kept();
  assert.equal(w.patches().length, 1);
  await w.clock.advance(299_000);
  assert.equal(w.patches().length, 1);
  await w.clock.advance(20_000);
  assert.equal(w.patches().length, 2);
  const body = w.patches()[1]?.body as { status: Record<string, unknown> };
  assert.deepEqual(Object.keys(body.status).sort(), ["$setElementOrder/conditions", "conditions"]);
});

Deno.test("after a change the next report comes up to half a period sooner or later, then in fixed periods", async () => {
  await using w = await kept(0);
  await w.clock.advance(165_000);
  assert.equal(w.patches().length, 2, "150 s after the first");
  await w.clock.advance(280_000);
  assert.equal(w.patches().length, 2);
  await w.clock.advance(20_000);
  assert.equal(w.patches().length, 3);
});

Deno.test("readiness and pressure are written within a second, other changes at the next look", async () => {
  await using w = await kept();
  await w.clock.advance(2000);
  w.set({ troubles: ["container runtime is down"] });
  await w.clock.advance(1000);
  assert.equal(ready(w.node())?.message, "container runtime is down");
  w.set({ pressure: new Set(["DiskPressure"]) });
  await w.clock.advance(1000);
  assert.equal(w.node()?.status?.conditions?.find(({ type }) => type === "DiskPressure")?.status, "True");
  w.set({ troubles: ["container runtime is down", "more"] });
  await w.clock.advance(5000);
  assert.equal(ready(w.node())?.message, "container runtime is down");
  await w.clock.advance(6000);
  assert.equal(ready(w.node())?.message, "[container runtime is down, more]");
  assert.deepEqual(w.events.nodeEvents.slice(3).map(({ reason }) => reason), ["NodeNotReady", "NodeHasDiskPressure"]);
});

Deno.test("a node that becomes ready after the start says so within a tenth of a second", async () => {
  await using w = world();
  w.set({ troubles: ["container runtime status check may not have completed yet"] });
  w.record.note(await w.register());
  assert.equal(ready(w.node())?.status, "False");
  w.scope.spawn("status", (signal) => w.keeper().run(signal));
  await w.clock.advance(3000);
  assert.equal(w.patches().length, 0);
  w.set({ troubles: [] });
  await w.clock.advance(100);
  assert.equal(ready(w.node())?.status, "True");
});

Deno.test("over a restart a ready node stays ready while nothing is known, and is told unready when it lasts", async () => {
  await using w = world();
  await w.register();
  w.set({ troubles: ["container runtime status check may not have completed yet"] });
  w.record.note(await w.register());
  w.scope.spawn("status", (signal) => w.keeper().run(signal));
  await w.clock.advance(9_900);
  assert.equal(ready(w.node())?.status, "True");
  await w.clock.advance(200);
  assert.equal(ready(w.node())?.status, "False");
});

Deno.test("a write that fails is tried five times, then left to the next look; what others wrote is not lost", async () => {
  await using w = await kept();
  const fault = w.api.faults.add({ kind: "unreachable" });
  w.set({ troubles: ["x"] });
  const before = w.api.calls.length;
  await w.clock.advance(1000);
  assert.equal(w.api.calls.length - before, 5);
  fault[Symbol.dispose]();
  w.api.merge(resources.nodes, name, { metadata: { annotations: { theirs: "1" } } });
  await w.clock.advance(12_000);
  assert.equal(ready(w.node())?.message, "x");
  assert.equal(w.node()?.metadata?.annotations?.theirs, "1");
});

Deno.test("a conflict is settled by the server's own copy", async () => {
  await using w = await kept();
  const error = new ApiError("changed", { status: 409, reason: "Conflict" });
  w.api.faults.add({ kind: "status", error }, { verb: "patch" }, 1);
  w.set({ troubles: ["x"] });
  await w.clock.advance(1000);
  assert.equal(ready(w.node())?.message, "x");
  assert.deepEqual(w.api.calls.slice(-3).map(({ verb }) => verb), ["patch", "get", "patch"]);
});

Deno.test("an object that was deleted is not made again; it is told, and one that comes back is taken up", async () => {
  await using w = await kept();
  w.api.remove(resources.nodes, name);
  w.record.gone();
  await w.clock.advance(60_000);
  assert.equal(w.node(), undefined);
  assert.equal(w.log.lines.filter(({ level, message }) => level === "error" && /deleted/.test(message)).length, 1);
  w.api.create(resources.nodes, { metadata: name });
  await w.clock.advance(11_000);
  assert.equal(ready(w.node())?.status, "True");
});

Deno.test("a reboot is told once, when the status that shows it is written", async () => {
  await using w = world();
  await w.register();
  w.state.profile = { ...testProfile, info: { ...testProfile.info, bootID: "other" } };
  w.record.note(await w.register());
  const fault = w.api.faults.add({ kind: "unreachable" });
  w.scope.spawn("status", (signal) => w.keeper().run(signal));
  await w.clock.advance(1000);
  const told = () => w.events.nodeEvents.filter(({ reason }) => reason === "Rebooted");
  assert.equal(told().length, 0);
  fault[Symbol.dispose]();
  await w.clock.advance(30_000);
  assert.deepEqual(told().map(({ message }) => message), ["Node n1 has been rebooted, boot id: other"]);
});

Deno.test("cordoning is told as an event", async () => {
  await using w = await kept();
  w.record.note(w.api.merge(resources.nodes, name, { spec: { unschedulable: true } }));
  await w.clock.advance(11_000);
  assert.equal(w.events.nodeEvents.at(-1)?.reason, "NodeNotSchedulable");
});

Deno.test("a clock that steps makes no node unready for what only seems old; the status goes on after it", async () => {
  const fake = new FakeClock();
  let step = 0;
  const clock: Clock = {
    now: () => fake.now() + step,
    sleep: (ms, signal) => fake.sleep(ms, signal),
    after: (ms, run) => fake.after(ms, run),
  };
  await using w = await kept(0.5, fake, clock);
  for (const by of [3_600_000, -7_200_000]) {
    await w.clock.advance(20_000);
    step += by;
    w.set({ troubles: ["container runtime is down"] });
    await w.clock.advance(5000);
    assert.equal(ready(w.node())?.status, "True", `stepped by ${by}`);
    w.set({ troubles: [] });
    await w.clock.advance(320_000);
    const beat = ready(w.node())?.lastHeartbeatTime ?? "";
    assert(Math.abs(clock.now() - Date.parse(beat)) < 310_000, `stepped by ${by}: heartbeat ${beat}`);
  }
  w.set({ troubles: ["container runtime is down"] });
  await w.clock.advance(1000);
  assert.equal(ready(w.node())?.status, "False");
});

Deno.test("record: newer versions win, a deletion is that object's only, waiting ends with it", async () => {
  const record = new NodeRecord();
  const seen: (string | undefined)[] = [];
  using _listener = record.onChange((node) => seen.push(node?.metadata?.resourceVersion));
  const version = (resourceVersion: string, uid = "u") => ({ metadata: { name: "n1", uid, resourceVersion } });
  const waiting = record.whenKnown(new AbortController().signal);
  record.change({ type: "added", object: version("9") });
  assert.equal((await waiting).metadata?.resourceVersion, "9");
  record.note(version("10"));
  record.change({ type: "updated", object: version("9") });
  record.note(version("10"));
  assert.equal(record.node?.metadata?.resourceVersion, "10");
  record.change({ type: "deleted", object: version("11", "other") });
  assert(record.node);
  record.note(version("3", "new"));
  record.change({ type: "deleted", object: version("4", "new") });
  assert.equal(record.node, undefined);
  assert.deepEqual(seen, ["9", "10", "3", undefined]);
  const ended = new AbortController();
  const refused = assert.rejects(record.whenKnown(ended.signal), { code: "Aborted" });
  ended.abort();
  await refused;
  await turn();
});
