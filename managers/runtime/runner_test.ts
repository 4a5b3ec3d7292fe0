import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import type { Fault } from "../../cri/fake/program.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { Backoff } from "../../mod/base/backoff.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, Container, PodStatus } from "../../mod/kube/types.ts";
import type { PodActions, StartContainer } from "../../mod/pod/actions.ts";
import { type ObservedContainer, type ObservedPod, unobserved } from "../../mod/pod/observed.ts";
import type { GroupKiller } from "../cgroups/types.ts";
import type { ImageManager } from "../images/types.ts";
import { ExitWatch } from "./exit_watch.ts";
import type { HookRunner } from "../lifecycle/types.ts";
import { Killer } from "./kill.ts";
import { PodRunner } from "./runner.ts";
import { Starter } from "./start.ts";
import { type PodBuilder, StartError } from "./types.ts";

const why = { reason: "Test", message: "test" };
const image = "localhost/busybox:1";
const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image, resources: {}, ...more });
const nothing: PodActions = { kill: [], remove: [], start: [], held: [], finished: false };
const start = (kind: StartContainer["kind"], name: string, more: Partial<StartContainer> = {}): StartContainer => ({
  kind,
  name,
  ...why,
  ...more,
});

function makePod(spec: Partial<BoundPod["spec"]> = {}): BoundPod {
  return {
    metadata: { name: "p", namespace: "default", uid: "1" },
    spec: { containers: [container("a"), container("b")], ...spec },
  };
}

function setUp(
  options: {
    pod?: BoundPod;
    imageError?: (name: string) => Error | undefined;
    hookFails?: boolean;
    hook?: (id: string, signal: AbortSignal) => Promise<void>;
    /** Processes in the pod's group. */
    leftovers?: number[];
  } = {},
) {
  const clock = new FakeClock();
  const pod = options.pod ?? makePod();
  let fault: (call: string) => Fault | undefined = () => undefined;
  const runtime = new FakeRuntime({
    clock,
    random: seeded(1),
    images: [{ name: image }],
    faults: (call) => fault(call),
  });
  const events = new RecordingEvents();
  const scope = new Scope("test");
  const links: string[] = [];
  const sandboxIps: (readonly string[])[] = [];
  const targets: (string | undefined)[] = [];
  const hooks: HookRunner = {
    run: ({ containerId, signal }) =>
      options.hook?.(containerId, signal) ??
        (options.hookFails ? Promise.reject(new Error("hook says no")) : Promise.resolve()),
  };
  const images: ImageManager = {
    ensure: ({ container }) => {
      const error = options.imageError?.(container.name);
      return error ? Promise.reject(error) : Promise.resolve({ imageRef: image, uid: 0 });
    },
    heldMs: () => 0,
  };
  const sandbox = (attempt: number) => ({
    metadata: { name: "p", namespace: "default", uid: "1", attempt },
    labels: { "io.kubernetes.pod.uid": "1" },
    logDirectory: "/logs",
  });
  const builder: PodBuilder = {
    handlerOf: () => Promise.resolve(""),
    sandbox: (_pod, attempt) => Promise.resolve(sandbox(attempt)),
    container: (request) => {
      targets.push(request.targetContainerId);
      const { name } = request.container.spec;
      return Promise.resolve({
        metadata: { name, attempt: request.restartCount },
        image: { image: request.image.imageRef },
        logPath: `${name}/${request.restartCount}.log`,
      });
    },
  };
  const exits = new ExitWatch();
  const journal = new Journal({ clock });
  const groups: GroupKiller = {
    processesOf: () => Promise.resolve(options.leftovers ?? []),
    killProcesses: () => Promise.resolve(options.leftovers ?? []),
  };
  const killer = new Killer({ runtime, hooks, groups, journal, clock, events, log: silent });
  const backoff = new Backoff({ clock, initial: 10_000, max: 300_000 });
  const starter = new Starter({
    exits,
    runtime,
    images,
    builder,
    hooks,
    killer,
    clock,
    events,
    log: silent,
    scope,
    logs: {
      prepare: () => Promise.resolve(),
      nextRestartCount: () => Promise.resolve(7),
      link: (_pod, name, _id, count) => {
        links.push(`${name}/${count}`);
        return Promise.resolve();
      },
    },
  });
  const removed: string[] = [];
  const settled = { at: 0 };
  const runner = new PodRunner({
    runtime,
    builder,
    clock,
    sandboxStopMs: 50_000,
    killer,
    starter,
    backoff,
    onBackoff: () => {},
    events,
    log: silent,
    onSandbox: (_pod, ips) => sandboxIps.push(ips),
    removeContainer: (id, { keepLogs, because }) => {
      removed.push(`${id} ${keepLogs} ${because.reason}`);
      return Promise.resolve();
    },
  });
  const apply = async (
    actions: Partial<PodActions>,
    observed: ObservedPod = unobserved(pod, 0),
    status?: PodStatus,
  ) => {
    const applying = runner.apply(pod, observed, { ...nothing, ...actions }, {
      situation: { volumes: new Map(), podIPs: [], status },
      signal: new AbortController().signal,
    }).then((result) => ({ result, error: undefined }), (error: Error) => ({ result: undefined, error }))
      .finally(() => settled.at = clock.now());
    await clock.advance(60_000);
    return await applying;
  };
  const calls = () => runtime.calls.map((c) => c.call).filter((c) => !/Status|List/.test(c));
  return {
    clock,
    runtime,
    events,
    links,
    sandboxIps,
    targets,
    removed,
    exits,
    backoff,
    apply,
    calls,
    scope,
    journal,
    killPod: async (observed: ObservedPod) => {
      const killing = runner.killPod(pod, observed, { why, podIP: undefined, signal: new AbortController().signal })
        .then(() => undefined, (error: Error) => error);
      await clock.advance(300_000);
      return await killing;
    },
    fail: (f: typeof fault) => fault = f,
    /** When the last pass ended. */
    settled,
  };
}

const seen = (id: string, name: string, more: Partial<ObservedContainer> = {}): ObservedContainer => ({
  id,
  name,
  restartCount: 0,
  sandboxId: "s",
  state: "exited",
  createdAt: 1,
  startedAt: 1,
  finishedAt: 2,
  exitCode: 1,
  reason: "Error",
  message: "",
  image,
  imageRef: image,
  hash: undefined,
  annotations: {},
  logPath: "",
  mounts: [],
  ...more,
});

Deno.test("a new pod: sandbox, its address, then each container in order, with a link to its log", async () => {
  const t = setUp();
  const { result } = await t.apply({
    createSandbox: { attempt: 0, ...why },
    start: [start("regular", "a"), start("regular", "b")],
  });
  assert.deepEqual(t.calls(), [
    "RunPodSandbox",
    "CreateContainer",
    "StartContainer",
    "CreateContainer",
    "StartContainer",
  ]);
  assert.deepEqual([result?.started, result?.failures.size, t.sandboxIps.length], [["a", "b"], 0, 1]);
  assert.deepEqual(t.links, ["a/7", "b/7"]);
  assert.deepEqual(t.events.events.map((e) => e.reason), ["Created", "Started", "Created", "Started"]);
});

Deno.test("a sandbox that fails is told, and nothing is started", async () => {
  const t = setUp();
  t.fail((call) =>
    call === "RunPodSandbox" ? { error: new RuntimeError(call, grpcCode.Unknown, "no address left") } : undefined
  );
  const { error } = await t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("regular", "a")] });
  assert.match(error!.message, /no address left/);
  assert.deepEqual(t.events.events.map((e) => e.reason), ["FailedCreatePodSandBox"]);
  assert.equal(t.calls().includes("CreateContainer"), false);
});

Deno.test("a regular container that fails does not hold up the next, a regular init container does", async () => {
  const imageError = (name: string) => name === "a" ? new StartError("ErrImagePull", "no such image") : undefined;
  const t = setUp({ imageError });
  const sandboxed = { createSandbox: { attempt: 0, ...why } };
  const { result } = await t.apply({ ...sandboxed, start: [start("regular", "a"), start("regular", "b")] });
  assert.deepEqual([result?.started, result?.failures.get("a")], [["b"], {
    reason: "ErrImagePull",
    message: "no such image",
  }]);
  const initPod = makePod({ initContainers: [container("a"), container("c", { restartPolicy: "Always" })] });
  const i = setUp({ imageError, pod: initPod });
  const init = await i.apply({ ...sandboxed, start: [start("init", "a"), start("init", "c")] });
  assert.deepEqual(init.result?.started, []);
});

Deno.test("a sidecar that fails is passed over", async () => {
  const sidecar = (name: string) => container(name, { restartPolicy: "Always" });
  const t = setUp({
    pod: makePod({ initContainers: [sidecar("a"), sidecar("c")] }),
    imageError: (name) => name === "a" ? new StartError("ErrImagePull", "no") : undefined,
  });
  const { result } = await t.apply({
    createSandbox: { attempt: 0, ...why },
    start: [start("init", "a"), start("init", "c")],
  });
  assert.deepEqual(result?.started, ["c"]);
});

Deno.test("restart counts go on from what is known: instance, status, or the log files", async () => {
  const counts = async (observed: ObservedContainer[], status?: PodStatus) => {
    const t = setUp();
    const base = { ...unobserved(makePod(), 0), containers: observed };
    await t.apply({ createSandbox: { attempt: 1, ...why }, start: [start("regular", "a")] }, base, status);
    return t.links[0];
  };
  const status = (restartCount: number, containerID?: string): PodStatus => ({
    containerStatuses: [{
      name: "a",
      state: {},
      lastState: {},
      ready: false,
      restartCount,
      image,
      imageID: "",
      ...(containerID ? { containerID } : {}),
    }],
  });
  assert.equal(await counts([seen("x", "a", { restartCount: 3 })]), "a/4");
  // what was made and never started was removed, and is not counted
  assert.equal(await counts([seen("x", "a", { restartCount: 3, state: "created" })]), "a/3");
  // the runtime has lost it: its logs tell, and a status that has already counted the loss does not count it again
  assert.equal(await counts([], status(5, "containerd://x")), "a/7");
  assert.equal(await counts([], status(8, "containerd://x")), "a/8");
  assert.equal(await counts([seen("x", "a", { restartCount: 3 })], status(5, "containerd://x")), "a/6");
  assert.equal(await counts([], status(0)), "a/7");
  assert.equal(await counts([]), "a/7");
});

Deno.test("a start after an exit steps the back-off, also when the start fails", async () => {
  const t = setUp({ imageError: () => new StartError("ErrImagePull", "no") });
  const afterExit = { key: "k", at: t.clock.now() };
  await t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("regular", "a", { afterExit })] });
  assert.equal(t.backoff.delay("k"), 10_000);
  assert.equal(t.backoff.snapshot()["k"]?.under, undefined, "the failed start is one that has ended");
});

Deno.test("a container whose start is under way when the agent is killed is due at once, and counted once", async () => {
  const t = setUp();
  const afterExit = { key: "k", at: t.clock.now() };
  t.fail((call) => call === "StartContainer" ? { hang: true } : undefined);
  const applying = t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("regular", "a", { afterExit })] });
  await turn();
  const kept = t.backoff.snapshot();
  const next = new Backoff({ clock: t.clock, initial: 10_000, max: 300_000 });
  next.restore(kept);
  assert.deepEqual([next.delay("k"), next.remaining("k", afterExit.at)], [10_000, 0]);
  await t.clock.advance(600_000);
  await applying;
});

Deno.test("a postStart hook that fails ends its container", async () => {
  const lifecycle = { postStart: { exec: { command: ["no"] } } };
  const t = setUp({ hookFails: true, pod: makePod({ containers: [container("a", { lifecycle })] }) });
  const { result } = await t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("regular", "a")] });
  assert.equal(result?.failures.get("a")?.reason, "PostStartHookError");
  assert.ok(t.calls().includes("StopContainer"));
  assert.ok(t.events.events.some((e) => e.reason === "FailedPostStartHook"));
});

Deno.test("a container that does not start leaves its reason", async () => {
  const t = setUp();
  t.fail((call) =>
    call === "StartContainer" ? { error: new RuntimeError(call, grpcCode.Unknown, "exec: not found") } : undefined
  );
  const { result } = await t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("regular", "a")] });
  // The runtime's own words: which call of which container it was, event and status tell.
  assert.deepEqual(result?.failures.get("a"), { reason: "RunContainerError", message: "exec: not found" });
  t.fail((call) =>
    call === "CreateContainer" ? { error: new RuntimeError(call, grpcCode.Unknown, "bad mount") } : undefined
  );
  const other = await t.apply({ createSandbox: { attempt: 1, ...why }, start: [start("regular", "a")] });
  assert.equal(other.result?.failures.get("a")?.reason, "CreateContainerError");
});

Deno.test("killing a pod stops its containers, then each sandbox; what is gone counts as stopped", async () => {
  const t = setUp();
  const observed: ObservedPod = {
    ...unobserved(makePod(), 0),
    containers: [seen("gone", "a", { state: "running" }), seen("dead", "b")],
    sandboxes: [{
      id: "none",
      attempt: 0,
      ready: true,
      createdAt: 1,
      ips: [],
      hostNetwork: false,
      hasNetwork: true,
      handler: "",
    }],
  };
  const { error } = await t.apply({ killPod: why }, observed);
  assert.equal(error, undefined);
  assert.deepEqual(t.calls(), ["StopContainer", "StopPodSandbox"]);
});

Deno.test("restarting all containers removes them but keeps their logs; old instances lose theirs", async () => {
  const t = setUp();
  await t.apply({
    remove: [{ id: "old", name: "a", ...why }],
    resetContainers: { ...why, reason: "RestartAll", containers: [{ id: "x", name: "a", live: false }] },
  });
  assert.deepEqual(t.removed, ["old false Test", "x true RestartAll"]);
});

Deno.test("only a regular container's kill says that it will be restarted", async () => {
  const pod = makePod({ initContainers: [container("s", { restartPolicy: "Always" })] });
  const t = setUp({ pod });
  const observed = {
    ...unobserved(pod, 0),
    containers: [seen("x", "a", { state: "running" }), seen("y", "s", { state: "running" })],
  };
  const kill = (id: string, name: string) => ({
    id,
    name,
    reason: "Unhealthy",
    message: `Container ${name} failed liveness probe`,
    restarts: true,
  });
  await t.apply({ kill: [kill("x", "a"), kill("y", "s")] }, observed);
  assert.deepEqual(t.events.events.map((e) => e.message), [
    "Container a failed liveness probe, will be restarted",
    "Container s failed liveness probe",
  ]);
});

Deno.test("an ephemeral container shares the namespaces of its target while that runs", async () => {
  const ephemeralContainers = [{ ...container("debug"), targetContainerName: "a" }];
  const pod = makePod({ ephemeralContainers });
  assert.equal(podContainers(pod).length, 3);
  const t = setUp({ pod });
  const observed = (state: ObservedContainer["state"]) => ({
    ...unobserved(pod, 0),
    containers: [seen("id-a", "a", { state })],
  });
  await t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("ephemeral", "debug")] }, observed("running"));
  await t.apply({ createSandbox: { attempt: 1, ...why }, start: [start("ephemeral", "debug")] }, observed("exited"));
  assert.deepEqual(t.targets, ["id-a", undefined]);
});

Deno.test("a sandbox that cannot be stopped ends the pass only when the stop of the other has ended, too", async () => {
  const t = setUp();
  let stops = 0;
  t.fail((call) => {
    if (call !== "StopPodSandbox") return undefined;
    return stops++ === 0 ? { error: new RuntimeError(call, grpcCode.Unknown, "no") } : { delayMs: 5000 };
  });
  const sandbox = (id: string) => ({
    id,
    attempt: 0,
    ready: true,
    createdAt: 0,
    ips: [],
    hostNetwork: false,
    hasNetwork: true,
    handler: "",
  });
  const { error } = await t.apply({ killPod: why }, {
    ...unobserved(makePod(), 0),
    sandboxes: [sandbox("s1"), sandbox("s2")],
  });
  assert.match(error!.message, /no/);
  const [failed, slow] = t.runtime.calls.filter((c) => c.call === "StopPodSandbox");
  assert.equal(failed!.endedAt, failed!.at);
  assert.ok(t.settled.at >= slow!.endedAt!, "the pass has waited");
});

Deno.test("a postStart hook that never ends is called off when its container ends", async () => {
  const lifecycle = { postStart: { exec: { command: ["for-ever"] } } };
  let id = "";
  const t = setUp({
    pod: makePod({ containers: [container("a", { lifecycle })] }),
    hook: (containerId, signal) => {
      id = containerId;
      return new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(new Error("called off")), { once: true })
      );
    },
  });
  const applying = t.apply({ createSandbox: { attempt: 0, ...why }, start: [start("regular", "a")] });
  await turn();
  const picture = (state: ObservedContainer["state"]) => ({
    ...unobserved(makePod(), 0),
    containers: [seen(id, "a", { state })],
  });
  t.exits.observe(picture("running"));
  await turn();
  assert.equal(t.events.events.some((e) => e.reason === "FailedPostStartHook"), false);
  t.exits.observe(picture("exited"));
  const { result } = await applying;
  assert.match(result?.failures.get("a")?.message ?? "", /the container ended before it/);
});

Deno.test("a sandbox whose stop hangs has its pod's leftovers killed, and its stop fails", async () => {
  const t = setUp({ leftovers: [7] });
  t.fail((call) => call === "StopPodSandbox" ? { hang: true } : undefined);
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
  const error = await t.killPod({ ...unobserved(makePod(), 0), sandboxes: [sandbox] });
  assert.match(error?.message ?? "", /StopPodSandbox s: no answer within 50000 ms/);
  assert.deepEqual(t.journal.records("1").map((r) => [r.action, r.target, r.reason, r.message]), [
    [
      "CgroupKill",
      "1",
      "Test",
      "test; StopPodSandbox did not end within 50 s, so what is left in the pod's group is killed",
    ],
  ]);
});
