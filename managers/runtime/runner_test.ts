import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { Backoff } from "../../mod/base/backoff.ts";
import { turn } from "../../mod/base/fake_clock.ts";
import { podContainers } from "../../mod/kube/pod.ts";
import type { PodStatus } from "../../mod/kube/types.ts";
import { type ObservedContainer, unobserved } from "../../mod/pod/observed.ts";
import { StartError } from "./types.ts";
import { container, image, makePod, seen, setUp, start, why } from "./runner_testing.ts";

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
  assert.deepEqual(t.tries, ["regular ErrImagePull", "regular started"]);
  const initPod = makePod({ initContainers: [container("a"), container("c", { restartPolicy: "Always" })] });
  const i = setUp({ imageError, pod: initPod });
  const init = await i.apply({ ...sandboxed, start: [start("init", "a"), start("init", "c")] });
  assert.deepEqual(init.result?.started, []);
  assert.deepEqual(i.tries, ["init ErrImagePull"]);
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
  assert.deepEqual(t.tries, ["regular RunContainerError", "regular CreateContainerError"]);
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
  assert.equal(t.tries[0], "ephemeral started");
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
