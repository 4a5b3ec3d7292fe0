import { create } from "@bufbuild/protobuf";
import assert from "@assert";
import { grpcCode, type ImageService, RuntimeError } from "../../cri/api.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { ImageSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import type { PullCredential } from "./credentials/types.ts";
import { createImageManager, type ImageManagerOptions } from "./manager.ts";
import { type EnsuredImage, ImageError } from "./types.ts";

type Images = Pick<ImageService, "pullImage" | "imageStatus">;

function podOf(uid: string, container: Partial<Container>): BoundPod {
  return {
    metadata: { name: `pod-${uid}`, namespace: "n", uid, annotations: { a: "b" } },
    spec: { containers: [{ name: "c", ...container }] },
  };
}

function rig(given: Partial<ImageManagerOptions> & { images?: Images } = {}) {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock, random: seeded(1) });
  const events = new RecordingEvents();
  const log = new RecordingLogger();
  const manager = createImageManager({
    images: runtime,
    clock,
    log,
    events,
    serialize: false,
    qps: 0,
    burst: 10,
    ...given,
  });
  const ensure = (
    image: string,
    more: { uid?: string; policy?: string; signal?: AbortSignal; handler?: string } = {},
  ) => {
    const container = { name: "c", image, ...(more.policy ? { imagePullPolicy: more.policy } : {}) };
    return manager.ensure({
      pod: podOf(more.uid ?? "u1", container),
      container,
      sandboxConfig: {},
      runtimeHandler: more.handler ?? "",
      signal: more.signal ?? new AbortController().signal,
    });
  };
  const said = () => events.events.splice(0).map((e) => `${e.type} ${e.reason}: ${e.message}`);
  return { clock, runtime, events, log, manager, ensure, said };
}

const calls = (runtime: FakeRuntime, call: string) => runtime.calls.filter((c) => c.call === call).length;
const reasonOf = async (work: Promise<unknown>): Promise<[string, string]> => {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof ImageError) return [thrown.reason, thrown.message];
    throw thrown;
  }
  throw new Error("it did not fail");
};

const user = (username: string): PullCredential => ({ username, password: "", hash: username });

/** An image service whose pulls the test ends one by one. */
function manual() {
  const pulls: { image: string; done: (ref: string) => void; fail: (e: Error) => void; aborted: boolean }[] = [];
  const images: Images = {
    pullImage({ image, auth }, { signal }) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const name = `${image.image}${auth?.username ? `(${auth.username})` : ""}`;
      const pull = { image: name, done: resolve, fail: reject, aborted: false };
      pulls.push(pull);
      signal?.addEventListener("abort", () => {
        pull.aborted = true;
        reject(new RuntimeError("PullImage", grpcCode.Cancelled, "context canceled"));
      }, { once: true });
      return promise;
    },
    imageStatus: (image) =>
      Promise.resolve(create(ImageSchema, { id: `id-${image.image}`, size: 42n, username: "app" })),
  };
  return { pulls, images };
}

Deno.test("pull policies", async () => {
  const cases: { policy?: string; image: string; there: boolean; pulls: number; reason?: string }[] = [
    { policy: "Always", image: "a:1", there: true, pulls: 1 },
    { policy: "Always", image: "a:1", there: false, pulls: 1 },
    { policy: "IfNotPresent", image: "a:1", there: true, pulls: 0 },
    { policy: "IfNotPresent", image: "a:1", there: false, pulls: 1 },
    { policy: "Never", image: "a:1", there: true, pulls: 0 },
    { policy: "Never", image: "a:1", there: false, pulls: 0, reason: "ErrImageNeverPull" },
    { image: "a", there: true, pulls: 1 },
    { image: "a:latest", there: true, pulls: 1 },
    { image: "a:1", there: true, pulls: 0 },
  ];
  for (const { policy, image, there, pulls, reason } of cases) {
    const { runtime, manager, ensure } = rig();
    await using _ = manager;
    if (there) runtime.images.add({ name: image });
    const work = ensure(image, policy ? { policy } : {});
    if (reason) assert.equal((await reasonOf(work))[0], reason);
    else assert.ok((await work).imageRef.length > 0);
    assert.equal(calls(runtime, "PullImage"), pulls, `${policy} ${image} ${there}`);
  }
});

Deno.test("texts of events and errors", async () => {
  const { clock, runtime, manager, ensure, said, events } = rig({
    images: {
      pullImage: async () => {
        await clock.sleep(1234);
        return "ref";
      },
      imageStatus: () => Promise.resolve(create(ImageSchema, { id: "ref", size: 7n })),
    },
  });
  await using _ = manager;
  const pending = ensure("web:1", { policy: "Always" });
  await clock.advance(1234);
  assert.deepEqual(await pending, { imageRef: "ref", uid: 0 });
  assert.equal(events.events[0]?.fieldPath, "spec.containers{c}");
  assert.deepEqual(said(), [
    'Normal Pulling: Pulling image "web:1"',
    'Normal Pulled: Successfully pulled image "web:1" in 1.234s (1.234s including waiting). Image size: 7 bytes.',
  ]);
  await ensure("web:1", { policy: "IfNotPresent" });
  assert.deepEqual(said(), [
    'Normal Pulled: Container image "web:1" already present on machine and can be accessed by the pod',
  ]);
  assert.deepEqual(await reasonOf(ensure("Web:1")), [
    "InvalidImageName",
    'Failed to apply default image tag "Web:1": couldn\'t parse image name "Web:1": ' +
    "invalid reference format: repository name (library/Web) must be lowercase",
  ]);
  assert.match(said()[0] ?? "", /^Warning InspectFailed: Failed to apply default image tag "Web:1"/);
  assert.equal(runtime.calls.length, 0);

  const never = rig();
  await using _n = never.manager;
  await reasonOf(never.ensure("x:1", { policy: "Never" }));
  assert.deepEqual(never.said(), [
    'Warning ErrImageNeverPull: Container image "x:1" is not present with pull policy of Never',
  ]);

  const broken = rig();
  await using _b = broken.manager;
  broken.runtime.faults = () => ({ error: new RuntimeError("ImageStatus", grpcCode.Internal, "disk on fire") });
  assert.deepEqual(await reasonOf(broken.ensure("x:1", { policy: "IfNotPresent" })), [
    "ImageInspectError",
    'Failed to inspect image "x:1": rpc error: code = Internal desc = disk on fire',
  ]);
  assert.match(broken.said().join(), /^Warning InspectFailed: Failed to inspect image "x:1"/);
});

Deno.test("failed pulls: reasons and texts", async () => {
  const cases: [number, string, string, string][] = [
    [grpcCode.Unknown, "boom", "ErrImagePull", "boom"],
    [grpcCode.NotFound, "no such image", "ErrImagePull", "rpc error: code = NotFound desc = no such image"],
    [16, "who are you", "ErrImagePull", "rpc error: code = Unauthenticated desc = who are you"],
    [
      grpcCode.Unknown,
      "RegistryUnavailable: try later",
      "RegistryUnavailable",
      "image pull failed for x:1 because the registry is unavailable: try later",
    ],
    [
      grpcCode.Unknown,
      "SignatureValidationFailed: no key",
      "SignatureValidationFailed",
      "image pull failed for x:1 because the signature validation failed: no key",
    ],
  ];
  for (const [status, details, reason, message] of cases) {
    const { manager, runtime, ensure, said } = rig();
    await using _ = manager;
    const error = new RuntimeError("PullImage", status, details);
    runtime.faults = (call) => call === "PullImage" ? { error } : undefined;
    assert.deepEqual(await reasonOf(ensure("x:1")), [reason, message]);
    assert.match(said()[1] ?? "", /^Warning Failed: Failed to pull image "x:1": /);
  }
});

Deno.test("back-off: 10 s, doubled to 300 s, per pod and image, with the last error in its text", async () => {
  const { clock, manager, runtime, ensure, said } = rig();
  await using _ = manager;
  const error = new RuntimeError("PullImage", grpcCode.Unknown, "boom");
  runtime.faults = (call) => call === "PullImage" ? { error } : undefined;
  assert.deepEqual(await reasonOf(ensure("x:1")), ["ErrImagePull", "boom"]);
  said();
  for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
    assert.equal(manager.heldMs("u1", "x:1"), seconds * 1000);
    await clock.advance(seconds * 1000 - 1);
    assert.deepEqual(await reasonOf(ensure("x:1")), [
      "ImagePullBackOff",
      'Back-off pulling image "x:1": ErrImagePull: boom',
    ]);
    assert.deepEqual(said(), ['Normal BackOff: Back-off pulling image "x:1"']);
    await clock.advance(1);
    assert.equal((await reasonOf(ensure("x:1")))[0], "ErrImagePull");
    said();
  }
  assert.equal(manager.heldMs("u2", "x:1"), 0);
  assert.equal(manager.heldMs("u1", "x:2"), 0);
  assert.equal((await reasonOf(ensure("x:1", { uid: "u2" })))[0], "ErrImagePull");
  // Quiet for more than twice the longest delay: it starts again at 10 s.
  await clock.advance(600_001);
  assert.equal((await reasonOf(ensure("x:1")))[0], "ErrImagePull");
  assert.equal(manager.heldMs("u1", "x:1"), 10_000);
});

Deno.test("an image that came meanwhile by another way ends the back-off", async () => {
  const { manager, runtime, ensure } = rig();
  await using _ = manager;
  const error = new RuntimeError("PullImage", grpcCode.Unknown, "boom");
  runtime.faults = (call) => call === "PullImage" ? { error } : undefined;
  await reasonOf(ensure("x:1"));
  runtime.images.add({ name: "x:1" });
  assert.ok((await ensure("x:1")).imageRef);
});

Deno.test("serial and parallel pulls, in the order of asking", async () => {
  for (
    const [serialize, maxParallel, atOnce] of [[true, undefined, 1], [false, 2, 2], [false, undefined, 4]] as const
  ) {
    const { pulls, images } = manual();
    const { clock, manager, ensure } = rig({ images, serialize, maxParallel });
    await using _ = manager;
    const all = ["a:1", "b:1", "c:1", "d:1"].map((image) => ensure(image, { policy: "Always", uid: image }));
    await clock.advance(0);
    assert.deepEqual(pulls.map((p) => p.image), ["a:1", "b:1", "c:1", "d:1"].slice(0, atOnce));
    for (let i = 0; i < 4; i++) {
      pulls[i]?.done("ref");
      await clock.advance(0);
      assert.equal(pulls.length, Math.min(4, atOnce + i + 1));
    }
    await Promise.all(all);
  }
});

Deno.test("a serial pull that hangs gives up its turn after a while, but goes on", async () => {
  const { pulls, images } = manual();
  const { clock, manager, ensure } = rig({ images, serialize: true });
  await using _ = manager;
  const all = ["hangs:1", "b:1"].map((image) => ensure(image, { policy: "Always", uid: image }));
  await clock.advance(299_999);
  assert.deepEqual(pulls.map((p) => p.image), ["hangs:1"]);
  await clock.advance(1);
  assert.deepEqual(pulls.map((p) => [p.image, p.aborted]), [["hangs:1", false], ["b:1", false]]);
  for (const pull of pulls) pull.done("ref");
  await Promise.all(all);
});

Deno.test("equal pulls are merged; credentials and handlers keep them apart", async () => {
  const { pulls, images } = manual();
  const keyring = {
    lookup: ({ pod }: { pod: BoundPod }): Promise<PullCredential[]> =>
      Promise.resolve(pod.metadata.uid === "secret" ? [user("me")] : []),
  };
  const { clock, manager, ensure, said } = rig({ images, keyring });
  await using _ = manager;
  const policy = "Always";
  const same = [ensure("x:1", { policy, uid: "p" }), ensure("x:1", { policy, uid: "q" })];
  const other = [ensure("x:1", { policy, uid: "secret" }), ensure("x:1", { policy, uid: "p", handler: "kata" })];
  await clock.advance(0);
  assert.deepEqual(pulls.map((p) => p.image).sort(), ["x:1", "x:1", "x:1(me)"]);
  for (const pull of pulls) pull.done("ref");
  assert.deepEqual(await Promise.all([...same, ...other]), Array(4).fill({ imageRef: "ref", username: "app" }));
  const events = said();
  assert.equal(events.filter((e) => e.startsWith("Normal Pulling")).length, 4);
  assert.equal(events.filter((e) => e.startsWith("Normal Pulled")).length, 4);
});

Deno.test("a pull goes on while anyone waits for it, and ends with the last", async () => {
  const { pulls, images } = manual();
  const { clock, manager, ensure, said } = rig({ images });
  await using _ = manager;
  const [one, two] = [new AbortController(), new AbortController()];
  const waits = [one, two].map((c, i) => ensure("x:1", { policy: "Always", uid: `u${i}`, signal: c.signal }));
  const rejected = waits.map((w) => assert.rejects(w, { code: "Aborted" }));
  await clock.advance(0);
  one.abort();
  await clock.advance(0);
  assert.equal(pulls[0]?.aborted, false);
  two.abort();
  await clock.advance(0);
  assert.equal(pulls[0]?.aborted, true);
  await Promise.all(rejected);
  assert.equal(said().filter((e) => /Failed/.test(e)).length, 0);
  assert.equal(manager.heldMs("u0", "x:1"), 0, "being called off is no failure");
});

Deno.test("registry rate: a burst at once, then so many a second", async () => {
  const { pulls, images } = manual();
  const { clock, manager, ensure } = rig({ images, qps: 2, burst: 3 });
  await using _ = manager;
  const all = Array.from({ length: 6 }, (_, i) => ensure(`i${i}:1`, { policy: "Always" }));
  await clock.advance(0);
  assert.equal(pulls.length, 3);
  await clock.advance(499);
  assert.equal(pulls.length, 3);
  await clock.advance(1);
  assert.equal(pulls.length, 4);
  await clock.advance(1000);
  assert.equal(pulls.length, 6);
  for (const pull of pulls) pull.done("ref");
  await Promise.all(all);
});

Deno.test("credentials are tried in turn; all errors are told", async () => {
  const { pulls, images } = manual();
  const auths = [user("a"), user("b")];
  const { clock, manager, ensure } = rig({ images, keyring: { lookup: () => Promise.resolve(auths) } });
  await using _ = manager;
  const good = ensure("x:1", { policy: "Always" });
  await clock.advance(0);
  pulls[0]?.fail(new Error("denied a"));
  await clock.advance(0);
  pulls[1]?.done("ref");
  assert.equal((await good).imageRef, "ref");
  const bad = reasonOf(ensure("x:1", { policy: "Always" }));
  await clock.advance(0);
  pulls[2]?.fail(new Error("denied a"));
  await clock.advance(0);
  pulls[3]?.fail(new Error("denied b"));
  assert.deepEqual(await bad, ["ErrImagePull", "[denied a, denied b]"]);
});

Deno.test("a long pull says each minute that it is still running", async () => {
  const { pulls, images } = manual();
  const { clock, manager, ensure, log } = rig({ images });
  await using _ = manager;
  const pending = ensure("big:1", { policy: "Always" });
  await clock.advance(125_000);
  assert.deepEqual(
    log.lines.map((l) => [l.message, l.fields.image, l.fields.seconds]),
    [["Image is still being pulled", "big:1", 60], ["Image is still being pulled", "big:1", 120]],
  );
  pulls[0]?.done("ref");
  await pending;
  assert.equal(clock.pending, 0);
});

Deno.test("closing the manager calls off what is under way", async () => {
  const { pulls, images } = manual();
  const { clock, manager, ensure, said } = rig({ images });
  const pending = ensure("x:1", { policy: "Always" });
  const ended = assert.rejects(pending);
  await clock.advance(0);
  await manager[Symbol.asyncDispose]();
  await ended;
  assert.equal(pulls[0]?.aborted, true);
  assert.deepEqual(said(), ['Normal Pulling: Pulling image "x:1"']);
});

Deno.test("what it takes to have an image is told once for each that is asked for", async () => {
  const told: EnsuredImage[] = [];
  const { ensure } = rig({ onEnsured: (image) => told.push(image) });
  await ensure("here:1", { policy: "Always" });
  await ensure("here:1", { policy: "IfNotPresent" });
  await ensure("far:1", { policy: "IfNotPresent" }).catch(() => {});
  await ensure("far:2", { policy: "Never" }).catch(() => {});
  assert.deepEqual(told.map(({ policy, present, pulled }) => [policy, present, pulled]), [
    ["Always", undefined, true],
    ["IfNotPresent", true, false],
    ["IfNotPresent", false, true],
    ["Never", false, false],
  ]);
});

Deno.test("how long a pod waits for its images is told: from the first pull until one works, or the image is there", async () => {
  const told: string[] = [];
  const t = rig({
    pulls: {
      pulling: (uid) => told.push(`${uid} waits`),
      pulled: (uid, { ms, size }) => told.push(`${uid} pulled ${size} in ${ms}`),
      present: (uid) => told.push(`${uid} has it`),
    },
  });
  await using _ = t.manager;
  const error = new RuntimeError("PullImage", grpcCode.Unknown, "refused");
  t.runtime.faults = (call) => call === "PullImage" ? { error } : undefined;
  await assert.rejects(t.ensure("busybox:1"));
  t.runtime.faults = () => undefined;
  await assert.rejects(t.ensure("busybox:1"), { reason: "ImagePullBackOff" });
  await t.clock.advance(10_000);
  await t.ensure("busybox:1");
  await t.ensure("busybox:1", { uid: "u2" });
  const [first, second, done, last, ...more] = told;
  assert.deepEqual([first, second, last, more], ["u1 waits", "u1 waits", "u2 has it", []]);
  assert.match(done ?? "", /^u1 pulled [1-9]\d* in \d+$/);
});
