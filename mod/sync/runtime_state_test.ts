import assert from "@assert";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { FakeClock } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { seeded } from "../base/random.ts";
import { RuntimeState } from "./runtime_state.ts";

function setUp() {
  const clock = new FakeClock();
  const fail = { now: false };
  const runtime = new FakeRuntime({
    clock,
    random: seeded(1),
    faults: (call) => fail.now ? { error: new RuntimeError(call, grpcCode.Unavailable, "no such socket") } : undefined,
  });
  let ready = 0;
  const log = new RecordingLogger();
  const state = new RuntimeState({ runtime, clock, log, onReady: () => ready++ });
  const look = async () => {
    const looking = state.check(new AbortController().signal);
    await clock.advance(1);
    await looking;
  };
  return { clock, fail, runtime, state, log, look, ready: () => ready };
}

Deno.test("before the first look nothing is ready", () => {
  const { state } = setUp();
  assert.match(state.runtimeError!, /may not have completed yet/);
  assert.match(state.networkError!, /may not have completed yet/);
});

Deno.test("a healthy runtime is ready, and that is told once", async () => {
  const t = setUp();
  await t.look();
  await t.look();
  assert.deepEqual([t.state.runtimeError, t.state.networkError, t.ready()], [undefined, undefined, 1]);
  assert.equal(t.state.features?.supplementalGroupsPolicy, true);
});

Deno.test("a network that is not ready is named with its reason, and its return told", async () => {
  const t = setUp();
  t.runtime.notReady.network = "cni plugin not initialized";
  await t.look();
  const text = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady " +
    "message:cni plugin not initialized";
  assert.equal(t.state.networkError, text);
  assert.deepEqual(t.state.troubles, { down: undefined, notReady: undefined, network: text });
  delete t.runtime.notReady.network;
  await t.look();
  assert.deepEqual([t.state.networkError, t.ready()], [undefined, 2]);
});

Deno.test("a runtime that does not answer is down, said once, and recovers", async () => {
  const t = setUp();
  t.fail.now = true;
  await t.look();
  await t.look();
  assert.equal(t.state.runtimeError, "container runtime is down: no such socket");
  assert.equal(t.log.lines.filter((l) => l.level === "error").length, 1);
  t.fail.now = false;
  await t.look();
  assert.equal(t.state.runtimeError, undefined);
});

Deno.test("a runtime whose last good answer is old is down", async () => {
  const t = setUp();
  await t.look();
  await t.clock.advance(30_001);
  assert.equal(t.state.runtimeError, "container runtime is down");
});

Deno.test("the node's troubles: unknown before the first answer; a failed call is none until the runtime counts as down", async () => {
  const t = setUp();
  const unknown = "container runtime status check may not have completed yet";
  assert.deepEqual(t.state.troubles, { down: unknown, notReady: undefined, network: "network state unknown" });
  await t.look();
  t.fail.now = true;
  await t.clock.advance(5000);
  await t.look();
  assert.deepEqual(t.state.troubles, { down: undefined, notReady: undefined, network: undefined });
  await t.clock.advance(25_000);
  assert.equal(t.state.troubles.down, "container runtime is down");
  t.fail.now = false;
  t.runtime.notReady.runtime = "starting";
  await t.look();
  assert.match(
    t.state.troubles.notReady ?? "",
    /^container runtime not ready: RuntimeReady=false reason:\S+ message:starting$/,
  );
});
