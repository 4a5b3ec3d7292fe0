import assert from "@assert";
import { ContainerState, PodSandboxState } from "../../cri/gen/runtime_pb.ts";
import type { PodStatus } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { signal } from "../../scripts/node/processes.ts";
import { versions } from "./harness.ts";
import type { KillPoint } from "./kill_proxy.ts";
import { KillStage, proxySocket } from "./kill_stage.ts";
import { lives } from "./lives.ts";
import { box, Observer, patience, pod, shell, untilEnded, withObserver } from "./support.ts";

/** Kill points on each containerd; together at least a hundred. */
const wanted = 52;

/** Every change once before it, after it and under way; between them also at whatever call comes. */
function* points(): Generator<KillPoint> {
  const kinds = ["after", "before", "under"] as const;
  for (let i = 0; i < wanted; i++) {
    const when = kinds[i % 3] ?? "after";
    if (i % 8 === 7) yield { n: 1 + (i * 5) % 24, mutating: false, when };
    else yield { n: i % 5 === 4 ? 2 : 1, mutating: true, when };
  }
}

const exec = { exec: { command: ["true"] } };
const steady = pod("steady", {
  initContainers: [shell("init", "echo init"), box("sidecar", { restartPolicy: "Always", startupProbe: exec })],
  containers: [
    box("main", { readinessProbe: { ...exec, periodSeconds: 1 }, livenessProbe: { ...exec, periodSeconds: 1 } }),
    box("other"),
  ],
  volumes: [{ name: "memory", emptyDir: { medium: "Memory" } }],
});
const finished = pod("finished", { restartPolicy: "Never", containers: [shell("main", "exit 7")] });
/** Writes down each of its starts, in seconds since the machine started, and ends a second later. */
const loop = pod("loop", {
  containers: [shell("main", "cut -d' ' -f1 /proc/uptime >> /keep/starts; sleep 1; exit 1", {
    volumeMounts: [{ name: "keep", mountPath: "/keep" }],
  })],
  volumes: [{ name: "keep", emptyDir: {} }],
});
const work = (name: string, word: string) =>
  pod(name, {
    initContainers: [shell("init", "true")],
    containers: [
      box("main", {
        command: [...untilEnded, word],
        volumeMounts: [{ name: "memory", mountPath: "/memory" }],
        readinessProbe: { ...exec, periodSeconds: 1 },
      }),
    ],
    volumes: [{ name: "memory", emptyDir: { medium: "Memory" } }],
  });

/** Waits until a pod has one sandbox that is ready and one container that runs, which was started for the n-th time. */
async function stands(seen: Observer, stage: KillStage, name: string, uid: string | undefined, attempt: number) {
  return await waitFor(`${name} to stand`, async () => {
    stage.check();
    const boxes = (await seen.sandboxes(name)).filter((one) => one.state === PodSandboxState.SANDBOX_READY);
    if (boxes.length !== 1) throw new Error(`${boxes.length} sandboxes are ready`);
    const found = boxes[0]?.metadata?.uid ?? "";
    if (found === uid) throw new Error("its predecessor still is there");
    const running = (await seen.containers(name)).filter((one) => one.state === ContainerState.CONTAINER_RUNNING);
    const told = running.map((one) => `${one.metadata?.name}#${one.metadata?.attempt}`).join(", ");
    if (told !== `main#${attempt}`) throw new Error(`there run: ${told}`);
    assert.equal(boxes[0]?.metadata?.attempt, 0, "a second sandbox was made");
    return { uid: found, id: running[0]?.id ?? "" };
  }, { within: patience * 2 });
}

/** One life of a pod: it starts, a container of it ends and is started again, it is edited, and it is removed. */
async function life(seen: Observer, stage: KillStage, name: string): Promise<void> {
  const { agent } = seen.node;
  await agent.putManifest(`${name}.yaml`, work(name, "first"));
  const first = await stands(seen, stage, name, undefined, 0);
  assert.ok(signal((await seen.detail(first.id)).info.pid, "SIGKILL"));
  await stands(seen, stage, name, undefined, 1);
  await agent.putManifest(`${name}.yaml`, work(name, "second"));
  const second = await stands(seen, stage, name, first.uid, 0);
  await agent.removeManifest(`${name}.yaml`);
  for (const { uid } of [first, second]) {
    await waitFor(`${name} to go`, async () => {
      stage.check();
      return (await seen.sandboxes(name)).every((one) => one.metadata?.uid !== uid);
    }, { within: patience * 2 });
  }
}

/** What the agents have said of a pod since a line of the log. */
async function said(seen: Observer, name: string, since: number): Promise<PodStatus[]> {
  return (await seen.records()).slice(since)
    .filter((one) => one.msg === "Pod status" && one.pod === `${seen.full(name)}_default`)
    .map((one) => one.status as PodStatus);
}

/** When a container of the pod `loop` was started, in seconds. */
async function startsIn(path: string): Promise<number[]> {
  return (await Deno.readTextFile(path)).trim().split("\n").map(Number);
}

const isReady = (status: PodStatus) =>
  status.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false;

for (const version of versions) {
  const name = `kp-${version}`;
  Deno.test(`the agent is killed at ${wanted} calls to containerd ${version}, and nobody notices`, async (t) => {
    const config = { containerRuntimeEndpoint: `unix://${proxySocket(name)}` };
    await withObserver({ name, containerd: version, config, start: false }, async (seen) => {
      const { agent } = seen.node;
      await using stage = await KillStage.start(seen);
      const untouched = ["steady", "finished"];
      for (const one of [steady, finished, loop]) await agent.putManifest(`${one.metadata?.name}.yaml`, one);
      agent.start();
      await agent.healthy();
      await seen.ready("steady");
      await seen.phase("finished", "Failed");
      const restarts = (status: PodStatus) => Observer.of(status, "main").restartCount;
      await seen.until("loop", "its second restart", (status) => restarts(status) === 2);
      const before = await lives(seen, untouched);
      const since = (await seen.records()).length;

      await stage.begin(points());
      for (let round = 0; stage.kills.length < wanted; round++) {
        assert.ok(round < 12, `only ${stage.kills.length} kills in ${round} lives: ${stage.kills.join(", ")}`);
        await life(seen, stage, `work-${round}`);
      }
      await agent.healthy();

      await t.step("no container and no sandbox of the others was touched", async () => {
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("nobody was told of anything else", async () => {
        const steadily = await said(seen, "steady", since);
        assert.ok(steadily.length > 0);
        for (const status of steadily) {
          assert.ok(isReady(status), JSON.stringify(status));
          const all = [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []];
          assert.deepEqual(all.filter((one) => !one.ready || one.restartCount > 0), []);
        }
        for (const status of await said(seen, "finished", since)) assert.equal(status.phase, "Failed");
      });

      await t.step("a container that crashes kept its back-off and its count", async () => {
        const uid = await seen.uid("loop");
        const keep = `${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir/keep/starts`;
        // It goes on meanwhile: count and file are of one moment when it is held back and the file has not grown.
        const starts = await waitFor("the count of its starts", async () => {
          const before = await startsIn(keep);
          const main = Observer.of(await seen.status("loop") ?? {}, "main");
          if (main.restartCount === before.length - 1 && (await startsIn(keep)).length === before.length) return before;
          throw new Error(`${main.restartCount} restarts, starts: ${before}`);
        }, { within: patience });
        // the first restart comes at once, the next ones 10, 20, 40 … s after the end of what went before
        for (let i = 2; i < starts.length; i++) {
          const pause = (starts[i] ?? 0) - (starts[i - 1] ?? 0) - 1;
          assert.ok(pause >= 10 * 2 ** (i - 2) - 0.1, `restart ${i} came after ${pause} s: ${starts}`);
        }
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
  });
}
