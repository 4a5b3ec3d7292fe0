import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import type { Fault } from "../../cri/fake/program.ts";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { seeded } from "../base/random.ts";
import { label } from "./observe.ts";
import { Pleg, type PlegEvent } from "./pleg.ts";

const because = { reason: "Test", message: "test" };

function setUp(flavour: "1.6" | "2" = "1.6") {
  const clock = new FakeClock();
  let fault: (call: string, target: string | undefined) => Fault | undefined = () => undefined;
  const runtime = new FakeRuntime({ clock, random: seeded(1), flavour, faults: (c, t) => fault(c, t) });
  const events: PlegEvent[] = [];
  const runtimeState: boolean[] = [];
  const log = new RecordingLogger();
  const told = { relists: 0, ofOne: 0, opened: 0, broke: 0, events: 0 };
  const pleg = new Pleg({
    meter: {
      relist: () => told.relists++,
      relistOfOne: () => told.ofOne++,
      eventStream: (broke) => broke ? told.broke++ : told.opened++,
      runtimeEvent: () => told.events++,
    },
    runtime,
    clock,
    log,
    terminationMessage: (_uid, status) => Promise.resolve(`${status.message}!`),
    onEvent: (e) => events.push(e),
    onRuntime: (up) => runtimeState.push(up),
  });
  const abort = new AbortController();
  return {
    clock,
    runtime,
    pleg,
    events,
    runtimeState,
    told,
    log,
    signal: abort.signal,
    abort,
    setFault: (f: typeof fault) => fault = f,
  };
}

async function addPod(runtime: FakeRuntime, uid: string) {
  const labels = { [label.podUid]: uid, [label.podName]: `p${uid}`, [label.podNamespace]: "default" };
  const metadata = { name: `p${uid}`, namespace: "default", uid, attempt: 0 };
  const sandboxConfig = { metadata, labels, logDirectory: "/logs" };
  const sandboxId = await runtime.runPodSandbox(sandboxConfig, "", { because });
  const id = await runtime.createContainer({
    sandboxId,
    sandboxConfig,
    config: {
      metadata: { name: "c", attempt: 2 },
      image: { image: "localhost/busybox:1" },
      labels: { ...labels, [label.container]: "c" },
      annotations: { [label.hash]: "8e45cbd0", [label.restartCount]: "2" },
      logPath: "c/2.log",
    },
  }, { because });
  return { sandboxId, id };
}

/** Runs a promise to its end while the fake runtime's own timers pass. */
async function run<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let done = false;
  const ended = promise.finally(() => done = true);
  while (!done) {
    await turn();
    if (!done && !await clock.step()) break;
  }
  return await ended;
}

async function prepared(flavour: "1.6" | "2" = "1.6") {
  const t = setUp(flavour);
  await run(t.clock, t.runtime.pullImage({ image: { image: "localhost/busybox:1" } }, { because }));
  return t;
}

Deno.test("a relist pictures pods whole, and tells each change once", async () => {
  const t = await prepared();
  const { id, sandboxId } = await run(t.clock, addPod(t.runtime, "1"));
  await run(t.clock, t.pleg.relist(t.signal, true));
  const picture = t.pleg.get("1")!;
  assert.deepEqual([picture.name, picture.sandboxes[0]?.id, picture.sandboxes[0]?.ready], ["p1", sandboxId, true]);
  assert.equal(picture.sandboxes[0]?.ips.length, 1);
  const container = picture.containers[0]!;
  assert.deepEqual([container.id, container.state, container.restartCount, container.hash], [
    id,
    "created",
    2,
    0x8e45cbd0,
  ]);
  await run(t.clock, t.pleg.relist(t.signal, true));
  assert.equal(t.events.length, 1);
  await run(t.clock, t.runtime.startContainer(id, { because }));
  await t.clock.advance(1000);
  await run(t.clock, t.pleg.relist(t.signal, true));
  assert.deepEqual([t.events.length, t.pleg.get("1")?.containers[0]?.state], [2, "running"]);
});

Deno.test("an exit is told as a death, with its termination message", async () => {
  const t = await prepared();
  const { id } = await run(t.clock, addPod(t.runtime, "1"));
  await run(t.clock, t.runtime.startContainer(id, { because }));
  await run(t.clock, t.pleg.relist(t.signal, true));
  t.runtime.exitContainer(id, 3, "Error");
  await t.clock.advance(1000);
  await run(t.clock, t.pleg.relist(t.signal, true));
  assert.equal(t.events.at(-1)?.died, true);
  const container = t.pleg.get("1")!.containers[0]!;
  assert.deepEqual([container.state, container.exitCode, container.message.endsWith("!")], ["exited", 3, true]);
});

Deno.test("a pod that the runtime forgot is told as gone", async () => {
  const t = await prepared();
  const { sandboxId } = await run(t.clock, addPod(t.runtime, "1"));
  await run(t.clock, t.pleg.relist(t.signal, true));
  await run(t.clock, t.runtime.stopPodSandbox(sandboxId, { because }));
  await run(t.clock, t.runtime.removePodSandbox(sandboxId, { because }));
  await t.clock.advance(1000);
  await run(t.clock, t.pleg.relist(t.signal, true));
  assert.equal(t.events.at(-1)?.observed, undefined);
  assert.equal(t.pleg.get("1"), undefined);
});

Deno.test("a status call that hangs holds up neither the relist nor other pods", async () => {
  const t = await prepared();
  const { id } = await run(t.clock, addPod(t.runtime, "1"));
  t.setFault((call, target) => call === "ContainerStatus" && target === id ? { hang: true } : undefined);
  await run(t.clock, t.pleg.relist(t.signal));
  await run(t.clock, addPod(t.runtime, "2"));
  await t.clock.advance(1000);
  await run(t.clock, t.pleg.relist(t.signal));
  await turn();
  assert.deepEqual([t.pleg.get("1"), t.pleg.get("2")?.name], [undefined, "p2"]);
  t.setFault(() => undefined);
  await t.clock.advance(130_000);
  await run(t.clock, t.pleg.relist(t.signal, true));
  assert.equal(t.pleg.get("1")?.name, "p1");
});

Deno.test("a runtime that does not answer is told once, and so is its return", async () => {
  const t = await prepared();
  await run(t.clock, t.pleg.relist(t.signal));
  t.setFault((call) => ({ error: new RuntimeError(call, grpcCode.Unavailable, "connection refused") }));
  assert.equal(await run(t.clock, t.pleg.relist(t.signal)), false);
  assert.equal(await run(t.clock, t.pleg.relist(t.signal)), false);
  t.setFault(() => undefined);
  assert.equal(await run(t.clock, t.pleg.relist(t.signal)), true);
  assert.deepEqual(t.runtimeState, [true, false, true]);
});

Deno.test("a picture taken by a worker is not overwritten by an older list", async () => {
  const t = await prepared();
  const { id } = await run(t.clock, addPod(t.runtime, "1"));
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  const real = t.runtime.listContainers.bind(t.runtime);
  const slow = new Pleg({
    runtime: {
      listPodSandboxes: (f, o) => t.runtime.listPodSandboxes(f, o),
      podSandboxStatus: (i, o) => t.runtime.podSandboxStatus(i, o),
      containerStatus: (i, o) => t.runtime.containerStatus(i, o),
      containerEvents: (o) => t.runtime.containerEvents(o),
      listContainers: async (f, o) => {
        const list = await real(f, o);
        if (!f) await held;
        return list;
      },
    },
    clock: t.clock,
    log: t.log,
    terminationMessage: (_u, s) => Promise.resolve(s.message),
    onEvent: (e) => t.events.push(e),
  });
  const relist = slow.relist(t.signal, true);
  await turn();
  await run(t.clock, t.runtime.startContainer(id, { because }));
  await run(t.clock, slow.refresh("1"));
  assert.equal(slow.get("1")?.containers[0]?.state, "running");
  release();
  await run(t.clock, relist);
  assert.equal(slow.get("1")?.containers[0]?.state, "running");
});

Deno.test("container events only hasten the look: they re-read the pod", async () => {
  const t = await prepared("2");
  await run(t.clock, t.pleg.relist(t.signal));
  const following = t.pleg.follow(t.signal);
  await turn();
  const { id } = await run(t.clock, addPod(t.runtime, "1"));
  await run(t.clock, t.runtime.startContainer(id, { because }));
  await t.clock.advance(1);
  await turn();
  assert.equal(t.pleg.get("1")?.containers[0]?.state, "running");
  t.abort.abort();
  await following.catch(() => {});
  const { relists, opened, broke, events, ofOne } = t.told;
  assert.deepEqual({ relists, opened, broke }, { relists: 1, opened: 1, broke: 0 });
  assert(events > 0 && ofOne === events, `${events} events, ${ofOne} looks`);
});

Deno.test("a runtime without events ends the following, quietly", async () => {
  const t = await prepared("1.6");
  await run(t.clock, t.pleg.follow(t.signal));
  assert.match(t.log.lines.at(-1)!.message, /no container events/);
  assert.deepEqual([t.told.opened, t.told.broke], [0, 1]);
});

Deno.test("a whole relist is not whole when a pod's state could not be read", async () => {
  const { runtime, pleg, signal, setFault, clock } = await prepared();
  const { id } = await run(clock, addPod(runtime, "1"));
  await run(clock, addPod(runtime, "2"));
  const error = new RuntimeError("ContainerStatus", grpcCode.Unknown, "no");
  setFault((call, target) => call === "ContainerStatus" && target === id ? { error } : undefined);
  assert.equal(await run(clock, pleg.relist(signal, true)), false);
  assert.equal(pleg.get("1"), undefined);
  assert.ok(pleg.get("2"));
  const known = () => [...pleg.all()].map((p) => `${p.name} ${p.containers.length}`).sort();
  assert.deepEqual(known(), ["p1 0", "p2 1"], "it is known by its names");
  setFault(() => undefined);
  assert.equal(await run(clock, pleg.relist(signal, true)), true);
  assert.ok(pleg.get("1"));
  assert.deepEqual(known(), ["p1 1", "p2 1"]);
});
