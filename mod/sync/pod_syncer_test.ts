import assert from "@assert";
import type { CgroupManager } from "../../managers/cgroups/types.ts";
import { type ApplyResult, PodRunner } from "../../managers/runtime/runner.ts";
import { StatusManager } from "../../managers/status/status_manager.ts";
import { waitError } from "../../managers/volumes/wanted.ts";
import { Backoff } from "../base/backoff.ts";
import { FakeClock } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import { Journal } from "../base/journal.ts";
import { silent } from "../base/log.ts";
import { RecordingEvents } from "../kube/events.ts";
import type { BoundPod } from "../kube/types.ts";
import type { ObservedContainer, ObservedPod } from "../pod/observed.ts";
import { backOffKey } from "../pod/hash.ts";
import { generateStatus } from "../pod/status/generate.ts";
import { AgentPodSyncer } from "./pod_syncer.ts";

const pod: BoundPod = {
  metadata: { name: "web", namespace: "default", uid: "u1" },
  spec: {
    restartPolicy: "Never",
    initContainers: [{ name: "side", image: "img", restartPolicy: "Always" }, { name: "first", image: "img" }],
    containers: [{ name: "c", image: "img" }],
  },
};

const container = (name: string, rest: Partial<ObservedContainer>): ObservedContainer => ({
  id: `id-${name}`,
  name,
  restartCount: 0,
  sandboxId: "s",
  state: "running",
  createdAt: 1,
  startedAt: 1,
  finishedAt: 0,
  exitCode: 0,
  reason: "",
  message: "",
  image: "img",
  imageRef: "img",
  hash: undefined,
  annotations: {},
  logPath: "",
  mounts: [],
  ...rest,
});

const picture = (containers: ObservedContainer[], ready = true): ObservedPod => ({
  uid: "u1",
  name: "web",
  namespace: "default",
  readAt: 0,
  containers,
  sandboxes: [{
    id: "s",
    attempt: 0,
    ready,
    createdAt: 0,
    ips: ["10.0.0.2"],
    hostNetwork: false,
    hasNetwork: true,
    handler: "",
  }],
});

/** A syncer whose runtime is what `observed` says; `applied` counts the passes that did something. */
function make(observed: ObservedPod | undefined) {
  const clock = new FakeClock();
  const statuses = new StatusManager();
  const t = {
    observed,
    /** What the relist has; the same as `observed` unless it lags behind. */
    listed: observed,
    unreadable: false,
    applied: 0,
    statuses,
    now: clock.now(),
    events: new RecordingEvents(),
    clock,
    journal: new Journal({ clock }),
    unmount: Promise.resolve(),
    killFails: undefined as Error | undefined,
    mountFails: undefined as Error | undefined,
    backoff: new Backoff({ clock, initial: 10_000, max: 300_000 }),
    deadlineMs: undefined as number | undefined,
  };
  class Runner extends PodRunner {
    constructor() {
      super({} as never);
    }
    override apply(): Promise<ApplyResult> {
      t.applied++;
      return Promise.resolve({ failures: new Map(), started: [] });
    }
    override killPod(): Promise<void> {
      if (t.killFails) return Promise.reject(t.killFails);
      t.observed = picture(
        (t.observed?.containers ?? []).map((c) => c.state === "running" ? { ...c, state: "exited", finishedAt: 2 } : c),
        false,
      );
      return Promise.resolve();
    }
  }
  const syncer = new AgentPodSyncer({
    pleg: {
      readAnew: () => {},
      get: () => t.listed,
      refresh: () => t.unreadable ? Promise.reject(new Error("no answer")) : Promise.resolve(t.listed = t.observed),
    },
    runner: new Runner(),
    volumes: {
      mountPod: () => t.mountFails ? Promise.reject(t.mountFails) : Promise.resolve(new Map()),
      unmountPod: () => t.unmount,
      podsOnDisk: () => Promise.resolve([]),
      retryInMs: () => undefined,
      retryNow: () => {},
      hasVolumes: () => Promise.resolve(false),
    },
    cgroups: {
      podExists: () => Promise.resolve(true),
      ensurePod: () => Promise.resolve(),
      destroyPod: () => Promise.resolve(),
    } as unknown as CgroupManager,
    probes: {
      addPod: () => {},
      observe: () => {},
      stopLivenessAndStartup: () => {},
      removePod: () => {},
      results: () => ({}),
    },
    images: { heldMs: () => 0 },
    statuses,
    backoff: t.backoff,
    journal: t.journal,
    host: new FakeHost(),
    clock,
    events: t.events,
    log: silent,
    status: (p, o, { previous, terminating }) =>
      generateStatus({
        pod: p,
        observed: o,
        ...(previous ? { previous } : {}),
        probes: () => ({}),
        startErrors: () => undefined,
        hostIPs: [],
        now: clock.now(),
        terminating,
        runtimeName: "containerd",
      }),
    deadlineMs: () => t.deadlineMs,
    networkError: () => undefined,
    nodeIPs: [],
    podDir: (uid) => `/root/pods/${uid}`,
    logDir: () => "/logs/u1",
    linkLogs: () => Promise.resolve(),
    removeLogLinks: () => Promise.resolve(),
    onGone: () => {},
  });
  const { signal } = new AbortController();
  const why = { reason: "Test", message: "test" };
  return {
    t,
    sync: (of: BoundPod = pod) => syncer.sync(of, { signal }),
    terminate: () => syncer.terminate(pod, { signal, why, graceSeconds: 1, failed: undefined, since: 0 }),
    release: (removed: boolean) => syncer.release(pod, { signal, removed }),
    phase: () => statuses.get("u1")?.phase,
  };
}

Deno.test("after a pass has done something, nothing is done again by an older picture", async () => {
  const { t, sync } = make(picture([]));
  await sync();
  const once = t.applied;
  assert.ok(once > 0);
  t.unreadable = true;
  await sync();
  // The pass that could not look afterwards has done its work; what it did is not known.
  const before = t.applied;
  const outcome = await sync();
  assert.ok(outcome.error);
  assert.equal(t.applied, before);
  t.unreadable = false;
  await sync();
  assert.equal(t.applied, before + 1);
});

Deno.test("a pod without a picture is looked at before anything is started for it", async () => {
  const { t, sync } = make(undefined);
  t.unreadable = true;
  const outcome = await sync();
  assert.ok(outcome.error);
  assert.equal(t.applied, 0);
  assert.equal(t.statuses.get("u1"), undefined);
});

Deno.test("a terminal phase is told only once nothing of the pod runs", async () => {
  const failed = container("first", { state: "exited", exitCode: 1, finishedAt: 1 });
  const { sync, terminate, phase } = make(picture([failed, container("side", {})]));
  assert.ok((await sync()).terminal);
  assert.equal(phase(), "Pending");
  await terminate();
  assert.equal(phase(), "Failed");
});

Deno.test("a pod that ended without its containers telling how has failed; one that is removed is not touched", async () => {
  const done = container("first", { state: "exited", finishedAt: 1 });
  for (const removed of [false, true]) {
    const { terminate, release, phase } = make(picture([done], false));
    await terminate();
    assert.equal(phase(), "Pending");
    await release(removed);
    assert.equal(phase(), removed ? "Pending" : "Failed");
  }
});

Deno.test("a container that its back-off holds is told of once for each of its ends", async () => {
  const looping: BoundPod = { ...pod, spec: { restartPolicy: "Always", containers: [{ name: "c", image: "img" }] } };
  const { t, sync } = make(undefined);
  const ended = (id: string) => picture([container("c", { id, state: "exited", finishedAt: t.now })]);
  t.observed = t.listed = ended("first");
  t.backoff.step(backOffKey(looping, looping.spec.containers[0] ?? { name: "" }));
  await sync(looping);
  await sync(looping);
  t.observed = t.listed = ended("next");
  await sync(looping);
  const event = {
    pod: looping,
    type: "Warning",
    reason: "BackOff",
    message: "Back-off restarting failed container c in pod web_default(u1)",
    fieldPath: "spec.containers{c}",
  };
  assert.deepEqual(t.events.events, [event, event]);
});

Deno.test("a deadline that has passed is told and ends the pod", async () => {
  const { t, sync } = make(picture([container("c", {})]));
  t.deadlineMs = 0;
  const { terminal, failed } = await sync();
  assert.equal(failed?.reason, "DeadlineExceeded");
  assert.equal(terminal, failed);
  assert.deepEqual(t.events.events, [{ pod, type: "Normal", ...failed }]);
});

Deno.test("a sidecar that ended together with what it served is not started again", async () => {
  const ended = (name: string) => container(name, { state: "exited", exitCode: 1, finishedAt: 1 });
  const first = container("first", { state: "exited", finishedAt: 1 });
  const { t, sync, phase } = make(picture([ended("c"), first, ended("side")]));
  assert.ok((await sync()).terminal);
  assert.equal(t.applied, 0);
  assert.equal(phase(), "Failed");
});

Deno.test("a pass that failed is told once, but for volumes that each had an event of their own", async () => {
  const { t, sync } = make(picture([]));
  t.mountFails = waitError(["a"], [], ["a: no such host"]);
  assert.match((await sync()).error ?? "", /^unmounted volumes=\[a\]/);
  assert.deepEqual(t.events.events, []);
  t.mountFails = waitError(["a"], ["a"], ["a: not supported"]);
  await sync();
  await sync();
  assert.deepEqual(t.events.events.map(({ reason }) => reason), ["FailedSync"]);
});

Deno.test("a pod that cannot be ended is told once for each reason", async () => {
  const { t, terminate: end } = make(picture([container("c", {})]));
  t.killFails = new Error("the runtime hangs");
  await assert.rejects(end(), /the runtime hangs/);
  await assert.rejects(end(), /the runtime hangs/);
  t.killFails = new Error("processes 5 survived");
  await assert.rejects(end());
  assert.deepEqual(t.events.events.map((e) => [e.type, e.reason, e.message]), [
    ["Warning", "FailedKillPod", "error killing pod: the runtime hangs"],
    ["Warning", "FailedKillPod", "error killing pod: processes 5 survived"],
  ]);
  t.killFails = undefined;
  await end();
});

Deno.test("an unmount that lasts is in the journal while it does, with why the pod is ended", async () => {
  const { t, terminate, release } = make(picture([]));
  await terminate();
  const gate = Promise.withResolvers<void>();
  t.unmount = gate.promise;
  const releasing = release(true);
  await t.clock.advance(29_999);
  assert.deepEqual(t.journal.records("u1"), []);
  await t.clock.advance(100_000);
  gate.resolve();
  await releasing;
  assert.deepEqual(t.journal.records("u1").map((r) => [r.action, r.reason, r.message]), [
    ["Waiting", "Test", "test; its volumes are being unmounted, for 30 s now"],
    ["Waiting", "Test", "test; its volumes are being unmounted, for 90 s now"],
    ["Waited", "Test", "test; its volumes are being unmounted: it took 130 s"],
  ]);
  assert.equal(t.clock.pending, 0);
});
