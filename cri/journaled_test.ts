import assert from "@assert";
import { FakeClock } from "../mod/base/fake_clock.ts";
import { Journal } from "../mod/base/journal.ts";
import { seeded } from "../mod/base/random.ts";
import { grpcCode, type ImageService, RuntimeError, type RuntimeService } from "./api.ts";
import { FakeRuntime } from "./fake/runtime.ts";
import { journaledImages, journaledRuntime } from "./journaled.ts";

const because = { reason: "Test", message: "because the test says so" };
const options = { because };
const metadata = { name: "web", namespace: "default", uid: "u1" };

function scene() {
  const clock = new FakeClock();
  const fake = new FakeRuntime({ clock, random: seeded(1) });
  const journal = new Journal({ clock });
  return { clock, fake, journal, runtime: journaledRuntime(fake, journal), images: journaledImages(fake, journal) };
}

Deno.test("each mutating call leaves exactly one record: method, target, reason", async () => {
  const calls: [string, string, (runtime: RuntimeService, images: ImageService) => Promise<unknown>][] = [
    ["UpdateRuntimeConfig", "10.0.0.0/24", (r) => r.updateRuntimeConfig("10.0.0.0/24", options)],
    ["RunPodSandbox", "web", (r) => r.runPodSandbox({ metadata }, "", options)],
    ["StopPodSandbox", "s", (r) => r.stopPodSandbox("s", options)],
    ["RemovePodSandbox", "s", (r) => r.removePodSandbox("s", options)],
    [
      "UpdatePodSandboxResources",
      "s",
      (r) => r.updatePodSandboxResources({ id: "s", overhead: {}, resources: {} }, options),
    ],
    [
      "CreateContainer",
      "main",
      (r) =>
        r.createContainer(
          { sandboxId: "s", config: { metadata: { name: "main" } }, sandboxConfig: { metadata } },
          options,
        ),
    ],
    ["StartContainer", "c", (r) => r.startContainer("c", options)],
    ["StopContainer", "c", (r) => r.stopContainer("c", 3, options)],
    ["RemoveContainer", "c", (r) => r.removeContainer("c", options)],
    ["UpdateContainerResources", "c", (r) => r.updateContainerResources("c", {}, options)],
    ["ReopenContainerLog", "c", (r) => r.reopenContainerLog("c", options)],
    ["CheckpointContainer", "c", (r) => r.checkpointContainer("c", "/x", 1, options)],
    ["PullImage", "nginx", (_, i) => i.pullImage({ image: { image: "nginx" }, auth: { password: "secret" } }, options)],
    ["RemoveImage", "nginx", (_, i) => i.removeImage({ image: "nginx" }, options)],
  ];
  for (const [method, target, call] of calls) {
    const { fake, journal, runtime, images } = scene();
    await call(runtime, images).catch((thrown) => assert(thrown instanceof RuntimeError));
    assert.equal(journal.records().length, 1, method);
    const [record] = journal.records();
    assert.deepEqual([record?.action, record?.target, record?.reason], [method, target, "Test"]);
    assert.equal(fake.calls.length, 1);
    assert.equal(fake.calls[0]?.call, method);
    assert.equal(JSON.stringify(journal.records()).includes("secret"), false);
  }
});

Deno.test("questions leave none", async () => {
  const questions: ((runtime: RuntimeService, images: ImageService) => Promise<unknown>)[] = [
    (r) => r.version(),
    (r) => r.status({ verbose: false }),
    (r) => r.runtimeConfig(),
    (r) => r.podSandboxStatus("s"),
    (r) => r.listPodSandboxes(),
    (r) => r.listContainers(),
    (r) => r.containerStatus("c"),
    (r) => r.execSync("c", ["true"], 1),
    (r) => r.exec({ containerId: "c" }),
    (r) => r.attach({ containerId: "c" }),
    (r) => r.portForward({ podSandboxId: "s" }),
    (r) => r.containerEvents({ signal: AbortSignal.abort() })[Symbol.asyncIterator]().next(),
    (r) => r.podSandboxStats("s"),
    (r) => r.listPodSandboxStats(),
    (r) => r.containerStats("c"),
    (r) => r.listContainerStats(),
    (_, i) => i.listImages(),
    (_, i) => i.imageStatus({ image: "x" }),
    (_, i) => i.imageFsInfo(),
  ];
  const { fake, journal, runtime, images } = scene();
  for (const question of questions) await question(runtime, images).catch(() => {});
  assert.equal(fake.calls.length, questions.length);
  assert.deepEqual(journal.records(), []);
});

Deno.test("a failure is recorded and thrown on; time is measured", async () => {
  const { clock, fake, journal, runtime } = scene();
  const error = new RuntimeError("StopPodSandbox", grpcCode.Internal, "cni is broken");
  fake.faults = () => ({ delayMs: 1_500, error });
  const stop = assert.rejects(runtime.stopPodSandbox("s", options), error);
  await clock.advance(1_500);
  await stop;
  const [record] = journal.records();
  assert.deepEqual([record?.tookMs, record?.error], [1_500, "StopPodSandbox: cni is broken"]);
});
