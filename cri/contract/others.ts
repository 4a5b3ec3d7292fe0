import assert from "@assert";
import { grpcCode, isUnimplemented } from "../api.ts";
import { type Case, failureOf, image, options, present, unreachable } from "./scene.ts";
import { CgroupDriver, ContainerEventType, ContainerState, PodSandboxState } from "../gen/runtime_pb.ts";
import { isAborted } from "../../mod/base/errors.ts";

const { Unknown, Unavailable, Unimplemented } = grpcCode;
const event = ContainerEventType;

export const otherCases: readonly Case[] = [
  {
    name: "version and status",
    async run({ harness: { runtime, flavour } }) {
      const version = await runtime.version();
      assert.deepEqual([version.runtimeName, version.runtimeApiVersion], ["containerd", "v1"]);
      assert(version.runtimeVersion.startsWith(flavour === "1.6" ? "1.6." : "2."), version.runtimeVersion);
      const { status, runtimeHandlers, features } = await runtime.status({ verbose: false });
      const conditions = new Map(status?.conditions.map((c) => [c.type, c.status]));
      assert.deepEqual([conditions.get("RuntimeReady"), conditions.get("NetworkReady")], [true, true]);
      // 2 has a condition of its own, which may be false on a node that is ready.
      assert.equal(conditions.has("ContainerdHasNoDeprecationWarnings"), flavour === "2");
      assert.deepEqual(runtimeHandlers.map((h) => h.name), flavour === "2" ? ["", "runc"] : []);
      assert.equal(features?.supplementalGroupsPolicy, flavour === "2" ? true : undefined);
    },
  },
  {
    name: "1.6 lacks RuntimeConfig, events, checkpoints and resources of sandboxes; 2 has them",
    async run(scene) {
      const { runtime, flavour } = scene.harness;
      const id = await scene.sandbox();
      const container = await scene.container(id);
      const resize = () => runtime.updatePodSandboxResources({ id, overhead: {}, resources: {} }, options);
      // 2 has the call, and needs a program that the node lacks.
      const checkpoint = await failureOf(runtime.checkpointContainer(container, "/nowhere.tar", 1, options));
      if (flavour === "1.6") {
        assert.equal((await failureOf(runtime.runtimeConfig())).status, Unimplemented);
        assert.equal((await failureOf(resize())).status, Unimplemented);
        assert.equal(checkpoint.status, Unimplemented);
        await assert.rejects(runtime.containerEvents({})[Symbol.asyncIterator]().next(), isUnimplemented);
        return;
      }
      assert.equal((await runtime.runtimeConfig()).linux?.cgroupDriver, CgroupDriver.CGROUPFS);
      await resize();
      assert.equal(checkpoint.status, Unknown);
    },
  },
  {
    name:
      "a restart of the runtime: containers run on, names are kept, 2 loses exit codes, streams end, clients come back",
    async run(scene) {
      const { runtime, flavour, restart, settle } = scene.harness;
      const sandbox = await scene.sandbox();
      const id = await scene.started(sandbox);
      const later = await scene.container(sandbox, "later");
      await runtime.startContainer(later, options);
      const before = [await scene.status(id), (await runtime.podSandboxStatus(sandbox)).status?.network?.ip];
      const events = flavour === "1.6" ? undefined : runtime.containerEvents({})[Symbol.asyncIterator]().next();
      const cut = events && failureOf(events).catch((thrown: Error) => ({ status: -1, details: thrown.message }));
      await restart(1_500);
      if (cut) assert.equal((await cut).status, Unavailable, (await cut).details);
      const after = [await scene.status(id), (await runtime.podSandboxStatus(sandbox)).status?.network?.ip];
      assert.deepEqual(after, before);
      const ended = await scene.status(later);
      // 2 does not know how a container ended that ended while it was away.
      const outcome = flavour === "1.6" ? [5, "Error"] : [255, "Unknown"];
      assert.deepEqual([ended.state, ended.exitCode, ended.reason], [ContainerState.CONTAINER_EXITED, ...outcome]);
      assert.match((await failureOf(scene.container(sandbox, "later"))).details, /is reserved for/);
      await settle(runtime.stopContainer(id, 10, options));
      assert.equal((await scene.status(id)).exitCode, 7, "the stop signal still reaches it");
    },
  },
  {
    name: "2 tells events with the states of the moment",
    async run(scene) {
      const { runtime, flavour, pass, settle } = scene.harness;
      if (flavour === "1.6") return;
      const owner = new AbortController();
      const seen: [string, ContainerEventType, PodSandboxState | undefined][] = [];
      const reading = (async () => {
        for await (const e of runtime.containerEvents({ signal: owner.signal })) {
          if (e.podSandboxStatus?.metadata?.uid !== scene.uid) continue;
          seen.push([e.containerId, e.containerEventType, e.podSandboxStatus.state]);
        }
      })();
      await pass(200);
      const sandbox = await scene.sandbox();
      const id = await scene.started(sandbox);
      await settle(runtime.stopContainer(id, 0, options));
      await runtime.stopPodSandbox(sandbox, options);
      await runtime.removePodSandbox(sandbox, options);
      await pass(200);
      owner.abort();
      await assert.rejects(reading, isAborted);
      const { SANDBOX_READY, SANDBOX_NOTREADY } = PodSandboxState;
      assert.deepEqual(seen, [
        [sandbox, event.CONTAINER_CREATED_EVENT, SANDBOX_READY],
        [sandbox, event.CONTAINER_STARTED_EVENT, SANDBOX_READY],
        [id, event.CONTAINER_CREATED_EVENT, SANDBOX_READY],
        [id, event.CONTAINER_STARTED_EVENT, SANDBOX_READY],
        [id, event.CONTAINER_STOPPED_EVENT, SANDBOX_READY],
        [sandbox, event.CONTAINER_STOPPED_EVENT, SANDBOX_NOTREADY],
        [id, event.CONTAINER_DELETED_EVENT, SANDBOX_NOTREADY],
        [sandbox, event.CONTAINER_DELETED_EVENT, SANDBOX_NOTREADY],
      ]);
    },
  },
  {
    name: "statistics: of what runs; a container that does not run fails alone and is listed without figures",
    async run(scene) {
      const { runtime, flavour } = scene.harness;
      const sandbox = await scene.sandbox();
      const running = await scene.started(sandbox);
      const exited = await scene.started(sandbox, "quick");
      const stats = await runtime.containerStats(running);
      assert.equal(stats?.attributes?.id, running);
      assert((stats?.memory?.workingSetBytes?.value ?? 0n) > 0n);
      const failure = await failureOf(runtime.containerStats(exited));
      assert.deepEqual(failure, { status: Unknown, details: "unexpected metrics response: []" });
      const listed = (await runtime.listContainerStats()).filter((s) =>
        [running, exited].includes(s.attributes?.id ?? "")
      );
      assert.deepEqual(listed.map((s) => s.cpu !== undefined).sort(), [false, true]);
      const pod = await runtime.podSandboxStats(sandbox);
      assert.deepEqual(pod?.linux?.containers.map((c) => c.attributes?.id).sort(), [running, exited].sort());
      await runtime.stopPodSandbox(sandbox, options);
      // 2 says Unavailable of the sandbox, and means not the runtime.
      const stopped = await failureOf(runtime.podSandboxStats(sandbox));
      assert.equal(stopped.status, flavour === "1.6" ? Unknown : Unavailable);
      const list = runtime.listPodSandboxStats();
      // In 1.6 one stopped sandbox fails the whole list.
      if (flavour === "1.6") assert.equal((await failureOf(list)).status, Unknown);
      else assert.deepEqual((await list).filter((s) => s.attributes?.id === sandbox), []);
    },
  },
  {
    name: "an image is found by name, id and the beginning of its id",
    async run({ harness: { images } }) {
      const found = present(await images.imageStatus({ image: image.main }));
      assert.match(found.id, /^sha256:[0-9a-f]{64}$/);
      assert.deepEqual([found.repoTags, found.repoDigests], [[image.main], []]);
      assert(found.size > 0n);
      for (const text of [found.id, found.id.slice(7), found.id.slice(7, 20)]) {
        assert.equal((await images.imageStatus({ image: text }))?.id, found.id, text);
      }
      const listed = (await images.listImages()).find((i) => i.id === found.id);
      assert.deepEqual(listed?.repoTags, [image.main]);
      for (const text of [image.absent, "localhost/busybox", "not a: name"]) {
        assert.equal(await images.imageStatus({ image: text }), undefined, text);
      }
      assert.equal((await failureOf(images.imageStatus({ image: "" }))).status, Unknown);
    },
  },
  {
    name: "an image can be removed while a container uses it, and again; the container keeps its reference",
    async run(scene) {
      const { images, runtime } = scene.harness;
      const spare = await images.imageStatus({ image: image.spare });
      const id = await scene.container(await scene.sandbox(), "obedient", { image: { image: image.spare } });
      await runtime.startContainer(id, options);
      await images.removeImage({ image: image.spare }, options);
      await images.removeImage({ image: image.spare }, options);
      assert.equal(await images.imageStatus({ image: image.spare }), undefined);
      const status = await scene.status(id);
      assert.deepEqual([status.image?.image, status.imageRef], [image.spare, spare?.id]);
    },
  },
  {
    name: "a pull from a registry that does not answer, and of what is no name",
    async run({ harness: { images, settle } }) {
      const away = await failureOf(settle(images.pullImage({ image: { image: unreachable } }, options)));
      assert.equal(away.status, Unknown);
      assert.match(away.details, /^failed to pull and unpack image "127\.0\.0\.1:9\/none:1": .*connection refused$/);
      const bad = await failureOf(images.pullImage({ image: { image: "UP::" } }, options));
      assert.equal(bad.status, Unknown);
      assert.match(bad.details, /^failed to parse image reference "UP::": invalid reference format/);
    },
  },
  {
    name: "the images' file system",
    async run({ harness: { images } }) {
      const { imageFilesystems, containerFilesystems } = await images.imageFsInfo();
      assert.equal(imageFilesystems.length, 1);
      assert.match(imageFilesystems[0]?.fsId?.mountpoint ?? "", /io\.containerd\.snapshotter\.v1\.overlayfs$/);
      assert.deepEqual(containerFilesystems, []);
    },
  },
];
