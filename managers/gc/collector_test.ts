import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import type { ContainerStatus } from "../../cri/gen/runtime_pb.ts";
import { isAborted } from "../../mod/base/errors.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { ObservedContainer } from "../../mod/pod/observed.ts";
import { createContainerGC } from "./collector.ts";

const because = { reason: "Test", message: "a test asks for it" };
const signal = new AbortController().signal;

function rig() {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock, random: seeded(1), images: [{ name: "app" }] });
  const events = new RecordingEvents();
  const log = new RecordingLogger();
  const gone = new Set<string>();
  const ended = new Set<string>();
  const did: string[] = [];
  const state = { ready: true, logsFail: false };
  const gc = createContainerGC({
    runtime,
    clock,
    log,
    events,
    logs: {
      removeContainerLogs(status: ContainerStatus) {
        if (state.logsFail) return Promise.reject(new Error("disk full of logs"));
        did.push(`logs ${status.labels["io.kubernetes.container.name"]}`);
        return Promise.resolve();
      },
      removeLogDirs(mayGo) {
        did.push(`dirs ${["p", "q"].filter(mayGo).join()}`);
        return Promise.resolve();
      },
      sweepLinks() {
        did.push("links");
        return Promise.resolve();
      },
    },
    pods: {
      sourcesReady: () => state.ready,
      contentMayGo: (uid) => gone.has(uid),
      runtimeMayGo: (uid) => ended.has(uid),
    },
  });
  const labelsOf = (uid: string) => ({
    "io.kubernetes.pod.name": `pod-${uid}`,
    "io.kubernetes.pod.namespace": "n",
    "io.kubernetes.pod.uid": uid,
  });
  const configOf = (uid: string, attempt = 0, labels: Record<string, string> = labelsOf(uid)) => ({
    metadata: { name: `pod-${uid}`, namespace: "n", uid, attempt },
    labels,
    logDirectory: `/var/log/pods/n_pod-${uid}_${uid}`,
  });
  const sandbox = async (uid: string, attempt?: number, labels?: Record<string, string>) =>
    await runtime.runPodSandbox(configOf(uid, attempt, labels), "", { because });
  const container = async (uid: string, sandboxId: string, attempt: number, dead = true) => {
    const id = await runtime.createContainer({
      sandboxId,
      config: {
        metadata: { name: "c", attempt },
        image: { image: "app" },
        labels: { ...labelsOf(uid), "io.kubernetes.container.name": "c" },
        logPath: `c/${attempt}.log`,
      },
      sandboxConfig: configOf(uid),
    }, { because });
    await runtime.startContainer(id, { because });
    if (dead) await runtime.stopContainer(id, 2, { because });
    await clock.advance(1000);
    return id;
  };
  const left = async () => ({
    containers: (await runtime.listContainers()).map((c) => c.id).sort(),
    sandboxes: (await runtime.listPodSandboxes()).map((s) => s.id).sort(),
  });
  return { clock, runtime, events, log, gone, ended, did, state, gc, sandbox, container, left };
}

Deno.test("a collection: old instances go, logs before their container, each call with its reason", async () => {
  const { gc, sandbox, container, left, did, runtime } = rig();
  const box = await sandbox("p");
  await container("p", box, 0);
  await container("p", box, 1);
  const kept = [await container("p", box, 2), await container("p", box, 3, false)].sort();
  await gc.collect(signal);
  assert.deepEqual(await left(), { containers: kept, sandboxes: [box] });
  assert.deepEqual(did, ["logs c", "logs c", "dirs ", "links"]);
  const removals = runtime.calls.filter((c) => c.call === "RemoveContainer");
  assert.deepEqual(removals.map((c) => c.because), ["DeadContainerLimit", "DeadContainerLimit"]);
});

Deno.test("a pod that is gone loses containers and sandboxes; one whose container runs keeps its sandbox", async () => {
  const { gc, sandbox, container, left, gone, did, runtime } = rig();
  const [a, b] = [await sandbox("p"), await sandbox("q")];
  await container("p", a, 0);
  const alive = await container("q", b, 0, false);
  await runtime.stopPodSandbox(a, { because });
  gone.add("p").add("q");
  await gc.collect(signal);
  assert.deepEqual(await left(), { containers: [alive], sandboxes: [b] });
  assert.deepEqual(did, ["logs c", "dirs p,q", "links"]);
});

Deno.test("before all sources are heard nothing counts as gone", async () => {
  const { gc, sandbox, container, left, gone, did, state, runtime } = rig();
  const box = await sandbox("p");
  const id = await container("p", box, 0);
  await runtime.stopPodSandbox(box, { because });
  gone.add("p");
  state.ready = false;
  await gc.collect(signal);
  assert.deepEqual(await left(), { containers: [id], sandboxes: [box] });
  assert.deepEqual(did, ["links"]);
});

Deno.test("under disk pressure what is left of ended pods goes too, but not their log directories", async () => {
  const { gc, sandbox, container, left, ended, did } = rig();
  const box = await sandbox("p");
  await container("p", box, 0);
  ended.add("p");
  await gc.collect(signal);
  assert.equal((await left()).containers.length, 1);
  did.length = 0;
  await gc.collect(signal, { unused: true });
  assert.equal((await left()).containers.length, 0);
  assert.deepEqual(did, ["logs c", "dirs ", "links"]);
});

Deno.test("what is not the agent's stays", async () => {
  const { gc, sandbox, left, gone, runtime } = rig();
  const box = await sandbox("x", 0, {});
  await runtime.stopPodSandbox(box, { because });
  gone.add("").add("x");
  await gc.collect(signal);
  assert.deepEqual((await left()).sandboxes, [box]);
});

Deno.test("a container whose logs cannot be removed stays, and so does its sandbox; the rest goes on", async () => {
  const { gc, sandbox, container, left, gone, state, log, runtime } = rig();
  const [a, b] = [await sandbox("p"), await sandbox("q")];
  const id = await container("p", a, 0);
  for (const box of [a, b]) await runtime.stopPodSandbox(box, { because });
  gone.add("p").add("q");
  state.logsFail = true;
  await gc.collect(signal);
  assert.deepEqual(await left(), { containers: [id], sandboxes: [a] });
  assert.deepEqual(log.lines.map((l) => [l.level, l.message, l.fields.id]), [[
    "warn",
    "Container cannot be removed yet",
    id,
  ]]);
});

Deno.test("a removal that hangs holds up its own pod's only", async () => {
  const t = rig();
  const ids = new Map<string, string>();
  for (const uid of ["p", "q"]) ids.set(uid, await t.container(uid, await t.sandbox(uid), 0));
  t.gone.add("p").add("q");
  t.runtime.faults = (call, target) =>
    call === "RemoveContainer" && target === ids.get("p") ? { hang: true } : undefined;
  const collecting = t.gc.collect(new AbortController().signal);
  await t.clock.advance(1000);
  assert.deepEqual((await t.left()).containers, [ids.get("p")]);
  // Its call ends by its own deadline, and so does the collection.
  await t.clock.advance(600_000);
  await collecting;
});

Deno.test("a runtime that cannot list fails the collection with the node's event, after the links were swept", async () => {
  const { gc, runtime, events, did } = rig();
  const error = new RuntimeError("ListContainers", grpcCode.Unavailable, "down");
  runtime.faults = (call) => call === "ListContainers" ? { error } : undefined;
  await assert.rejects(gc.collect(signal), error);
  assert.deepEqual(events.nodeEvents, [{ type: "Warning", reason: "ContainerGCFailed", message: error.message }]);
  assert.deepEqual(did, ["dirs ", "links"]);
});

Deno.test("trim removes the extra dead instances of the name that died", async () => {
  const { gc, sandbox, container, left, runtime } = rig();
  const box = await sandbox("p");
  const ids = [await container("p", box, 0), await container("p", box, 1), await container("p", box, 2)];
  const observed = {
    uid: "p",
    name: "pod-p",
    namespace: "n",
    sandboxes: [],
    readAt: 0,
    containers: ids.map((id, i) => ({ id, name: "c", createdAt: i, state: "exited" }) as ObservedContainer).reverse(),
  };
  await runtime.removeContainer(ids[0] ?? "", { because });
  await gc.trim(observed, { containerId: ids[2] ?? "", signal });
  assert.deepEqual((await left()).containers, [ids[2]]);
  await gc.trim(observed, { all: true, signal });
  assert.deepEqual((await left()).containers, []);
});

Deno.test("removeContainer keeps the logs when told to, and a container that is gone is no error", async () => {
  const { gc, sandbox, container, did } = rig();
  const id = await container("p", await sandbox("p"), 0);
  await gc.removeContainer(id, { because, keepLogs: true });
  await gc.removeContainer(id, { because });
  assert.deepEqual(did, []);
});

Deno.test("a container is removed by one at a time, and who waits for another's removal can be called off", async () => {
  const { gc, runtime, sandbox, container, clock } = rig();
  const id = await container("p", await sandbox("p"), 0);
  let calls = 0;
  runtime.faults = (call) => call === "RemoveContainer" && ++calls === 1 ? { hang: true } : undefined;
  const first = new AbortController(), second = new AbortController();
  const hangs = gc.removeContainer(id, { because, keepLogs: true, signal: first.signal });
  const waits = gc.removeContainer(id, { because, keepLogs: true, signal: second.signal });
  const goes = gc.removeContainer(id, { because, keepLogs: true });
  await clock.advance(1);
  assert.equal(calls, 1);
  second.abort();
  await assert.rejects(waits, isAborted);
  first.abort();
  await assert.rejects(hangs, isAborted);
  await goes;
  assert.equal(calls, 2);
  assert.deepEqual(await runtime.listContainers(), []);
});
