import assert from "@assert";
import { grpcCode } from "../api.ts";
import { type Case, failureOf, options, type Scene } from "./scene.ts";
import { ContainerState, NamespaceMode, PodSandboxState, type PodSandboxStatus } from "../gen/runtime_pb.ts";

const { NotFound, Unknown, FailedPrecondition } = grpcCode;
const ghost = "f".repeat(64);

async function statusOf(scene: Scene, id: string): Promise<PodSandboxStatus> {
  const { status } = await scene.harness.runtime.podSandboxStatus(id);
  if (!status) throw new TypeError(`PodSandboxStatus ${id} has no status`);
  return status;
}

export const sandboxCases: readonly Case[] = [
  {
    name: "a new sandbox is ready, has an address and keeps what it was given",
    async run(scene) {
      const before = scene.harness.now();
      const id = await scene.sandbox();
      assert.match(id, /^[0-9a-f]{64}$/);
      const status = await statusOf(scene, id);
      assert.equal(status.id, id);
      assert.equal(status.state, PodSandboxState.SANDBOX_READY);
      assert.match(status.network?.ip ?? "", /^10(\.\d+){3}$/);
      assert.deepEqual({ ...status.labels }, { app: "web", uid: scene.uid });
      assert.deepEqual({ ...status.annotations }, { note: "kept as it is" });
      const { name, namespace, uid, attempt } = status.metadata ?? {};
      assert.deepEqual([name, namespace, uid, attempt], ["web", "contract", scene.uid, 0]);
      const createdAt = Number(status.createdAt / 1_000_000n);
      assert(createdAt >= before - 1 && createdAt <= scene.harness.now() + 1, "created at, in nanoseconds");
      assert.equal((await statusOf(scene, id.slice(0, 20))).id, id, "the beginning of an id is enough");
    },
  },
  {
    name: "on the node's network a sandbox has no address, and must not have a host name",
    async run(scene) {
      const linux = {
        cgroupParent: "/denolet-contract",
        securityContext: { namespaceOptions: { network: NamespaceMode.NODE } },
      };
      const failure = await failureOf(scene.sandbox({ linux, hostname: "web" }));
      assert.match(failure.details, /unable to set hostname without a private UTS namespace/);
      const id = await scene.sandbox({ linux });
      const status = await statusOf(scene, id);
      assert.equal(status.network?.ip, "");
      assert.equal(status.linux?.namespaces?.options?.network, NamespaceMode.NODE);
    },
  },
  {
    name: "a sandbox's name is reserved until it is removed; attempts are names of their own",
    async run(scene) {
      const id = await scene.sandbox();
      const failure = await failureOf(scene.sandbox());
      const name = `web_contract_${scene.uid}_0`;
      assert.equal(failure.details, `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${id}"`);
      assert.equal(failure.status, scene.harness.flavour === "1.6" ? Unknown : FailedPrecondition);
      await scene.harness.runtime.stopPodSandbox(id, options);
      await failureOf(scene.sandbox());
      const { metadata } = scene.config();
      await scene.sandbox({ metadata: { ...metadata, attempt: 1 } });
      await scene.harness.runtime.removePodSandbox(id, options);
      await scene.sandbox();
    },
  },
  {
    name: "a sandbox without metadata, or with an unknown handler, is refused and leaves no name behind",
    async run(scene) {
      const { runtime } = scene.harness;
      const nameless = await failureOf(runtime.runPodSandbox({}, "", options));
      assert.deepEqual(nameless, { status: Unknown, details: "sandbox config must include metadata" });
      const handler = await failureOf(runtime.runPodSandbox(scene.config(), "nope", options));
      assert.equal(handler.status, Unknown);
      assert.match(handler.details, /: no runtime for "nope" is configured$/);
      await scene.sandbox();
    },
  },
  {
    name: "stopping a sandbox kills its containers, takes its address and can be repeated",
    async run(scene) {
      const { runtime } = scene.harness;
      const id = await scene.sandbox();
      const running = await scene.started(id);
      const created = await scene.container(id, "deaf");
      await runtime.stopPodSandbox(id, options);
      await runtime.stopPodSandbox(id, options);
      const status = await statusOf(scene, id);
      assert.deepEqual([status.state, status.network?.ip], [PodSandboxState.SANDBOX_NOTREADY, ""]);
      const dead = await scene.status(running);
      assert.deepEqual([dead.state, dead.exitCode, dead.reason], [ContainerState.CONTAINER_EXITED, 137, "Error"]);
      assert.equal((await scene.status(created)).state, ContainerState.CONTAINER_CREATED);

      const start = await failureOf(runtime.startContainer(created, options));
      assert.deepEqual(start, { status: Unknown, details: `sandbox container "${id}" is not running` });
      const failed = await scene.status(created);
      assert.deepEqual([failed.exitCode, failed.reason, failed.message], [128, "StartError", start.details]);

      const create = await failureOf(scene.container(id, "quick"));
      // 1.6 looks for the sandbox's task, and says NotFound of a sandbox that is there.
      assert.equal(create.status, scene.harness.flavour === "1.6" ? NotFound : Unknown);
    },
  },
  {
    name: "removing a sandbox removes its containers, also running ones, and can be repeated",
    async run(scene) {
      const { runtime } = scene.harness;
      const id = await scene.sandbox();
      const container = await scene.started(id, "deaf");
      await runtime.removePodSandbox(id, options);
      await runtime.removePodSandbox(id, options);
      assert.equal((await failureOf(runtime.podSandboxStatus(id))).status, NotFound);
      assert.equal((await failureOf(runtime.containerStatus(container))).status, NotFound);
      assert.deepEqual(await runtime.listContainers({ podSandboxId: id }), []);
    },
  },
  {
    name: "of a sandbox that is not there: questions NotFound, removal done, stop done (1.6: NotFound)",
    async run({ harness: { runtime, flavour } }) {
      assert.deepEqual(await failureOf(runtime.podSandboxStatus(ghost)), {
        status: NotFound,
        details: "an error occurred when try to find sandbox: not found",
      });
      await runtime.removePodSandbox(ghost, options);
      const stop = runtime.stopPodSandbox(ghost, options);
      if (flavour === "1.6") assert.equal((await failureOf(stop)).status, NotFound);
      else await stop;
    },
  },
  {
    name: "sandboxes are listed by id, state and labels",
    async run(scene) {
      const { runtime } = scene.harness;
      const { metadata } = scene.config();
      const ready = await scene.sandbox();
      const stopped = await scene.sandbox({
        metadata: { ...metadata, attempt: 1 },
        labels: { app: "old", uid: scene.uid },
      });
      await runtime.stopPodSandbox(stopped, options);
      const list = async (filter: Parameters<typeof runtime.listPodSandboxes>[0]) =>
        (await runtime.listPodSandboxes(filter)).map((s) => s.id).sort();
      const mine = { uid: scene.uid };
      const cases: [Parameters<typeof list>[0], string[]][] = [
        [{ labelSelector: mine }, [ready, stopped].sort()],
        [{ labelSelector: { ...mine, app: "web" } }, [ready]],
        [{ labelSelector: { ...mine, app: "web", none: "" } }, []],
        [{ labelSelector: mine, state: { state: PodSandboxState.SANDBOX_READY } }, [ready]],
        [{ labelSelector: mine, state: { state: PodSandboxState.SANDBOX_NOTREADY } }, [stopped]],
        [{ id: ready }, [ready]],
        [{ id: ready.slice(0, 16) }, [ready]],
        [{ id: ready, labelSelector: { app: "old" } }, []],
        [{ id: ghost }, []],
      ];
      for (const [filter, expected] of cases) assert.deepEqual(await list(filter), expected, JSON.stringify(filter));
      const [item] = await runtime.listPodSandboxes({ id: stopped });
      assert.deepEqual({ ...item?.labels }, { app: "old", uid: scene.uid });
      assert.equal(item?.metadata?.attempt, 1);
      assert.equal(item?.createdAt, (await statusOf(scene, stopped)).createdAt);
    },
  },
];
