import assert from "@assert";
import { grpcCode } from "../api.ts";
import { type Case, commands, failureOf, image, options } from "./scene.ts";
import { ContainerState, MountPropagation } from "../gen/runtime_pb.ts";

const { NotFound, Unknown, FailedPrecondition, DeadlineExceeded, InvalidArgument } = grpcCode;
const { CONTAINER_CREATED, CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
const ghost = "f".repeat(64);
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

export const containerCases: readonly Case[] = [
  {
    name: "a container's life: created, running, exited, removed, with its times",
    async run(scene) {
      const { runtime } = scene.harness;
      const sandbox = await scene.sandbox();
      const id = await scene.container(sandbox);
      assert.match(id, /^[0-9a-f]{64}$/);
      const created = await scene.status(id);
      assert.deepEqual([created.state, created.startedAt, created.finishedAt], [CONTAINER_CREATED, 0n, 0n]);
      await runtime.startContainer(id, options);
      const running = await scene.status(id);
      assert.deepEqual([running.state, running.finishedAt, running.reason], [CONTAINER_RUNNING, 0n, ""]);
      await scene.harness.pass(400);
      await scene.harness.settle(runtime.stopContainer(id, 10, options));
      const exited = await scene.status(id);
      assert.deepEqual([exited.state, exited.exitCode, exited.reason], [CONTAINER_EXITED, 7, "Error"]);
      assert(exited.createdAt <= exited.startedAt && exited.startedAt < exited.finishedAt, "times in order");
      assert.equal(exited.createdAt, created.createdAt);
      await runtime.removeContainer(id, options);
      await runtime.removeContainer(id, options);
      assert.equal((await failureOf(runtime.containerStatus(id))).status, NotFound);
    },
  },
  {
    name: "a container keeps what it was given",
    async run(scene) {
      const { directory, flavour, runtime } = scene.harness;
      const sandbox = await scene.sandbox();
      const id = await scene.container(sandbox, "obedient", {
        metadata: { name: "main", attempt: 5 },
        labels: { a: "b" },
        annotations: { c: "d", "io.kubernetes.container.restartCount": "5" },
        logPath: "main/5.log",
        mounts: [{ containerPath: "/data", hostPath: directory, readonly: true }],
      });
      const status = await scene.status(id);
      assert.deepEqual([status.metadata?.name, status.metadata?.attempt], ["main", 5]);
      assert.deepEqual({ ...status.labels }, { a: "b" });
      assert.deepEqual({ ...status.annotations }, { c: "d", "io.kubernetes.container.restartCount": "5" });
      assert.equal(status.logPath, `${directory}/main/5.log`);
      assert.deepEqual(
        status.mounts.map((m) => [m.containerPath, m.hostPath, m.readonly, m.propagation]),
        [["/data", directory, true, MountPropagation.PROPAGATION_PRIVATE]],
      );
      assert.equal(status.image?.image, image.main);
      // An imported image has no digest, and its id stands for it.
      assert.match(status.imageRef, /^sha256:[0-9a-f]{64}$/);
      assert.equal(status.imageId, flavour === "1.6" ? "" : status.imageRef);
      const [item] = await runtime.listContainers({ id });
      assert.deepEqual([item?.podSandboxId, item?.imageRef, item?.state], [
        sandbox,
        status.imageRef,
        CONTAINER_CREATED,
      ]);
      assert.deepEqual({ ...item?.annotations }, { ...status.annotations });
      assert.equal(item?.image?.image, image.main);
      assert.equal(item?.createdAt, status.createdAt);
    },
  },
  {
    name: "exit codes and reasons",
    async run(scene) {
      const sandbox = await scene.sandbox();
      const cases = [["quick", 0, "Completed"], ["failing", 3, "Error"], ["killed", 137, "Error"]] as const;
      for (const [program, code, reason] of cases) {
        const status = await scene.status(await scene.started(sandbox, program));
        assert.deepEqual([status.state, status.exitCode, status.reason], [CONTAINER_EXITED, code, reason], program);
        assert.equal(status.message, "");
      }
    },
  },
  {
    name: "a container over its memory limit ends with 137, OOMKilled",
    async run(scene) {
      const { runtime, pass } = scene.harness;
      const sandbox = await scene.sandbox();
      const memoryLimitInBytes = 16n << 20n;
      const reasons: string[] = [];
      // The kernel's notice of the kill races with the exit, and on a busy machine it can be missed altogether.
      for (let attempt = 0; attempt < 3 && !reasons.includes("OOMKilled"); attempt++) {
        const metadata = { name: "greedy", attempt };
        const id = await scene.started(sandbox, "greedy", { metadata, linux: { resources: { memoryLimitInBytes } } });
        let status = await scene.status(id);
        for (let tries = 0; tries < 20 && status.reason !== "OOMKilled"; tries++) {
          await pass(250);
          status = await scene.status(id);
        }
        assert.deepEqual([status.state, status.exitCode], [CONTAINER_EXITED, 137]);
        assert.equal((await runtime.listContainers({ id }))[0]?.state, CONTAINER_EXITED);
        reasons.push(status.reason);
      }
      assert.equal(reasons.at(-1), "OOMKilled", `reasons: ${reasons}`);
    },
  },
  {
    name: "a program that is not there: the start fails, the container is exited with 128, StartError and the words",
    async run(scene) {
      const { runtime } = scene.harness;
      const id = await scene.container(await scene.sandbox(), "absent");
      const failure = await failureOf(runtime.startContainer(id, options));
      assert.equal(failure.status, Unknown);
      assert.match(failure.details, /stat \/no\/such\/program: no such file or directory/);
      const status = await scene.status(id);
      assert.deepEqual([status.state, status.exitCode, status.reason], [CONTAINER_EXITED, 128, "StartError"]);
      assert.equal(status.message, failure.details);
      assert.equal(status.startedAt, 0n, "it never started");
      assert(status.finishedAt > 0n);
    },
  },
  {
    name: "only a created container can be started",
    async run(scene) {
      const { runtime } = scene.harness;
      const sandbox = await scene.sandbox();
      const running = await scene.started(sandbox);
      const exited = await scene.started(sandbox, "quick");
      for (const [id, state] of [[running, "CONTAINER_RUNNING"], [exited, "CONTAINER_EXITED"]]) {
        const failure = await failureOf(runtime.startContainer(id ?? "", options));
        const words = `failed to set starting state for container "${id}": container is in ${state} state`;
        assert.deepEqual(failure, { status: Unknown, details: words });
      }
      assert.equal((await scene.status(running)).state, CONTAINER_RUNNING, "the refusal changes nothing");
    },
  },
  {
    name: "a container's name is reserved until it is removed; attempts are names of their own",
    async run(scene) {
      const sandbox = await scene.sandbox();
      const id = await scene.container(sandbox, "quick");
      const failure = await failureOf(scene.container(sandbox, "quick"));
      const name = `quick_web_contract_${scene.uid}_0`;
      const { flavour, runtime } = scene.harness;
      assert(failure.details.endsWith(`: name "${name}" is reserved for "${id}"`), failure.details);
      assert(failure.details.startsWith(`failed to reserve container name "${name}"`), failure.details);
      assert.equal(failure.status, flavour === "1.6" ? Unknown : FailedPrecondition);
      await scene.container(sandbox, "quick", { metadata: { name: "quick", attempt: 1 } });
      await runtime.removeContainer(id, options);
      await scene.container(sandbox, "quick");
    },
  },
  {
    name: "a container needs metadata, a sandbox and an image that is there; a refusal leaves no name behind",
    async run(scene) {
      const { runtime } = scene.harness;
      const sandboxId = await scene.sandbox();
      const create = (config: Parameters<typeof runtime.createContainer>[0]["config"], id = sandboxId) =>
        failureOf(runtime.createContainer({ sandboxId: id, config, sandboxConfig: scene.config() }, options));
      const metadata = { name: "quick" };
      assert.deepEqual(await create({ image: { image: image.main } }), {
        status: Unknown,
        details: "container config must include metadata",
      });
      assert.deepEqual(await create({ metadata, image: { image: image.absent } }), {
        status: NotFound,
        details: `failed to resolve image "${image.absent}": not found`,
      });
      assert.deepEqual(await create({ metadata, image: { image: image.main } }, ghost), {
        status: NotFound,
        details: `failed to find sandbox id "${ghost}": not found`,
      });
      await scene.container(sandboxId, "quick");
    },
  },
  {
    name: "stop: the signal, SIGKILL after the grace; without a grace at once",
    async run(scene) {
      const { runtime, settle, now } = scene.harness;
      const sandbox = await scene.sandbox();
      const deaf = await scene.started(sandbox, "deaf");
      const began = now();
      await settle(runtime.stopContainer(deaf, 2, options));
      const took = now() - began;
      assert(took >= 2_000 && took < 20_000, `the grace is 2 s; it took ${took} ms`);
      const cases = [[deaf, 137], [await scene.started(sandbox), 137]] as const;
      await settle(runtime.stopContainer(cases[1][0], 0, options));
      for (const [id, code] of cases) {
        const status = await scene.status(id);
        assert.deepEqual([status.state, status.exitCode, status.reason], [CONTAINER_EXITED, code, "Error"]);
      }
    },
  },
  {
    name: "stop is done when there is nothing to stop: exited, created, missing (1.6: NotFound)",
    async run(scene) {
      const { runtime, flavour } = scene.harness;
      const sandbox = await scene.sandbox();
      const exited = await scene.started(sandbox, "failing");
      const created = await scene.container(sandbox);
      for (const id of [exited, created]) await runtime.stopContainer(id, 5, options);
      assert.equal((await scene.status(exited)).exitCode, 3);
      assert.equal((await scene.status(created)).state, CONTAINER_CREATED);
      await runtime.startContainer(created, options);
      const missing = runtime.stopContainer(ghost, 5, options);
      if (flavour === "1.6") assert.equal((await failureOf(missing)).status, NotFound);
      else await missing;
    },
  },
  {
    name: "a running container is killed by its removal",
    async run(scene) {
      const { runtime, settle } = scene.harness;
      const id = await scene.started(await scene.sandbox(), "deaf");
      await settle(runtime.removeContainer(id, options));
      assert.equal((await failureOf(runtime.containerStatus(id))).status, NotFound);
    },
  },
  {
    name: "containers are listed by id, sandbox, state and labels",
    async run(scene) {
      const { runtime } = scene.harness;
      const sandbox = await scene.sandbox();
      const running = await scene.started(sandbox);
      const exited = await scene.started(sandbox, "quick");
      const created = await scene.container(sandbox, "failing");
      const list = async (filter: Parameters<typeof runtime.listContainers>[0]) =>
        (await runtime.listContainers(filter)).map((c) => c.id).sort();
      const mine = { uid: scene.uid };
      const cases: [Parameters<typeof list>[0], string[]][] = [
        [{ podSandboxId: sandbox }, [running, exited, created].sort()],
        [{ podSandboxId: sandbox.slice(0, 16) }, [running, exited, created].sort()],
        [{ podSandboxId: ghost }, []],
        [{ labelSelector: mine, state: { state: CONTAINER_RUNNING } }, [running]],
        [{ labelSelector: mine, state: { state: CONTAINER_EXITED } }, [exited]],
        [{ labelSelector: mine, state: { state: CONTAINER_CREATED } }, [created]],
        [{ labelSelector: { ...mine, part: "quick" } }, [exited]],
        [{ labelSelector: { ...mine, part: "slow" } }, []],
        [{ id: created.slice(0, 16) }, [created]],
        [{ id: created, podSandboxId: ghost }, []],
      ];
      for (const [filter, expected] of cases) assert.deepEqual(await list(filter), expected, JSON.stringify(filter));
    },
  },
  {
    name: "exec: output and exit code; a run over its limit; a command that is not there or empty",
    async run(scene) {
      const { runtime, settle, now } = scene.harness;
      const id = await scene.started(await scene.sandbox());
      const run = (command: readonly string[], seconds: number) => settle(runtime.execSync(id, [...command], seconds));
      const talk = await run(commands.talk.command, 10);
      assert.deepEqual([text(talk.stdout), text(talk.stderr), talk.exitCode], ["out\n", "err\n", 4]);
      const began = now();
      assert.deepEqual(await failureOf(run(commands.slow.command, 1)), {
        status: DeadlineExceeded,
        details: "failed to exec in container: timeout 1s exceeded: context deadline exceeded",
      });
      assert(now() - began < 20_000, "the command was ended at its limit");
      const absent = await failureOf(run(commands.absent.command, 10));
      assert.equal(absent.status, Unknown);
      assert.match(absent.details, /stat \/no\/such\/command: no such file or directory/);
      assert.match((await failureOf(run([], 10))).details, /args must not be empty/);
    },
  },
  {
    name: "exec, attach and logs need a running container",
    async run(scene) {
      const { runtime } = scene.harness;
      const sandbox = await scene.sandbox();
      const created = await scene.container(sandbox, "failing");
      const exited = await scene.started(sandbox, "quick");
      for (const [id, state] of [[created, "CREATED"], [exited, "EXITED"]] as const) {
        const details = `container is in CONTAINER_${state} state`;
        assert.equal((await failureOf(runtime.exec({ containerId: id, cmd: ["x"], stdout: true }))).details, details);
        assert.equal((await failureOf(runtime.attach({ containerId: id, stdout: true }))).details, details);
        const sync = await failureOf(runtime.execSync(id, ["/bin/true"], 5));
        assert.equal(sync.details, `failed to exec in container: ${details}`);
        const reopen = await failureOf(runtime.reopenContainerLog(id, options));
        assert.deepEqual(reopen, { status: Unknown, details: "container is not running" });
      }
      const running = await scene.started(sandbox);
      assert.match(
        await runtime.exec({ containerId: running, cmd: ["x"], stdout: true }),
        /^http:\/\/127\.0\.0\.1:\d+\/exec\//,
      );
      assert.match(await runtime.attach({ containerId: running, stdout: true }), /^http:\/\/.+\/attach\//);
      assert.match(await runtime.portForward({ podSandboxId: sandbox, port: [80] }), /^http:\/\/.+\/portforward\//);
      const silent = await failureOf(runtime.exec({ containerId: running, cmd: ["x"] }));
      assert.deepEqual(silent, { status: InvalidArgument, details: "one of stdin, stdout, or stderr must be set" });
    },
  },
  {
    name: "of a container that is not there every question says NotFound, its removal is done",
    async run({ harness: { runtime } }) {
      const questions = [
        runtime.containerStatus(ghost),
        runtime.startContainer(ghost, options),
        runtime.execSync(ghost, ["x"], 1),
        runtime.exec({ containerId: ghost, cmd: ["x"], stdout: true }),
        runtime.attach({ containerId: ghost, stdout: true }),
        runtime.updateContainerResources(ghost, {}, options),
        runtime.reopenContainerLog(ghost, options),
        runtime.containerStats(ghost),
      ];
      for (const failure of await Promise.all(questions.map(failureOf))) {
        assert.equal(failure.status, NotFound, failure.details);
        assert.match(failure.details, /find container.*: not found$/);
      }
      await runtime.removeContainer(ghost, options);
      // An empty id is no id of anything: Unknown, not NotFound.
      assert.equal((await failureOf(runtime.containerStatus(""))).status, Unknown);
    },
  },
  {
    name: "resources can be changed in any state, also after the end; what is not given stays",
    async run(scene) {
      const { runtime } = scene.harness;
      const sandbox = await scene.sandbox();
      const id = await scene.container(sandbox, "obedient", {
        linux: { resources: { cpuShares: 512n, memoryLimitInBytes: 64n << 20n } },
      });
      const read = async () => {
        const linux = (await scene.status(id)).resources?.linux;
        return [linux?.cpuShares, linux?.memoryLimitInBytes];
      };
      assert.deepEqual(await read(), [512n, 64n << 20n]);
      await runtime.updateContainerResources(id, { cpuShares: 256n }, options);
      assert.deepEqual(await read(), [256n, 64n << 20n]);
      await runtime.startContainer(id, options);
      await runtime.updateContainerResources(id, { memoryLimitInBytes: 128n << 20n }, options);
      assert.deepEqual(await read(), [256n, 128n << 20n]);
      await scene.harness.settle(runtime.stopContainer(id, 0, options));
      await runtime.updateContainerResources(id, { cpuShares: 1_024n }, options);
      assert.deepEqual(await read(), [1_024n, 128n << 20n]);
    },
  },
];
