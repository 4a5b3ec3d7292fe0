import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { ContainerSchema, ImageFsInfoResponseSchema, ImageSchema } from "../../cri/gen/runtime_pb.ts";
import { journaledImages } from "../../cri/journaled.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { Journal } from "../../mod/base/journal.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import { ImageGC, type ImageGCOptions } from "./image_gc.ts";
import type { ImageGcPolicy } from "./image_plan.ts";
import { imageUsers, sandboxImageIn } from "./image_records.ts";

const because = { reason: "Test", message: "a test asks for it" };
const signal = new AbortController().signal;
const minute = 60_000;
const mountpoint = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";
const size = 1000;

function rig(given: { policy?: Partial<ImageGcPolicy>; imageVolumes?: boolean; sandboxImage?: string } = {}) {
  const clock = new FakeClock();
  const names = ["busy", "idle", "other", "pause"];
  const runtime = new FakeRuntime({
    clock,
    random: seeded(1),
    images: [...names.map((name) => ({ name, size })), { name: "pinned", size, pinned: true }],
  });
  const host = new FakeHost({ clock });
  const events = new RecordingEvents();
  const log = new RecordingLogger();
  const journal = new Journal({ clock });
  const removed: string[] = [];
  const disk = { total: 10_000, available: 9_000, path: mountpoint };
  const overrides: Partial<ImageGCOptions["images"]> = {};
  const journaled = journaledImages(runtime, journal);
  const gc = new ImageGC({
    clock,
    events,
    log,
    host: {
      space: (path) => {
        if (path !== disk.path) return host.space(path);
        return Promise.resolve({ ...disk, free: disk.available, inodes: 1, inodesFree: 1 });
      },
    },
    images: {
      listImages: (options) => journaled.listImages(options),
      imageStatus: (image, options) => journaled.imageStatus(image, options),
      imageFsInfo: (options) => overrides.imageFsInfo?.(options) ?? journaled.imageFsInfo(options),
      removeImage: (image, options) => journaled.removeImage(image, options),
    },
    runtime: {
      listContainers: (filter, options) => runtime.listContainers(filter, options),
      containerStatus: (id, options) => runtime.containerStatus(id, options),
      async status(request, options) {
        const answer = await runtime.status(request, options);
        if (given.sandboxImage) answer.info.config = JSON.stringify({ sandboxImage: given.sandboxImage });
        return answer;
      },
    },
    imageVolumes: given.imageVolumes ?? false,
    policy: { highPercent: 85, lowPercent: 80, minAgeMs: 2 * minute, maxAgeMs: 0, ...given.policy },
    onRemoved: (why) => removed.push(why),
  });
  const container = async (image: string, mounted = "") => {
    const sandboxConfig = { metadata: { name: "p", namespace: "n", uid: `u-${image}`, attempt: 0 } };
    const sandboxId = await runtime.runPodSandbox(sandboxConfig, "", { because });
    return await runtime.createContainer({
      sandboxId,
      config: {
        metadata: { name: "c" },
        image: { image },
        mounts: mounted === "" ? [] : [{ containerPath: "/m", image: { image: mounted } }],
        labels: {
          "io.kubernetes.container.name": "c",
          "io.kubernetes.pod.name": "p",
          "io.kubernetes.pod.namespace": "n",
        },
      },
      sandboxConfig,
    }, { because });
  };
  const left = async () =>
    (await runtime.listImages()).map((one) => one.repoTags[0]?.replace(/^.*\/|:.*$/g, "") ?? "").sort();
  return { clock, runtime, host, events, log, journal, removed, disk, overrides, gc, container, left };
}

Deno.test("image GC: frees down to the low threshold; pinned, used and sandbox images stay, dead containers use theirs", async () => {
  const { gc, clock, runtime, container, disk, left, journal, removed, events } = rig({ sandboxImage: "pause" });
  const id = await container("busy");
  await runtime.startContainer(id, { because });
  await gc.collect(signal);
  await clock.advance(5 * minute);
  await runtime.stopContainer(id, 0, { because });
  disk.available = 500;
  await gc.collect(signal);
  assert.deepEqual(await left(), ["busy", "pause", "pinned"]);
  const records = journal.records();
  assert.deepEqual(records.map((one) => [one.action, one.reason]), [["RemoveImage", "DiskUse"], [
    "RemoveImage",
    "DiskUse",
  ]]);
  assert.match(records[0]?.message ?? "", /^image docker\.io\/library\/\w+:latest: never used; 95 % /);
  assert.deepEqual(removed, ["space", "space"], "10 000 × 20 % − 500 = 1 500 are two images");
  assert.deepEqual(events.nodeEvents, []);
});

Deno.test("image GC: not more than is needed goes, and nothing is said when that is enough", async () => {
  const { gc, clock, disk, left, events } = rig();
  await gc.collect(signal);
  await clock.advance(5 * minute);
  disk.available = 1_400;
  await gc.collect(signal);
  assert.equal((await left()).length, 4);
  assert.deepEqual(events.nodeEvents, []);
});

Deno.test("image GC: what was in use goes after what never was", async () => {
  const { gc, clock, runtime, container, disk, left } = rig({ policy: { lowPercent: 50 } });
  const id = await container("busy");
  await gc.collect(signal);
  await runtime.removeContainer(id, { because });
  await clock.advance(5 * minute);
  disk.available = 500;
  const plan = await gc.preview(signal);
  assert.equal(plan.verdicts.filter((one) => one.remove).at(-1)?.image.names[0], "docker.io/library/busy:latest");
  assert.equal((await left()).length, 5, "a preview changes nothing");
});

Deno.test("image GC: an image that a container has mounted is in use", async () => {
  const { gc, clock, container, disk, left, runtime } = rig({ imageVolumes: true, policy: { lowPercent: 0 } });
  const idle = (await runtime.imageStatus({ image: "idle" }))?.id ?? "";
  await container("busy", idle);
  await gc.collect(signal);
  await clock.advance(5 * minute);
  disk.available = 0;
  await assert.rejects(gc.collect(signal));
  assert.deepEqual(await left(), ["busy", "idle", "pinned"]);

  const asked = () => runtime.calls.filter((one) => one.call === "ContainerStatus").length;
  const before = asked();
  await gc.preview(signal);
  assert.equal(asked(), before + 1);
  await container("idle");
  await gc.preview(signal);
  assert.equal(asked(), before + 1, "nobody is asked for mounts when every image is in use or pinned anyway");
});

Deno.test("image GC: too young a first time, gone the next; the first failure is logged, the second is an event", async () => {
  const { gc, clock, disk, left, events, log } = rig({
    policy: { minAgeMs: 6 * minute, highPercent: 50, lowPercent: 0 },
  });
  disk.available = 100;
  const scope = new Scope("test");
  scope.spawn("image gc", (signal) => gc.run(signal));
  await clock.advance(0);
  assert.equal((await left()).length, 5);
  assert.deepEqual(events.nodeEvents.map((one) => one.reason), ["FreeDiskSpaceFailed"]);
  assert.equal(log.lines.filter((one) => one.level === "warn").length, 1);
  await clock.advance(5 * minute);
  assert.deepEqual(events.nodeEvents.map((one) => one.reason), [
    "FreeDiskSpaceFailed",
    "FreeDiskSpaceFailed",
    "ImageGCFailed",
  ]);
  await clock.advance(5 * minute);
  assert.deepEqual(await left(), ["pinned"]);
  disk.available = 9_000;
  events.nodeEvents.length = 0;
  await clock.advance(5 * minute);
  assert.deepEqual(events.nodeEvents, []);
  await scope.close();
});

Deno.test("image GC: a threshold of 100 without a maximum age turns it off; images are still watched", async () => {
  const { gc, clock, disk, left, journal } = rig({ policy: { highPercent: 100 } });
  disk.available = 0;
  assert(!gc.enabled);
  const scope = new Scope("test");
  scope.spawn("image gc", (signal) => gc.run(signal));
  await clock.advance(20 * minute);
  assert.equal((await left()).length, 5);
  await gc.collect(signal, { unused: true });
  assert.deepEqual(await left(), ["pinned"], "under pressure what it watched for long enough goes");
  assert(journal.records().every((one) => one.reason === "DiskPressure"));
  await scope.close();
});

Deno.test("image GC: by age, once the agent has watched for longer; also when the disk cannot be asked", async () => {
  const { gc, clock, left, removed, overrides, container } = rig({
    policy: { highPercent: 100, maxAgeMs: 9 * minute },
  });
  await container("busy");
  const scope = new Scope("test");
  assert(gc.enabled);
  overrides.imageFsInfo = () => Promise.reject(new RuntimeError("ImageFsInfo", grpcCode.Unknown, "no"));
  scope.spawn("image gc", (signal) => gc.run(signal));
  await clock.advance(9 * minute);
  assert.equal((await left()).length, 5);
  await clock.advance(minute);
  assert.deepEqual(await left(), ["busy", "pinned"]);
  assert.deepEqual(removed, ["age", "age", "age"]);
  await scope.close();
});

Deno.test("image GC: what cannot be removed or asked is told, and holds up nothing else", async (t) => {
  await t.step("an image that stays does not keep the others", async () => {
    const { gc, clock, runtime, disk, left } = rig({ policy: { lowPercent: 0 } });
    await gc.collect(signal);
    await clock.advance(5 * minute);
    disk.available = 0;
    let first = true;
    runtime.faults = (call) => {
      if (call !== "RemoveImage" || !first) return undefined;
      first = false;
      return { error: new RuntimeError("RemoveImage", grpcCode.Unknown, "read-only file system") };
    };
    await assert.rejects(gc.collect(signal), /images cannot be removed: .*read-only file system/);
    assert.equal((await left()).length, 2);
  });
  await t.step("a disk without a size", async () => {
    const { gc, disk, events } = rig();
    disk.total = 0;
    await assert.rejects(gc.collect(signal), /invalid capacity 0/);
    assert.deepEqual(events.nodeEvents, [
      { type: "Warning", reason: "InvalidDiskCapacity", message: "invalid capacity 0 on image filesystem" },
    ]);
  });
  await t.step("a runtime that does not say where its images are", async () => {
    const { gc, overrides } = rig();
    overrides.imageFsInfo = () => Promise.resolve(create(ImageFsInfoResponseSchema));
    await assert.rejects(gc.collect(signal), /does not tell where it keeps its images/);
  });
  await t.step("a container whose mounts are not known: nothing goes", async () => {
    const { gc, clock, runtime, disk, left, container } = rig({ imageVolumes: true });
    await container("busy");
    await gc.collect(signal);
    await clock.advance(5 * minute);
    disk.available = 0;
    runtime.faults = (call) =>
      call === "ContainerStatus" ? { error: new RuntimeError("ContainerStatus", grpcCode.Unknown, "no") } : undefined;
    await assert.rejects(gc.collect(signal), /ContainerStatus/);
    assert.equal((await left()).length, 5);
  });
});

Deno.test("who uses an image: by id, digest or tag, whoever made the container", () => {
  const image = create(ImageSchema, { id: "sha256:1", repoTags: ["r/a:1"], repoDigests: ["r/a@sha256:2"] });
  const users = (container: Parameters<typeof create<typeof ContainerSchema>>[1], mounted: string[] = []) =>
    imageUsers({
      images: [image],
      containers: [create(ContainerSchema, container)],
      mounted: new Map([["x", mounted]]),
      sandboxImage: undefined,
    }).get("sha256:1");
  assert.equal(users({ id: "x", imageId: "sha256:1" }), "container x was made of it");
  assert.equal(users({ id: "x", imageRef: "r/a@sha256:2", metadata: { name: "m" } }), "container m was made of it");
  assert.equal(users({ id: "x", image: { image: "r/a:1" } }), "container x was made of it");
  assert.equal(users({ id: "x", imageRef: "sha256:9" }), undefined);
  assert.equal(users({ id: "x", imageRef: "__proto__" }), undefined);
  assert.equal(users({ id: "x" }, ["sha256:1"]), "container x has it mounted");
});

Deno.test("the sandbox image is read from containerd's status; another runtime's is left alone", () => {
  const cases: [Record<string, string>, string | undefined][] = [
    [{ config: '{"sandboxImage":"registry/pause:3"}' }, "registry/pause:3"],
    [{ config: '{"sandboxImage":""}' }, undefined],
    [{ config: '{"sandboxImage":7}' }, undefined],
    [{ config: "{}" }, undefined],
    [{ config: "null" }, undefined],
    [{ config: "[crio]\nroot = 1" }, undefined],
    [{}, undefined],
  ];
  for (const [info, image] of cases) assert.equal(sandboxImageIn(info), image, JSON.stringify(info));
});
