import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { isAborted, KubeletError } from "../../mod/base/errors.ts";
import { seeded } from "../../mod/base/random.ts";
import { grpcCode, isNotFound, isUnimplemented, RuntimeError } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import type { Program } from "./program.ts";
import { FakeRuntime, type FakeRuntimeOptions } from "./runtime.ts";

const because = { reason: "Test", message: "a test asks for it" };
const { CONTAINER_EXITED, CONTAINER_RUNNING } = pb.ContainerState;

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("expected a value");
  return value;
}

function scene(options: Partial<FakeRuntimeOptions> = {}) {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock, random: seeded(1), images: [{ name: "app" }], ...options });
  const sandboxConfig = { metadata: { name: "web", namespace: "default", uid: "u1" }, logDirectory: "/var/log/pods/x" };
  const pod = async () => await runtime.runPodSandbox(sandboxConfig, "", { because });
  const container = async (sandboxId: string, attempt = 0) =>
    await runtime.createContainer({
      sandboxId,
      config: { metadata: { name: "main", attempt }, image: { image: "app" }, logPath: "main/0.log" },
      sandboxConfig,
    }, { because });
  const running = async () => {
    const id = await container(await pod());
    await runtime.startContainer(id, { because });
    return id;
  };
  const status = async (id: string) => {
    return present((await runtime.containerStatus(id)).status);
  };
  return { clock, runtime, pod, container, running, status, sandboxConfig };
}

const program = (p: Program) => ({ programs: () => p });

Deno.test("a program that ends by itself leaves its code, reason and times", async () => {
  const cases: [Program, number, string][] = [
    [{ onStop: "exits", runMs: 5_000 }, 0, "Completed"],
    [{ onStop: "exits", runMs: 5_000, exitCode: 3 }, 3, "Error"],
    [{ onStop: "exits", runMs: 5_000, exitCode: 137, reason: "OOMKilled" }, 137, "OOMKilled"],
  ];
  for (const [p, code, reason] of cases) {
    const { clock, running, status } = scene(program(p));
    const id = await running();
    await clock.advance(4_999);
    assert.equal((await status(id)).state, CONTAINER_RUNNING);
    await clock.advance(1);
    const s = await status(id);
    assert.deepEqual([s.state, s.exitCode, s.reason], [CONTAINER_EXITED, code, reason]);
    assert.equal(s.finishedAt - BigInt(clock.now()) * 1_000_000n, 0n);
  }
});

Deno.test("stop: the signal, then SIGKILL after the grace; the deadline grows with the grace", async () => {
  const cases: { p: Program; grace: number; afterMs: number; code: number }[] = [
    { p: { onStop: "exits" }, grace: 30, afterMs: 0, code: 0 },
    { p: { onStop: "exits", stopMs: 4_000, stopExitCode: 143 }, grace: 30, afterMs: 4_000, code: 143 },
    { p: { onStop: "ignores" }, grace: 600, afterMs: 600_000, code: 137 },
    { p: { onStop: "exits", stopMs: 4_000 }, grace: 2, afterMs: 2_000, code: 137 },
    { p: { onStop: "exits", stopMs: 4_000 }, grace: 0, afterMs: 0, code: 137 },
  ];
  for (const { p, grace, afterMs, code } of cases) {
    const { clock, runtime, running, status } = scene(program(p));
    const id = await running();
    const began = clock.now();
    const stop = runtime.stopContainer(id, grace, { because });
    await clock.advance(afterMs);
    await stop;
    const s = await status(id);
    assert.equal(s.exitCode, code);
    assert.equal(Number(s.finishedAt / 1_000_000n) - began, afterMs);
    assert.equal(clock.pending, 0, "no timer is left behind");
  }
});

Deno.test("a process that even SIGKILL does not end: stop ends at its deadline, the container runs on", async () => {
  const { clock, runtime, running, status } = scene(program({ onStop: "ignores", onKill: "hangs" }));
  const id = await running();
  const stop = assert.rejects(
    runtime.stopContainer(id, 5, { because }),
    (e: RuntimeError) => e.status === grpcCode.DeadlineExceeded,
  );
  await clock.advance(124_999);
  assert.equal(runtime.calls.at(-1)?.endedAt, undefined);
  await clock.advance(1);
  await stop;
  assert.equal((await status(id)).state, CONTAINER_RUNNING);
});

Deno.test("aborting a call rejects with Aborted and leaves no timer; what was signalled stays so", async () => {
  const { clock, runtime, running, status } = scene(program({ onStop: "exits", stopMs: 10_000 }));
  const id = await running();
  const owner = new AbortController();
  const stop = assert.rejects(runtime.stopContainer(id, 60, { because, signal: owner.signal }), isAborted);
  await turn();
  owner.abort();
  await stop;
  await turn();
  assert.equal(clock.pending, 1, "the process's own end only");
  await clock.advance(10_000);
  assert.equal((await status(id)).exitCode, 0);
});

Deno.test("a failed start leaves an exited container: 128, StartError", async () => {
  const { runtime, pod, container, status } = scene(program({ onStop: "exits", startError: "exec: no such file" }));
  const id = await container(await pod());
  await assert.rejects(runtime.startContainer(id, { because }), /no such file/);
  const s = await status(id);
  assert.deepEqual([s.state, s.exitCode, s.reason, s.message], [
    CONTAINER_EXITED,
    128,
    "StartError",
    "exec: no such file",
  ]);
});

Deno.test("exec: reply, limit, end of the container", async () => {
  const exec = (command: string[]) =>
    command[0] === "slow" ? { ms: Infinity } : command[0] === "late" ? { ms: 3_000 } : { exitCode: 2, stderr: "no" };
  const { clock, runtime, running } = scene(program({ onStop: "exits", exec }));
  const id = await running();
  const quick = await runtime.execSync(id, ["x"], 1);
  assert.deepEqual([quick.exitCode, new TextDecoder().decode(quick.stderr)], [2, "no"]);
  const late = assert.rejects(runtime.execSync(id, ["late"], 2), (e: KubeletError) => e.code === "Timeout");
  await clock.advance(2_000);
  await late;
  const slow = runtime.execSync(id, ["slow"], 0);
  await clock.advance(1_000_000);
  runtime.exitContainer(id, 1);
  assert.equal((await slow).exitCode, 137);
  assert.equal(clock.pending, 0);
});

Deno.test("faults: delay, error, hang, lost answer", async () => {
  const { clock, runtime, running, status, pod } = scene();
  const id = await running();
  const error = new RuntimeError("StopContainer", grpcCode.Internal, "disk is full");

  runtime.faults = () => ({ error });
  await assert.rejects(runtime.stopContainer(id, 1, { because }), error);
  assert.equal(runtime.snapshot().containers[0]?.state, "running");

  runtime.faults = (call) => call === "StopContainer" ? { hang: true } : undefined;
  const hung = assert.rejects(
    runtime.stopContainer(id, 1, { because, timeoutMs: 7_000 }),
    (e: KubeletError) => e.code === "Timeout",
  );
  await clock.advance(7_000);
  await hung;
  assert.equal((await status(id)).state, CONTAINER_RUNNING);

  runtime.faults = (call) => call === "StopContainer" ? { loseAnswer: true, delayMs: 3_000 } : undefined;
  const lost = assert.rejects(
    runtime.stopContainer(id, 1, { because }),
    (e: KubeletError) => e.code === "RuntimeUnavailable",
  );
  await clock.advance(3_000);
  await lost;
  assert.equal((await status(id)).state, CONTAINER_EXITED, "the work was done");

  runtime.faults = () => ({ loseAnswer: true });
  const [first] = runtime.snapshot().sandboxes;
  await runtime.removePodSandbox(first?.id ?? "", { because }).catch(() => {});
  await assert.rejects(pod(), (e: KubeletError) => e.code === "RuntimeUnavailable");
  runtime.faults = undefined;
  await assert.rejects(pod(), /name "web_default_u1_0" is reserved for "[0-9a-f]{64}"/);
});

Deno.test("a restart cuts calls and streams, then all is as before", async () => {
  const { clock, runtime, running } = scene(program({ onStop: "ignores" }));
  const id = await running();
  const events = runtime.containerEvents({})[Symbol.asyncIterator]();
  const cut = assert.rejects(events.next(), (e: KubeletError) => e.code === "RuntimeUnavailable");
  const stop = assert.rejects(runtime.stopContainer(id, 30, { because }), /restarting/);
  await turn();
  runtime.restart(2_000);
  await Promise.all([cut, stop]);
  await assert.rejects(runtime.version(), (e: KubeletError) => e.code === "RuntimeUnavailable");
  await clock.advance(2_000);
  assert.equal((await runtime.listContainers())[0]?.state, CONTAINER_RUNNING);
  assert.equal(clock.pending, 0);
});

Deno.test("a reboot ends every process and sandbox", async () => {
  const { clock, runtime, running } = scene();
  await running();
  runtime.reboot(0);
  await clock.advance(0);
  const { sandboxes, containers } = runtime.snapshot();
  assert.deepEqual([sandboxes[0]?.ready, containers[0]?.state, containers[0]?.exitCode], [false, "exited", 255]);
});

Deno.test("events tell created, started, stopped, deleted, with the states of the moment", async () => {
  const { clock, runtime, running } = scene();
  const owner = new AbortController();
  const seen: string[] = [];
  const reading = (async () => {
    for await (const e of runtime.containerEvents({ signal: owner.signal })) {
      const state = e.containersStatuses[0]?.state;
      seen.push(
        `${pb.ContainerEventType[e.containerEventType]} ${state === undefined ? "" : pb.ContainerState[state]}`,
      );
    }
  })();
  await turn();
  const id = await running();
  await runtime.removeContainer(id, { because });
  await clock.advance(0);
  owner.abort();
  await assert.rejects(reading, isAborted);
  assert.deepEqual(seen, [
    "CONTAINER_CREATED_EVENT ",
    "CONTAINER_STARTED_EVENT ",
    "CONTAINER_CREATED_EVENT CONTAINER_CREATED",
    "CONTAINER_STARTED_EVENT CONTAINER_RUNNING",
    "CONTAINER_STOPPED_EVENT CONTAINER_EXITED",
    "CONTAINER_DELETED_EVENT ",
  ]);
});

Deno.test("1.6 has neither RuntimeConfig nor container events", async () => {
  const { runtime } = scene({ flavour: "1.6" });
  await assert.rejects(runtime.runtimeConfig(), isUnimplemented);
  await assert.rejects(runtime.containerEvents({})[Symbol.asyncIterator]().next(), isUnimplemented);
});

Deno.test("addresses differ between live sandboxes; the node's network has none", async () => {
  const { runtime } = scene();
  const run = async (uid: string, network: pb.NamespaceMode) => {
    const id = await runtime.runPodSandbox(
      {
        metadata: { name: uid, namespace: "default", uid },
        linux: { securityContext: { namespaceOptions: { network } } },
      },
      "",
      { because },
    );
    return (await runtime.podSandboxStatus(id)).status?.network?.ip;
  };
  const ips = [await run("a", pb.NamespaceMode.POD), await run("b", pb.NamespaceMode.POD)];
  assert.deepEqual(ips, ["10.88.0.2", "10.88.0.3"]);
  assert.equal(await run("c", pb.NamespaceMode.NODE), "");
});

Deno.test("kept configs are the fake's own, and no reader can change them", async () => {
  const { runtime, sandboxConfig, pod, container } = scene();
  const id = await container(await pod());
  sandboxConfig.metadata.name = "changed";
  const [item] = await runtime.listPodSandboxes();
  assert.equal(item?.metadata?.name, "web");
  const status = present((await runtime.containerStatus(id)).status);
  assert.equal(status.logPath, "/var/log/pods/x/main/0.log");
  assert.throws(() => status.labels["a"] = "b", TypeError);
});

Deno.test("missing objects: NotFound for questions, done for removals", async () => {
  const { runtime } = scene();
  const ghost = "0".repeat(64);
  await assert.rejects(runtime.containerStatus(ghost), isNotFound);
  await assert.rejects(runtime.podSandboxStatus(ghost), isNotFound);
  await assert.rejects(runtime.startContainer(ghost, { because }), isNotFound);
  await runtime.removeContainer(ghost, { because });
  await runtime.removePodSandbox(ghost, { because });
  await runtime.stopPodSandbox(ghost, { because });
  assert.deepEqual(runtime.calls.at(-1)?.because, "Test");
});

Deno.test("pulls: time, failure, credentials, abort; a pull has no deadline", async () => {
  const asked: unknown[] = [];
  const error = new RuntimeError("PullImage", grpcCode.Unknown, "unauthorized");
  const { clock, runtime } = scene({
    registry: (reference, auth) => {
      asked.push([reference, auth?.username]);
      return auth?.username === "me" ? { ms: 3_600_000, image: { size: 7, user: "9" } } : { ms: 1_000, error };
    },
  });
  const image = { image: "registry.example/app:1" };
  const refused = assert.rejects(runtime.pullImage({ image }, { because }), error);
  await clock.advance(1_000);
  await refused;
  assert.equal(await runtime.imageStatus(image), undefined);
  const pull = runtime.pullImage({ image, auth: { username: "me" } }, { because });
  await clock.advance(3_600_000);
  const found = present(await runtime.imageStatus({ image: await pull }));
  assert.deepEqual([found.repoTags, found.size, found.uid?.value], [[image.image], 7n, 9n]);
  const owner = new AbortController();
  const left = assert.rejects(
    runtime.pullImage({ image, auth: { username: "me" } }, { because, signal: owner.signal }),
    isAborted,
  );
  await turn();
  owner.abort();
  await left;
  await turn();
  assert.equal(clock.pending, 0);
  assert.deepEqual(asked[0], [image.image, undefined]);
});

Deno.test("what ends while the runtime is away: 2 loses the exit code, 1.6 keeps it", async () => {
  for (const [flavour, code, reason] of [["2", 255, "Unknown"], ["1.6", 3, "Error"]] as const) {
    const { clock, runtime, running, status } = scene({
      flavour,
      programs: () => ({ onStop: "exits", runMs: 1_000, exitCode: 3 }),
    });
    const id = await running();
    runtime.restart(5_000);
    await clock.advance(5_000);
    const s = await status(id);
    assert.deepEqual([s.state, s.exitCode, s.reason], [CONTAINER_EXITED, code, reason]);
  }
});

Deno.test("same seed, same ids and order", async () => {
  const run = async () => {
    const { runtime, pod, container } = scene();
    const sandbox = await pod();
    for (let attempt = 0; attempt < 5; attempt++) await container(sandbox, attempt);
    return (await runtime.listContainers()).map((c) => c.id);
  };
  assert.deepEqual(await run(), await run());
});
