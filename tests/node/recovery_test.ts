import assert from "@assert";
import { ContainerState, PodSandboxState, RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { namesIn, remove, unlessMissing } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { signal } from "../../scripts/node/processes.ts";
import { versions } from "./harness.ts";
import { box, Observer, patience, pod, shell, withObserver } from "./support.ts";

const method = RuntimeService.method;

for (const version of versions) {
  Deno.test(`what breaks behind the agent's back on containerd ${version} is made good`, async (t) => {
    const traces = await Deno.makeTempDir({ prefix: "denolet-trace-" });
    await withObserver({ name: `rc-${version}`, containerd: version }, async (seen) => {
      const { agent } = seen.node;
      const plain = (name: string) =>
        pod(name, {
          initContainers: [shell("init", "true"), box("side", { restartPolicy: "Always" })],
          containers: [box("main")],
        });
      const newest = async (name: string) => {
        const sandbox = (await seen.sandboxes(name)).at(-1);
        if (!sandbox) throw new Error(`${name} has no sandbox`);
        return sandbox;
      };
      const sandboxPid = async (id: string) => {
        const { info } = await seen.cri.call(method.podSandboxStatus, { podSandboxId: id, verbose: true });
        return Number(JSON.parse(info.info ?? "{}").pid);
      };
      /** Waits until a pod has exactly one ready sandbox, which is not `old`, and its containers run in it. */
      const anew = async (name: string, old: string) =>
        await waitFor(`${name} in a new sandbox`, async () => {
          const ready = (await seen.sandboxes(name)).filter((one) => one.state === PodSandboxState.SANDBOX_READY);
          const [only] = ready;
          if (!only || ready.length > 1 || only.id === old) return undefined;
          const running = [await seen.running(name, "main"), await seen.running(name, "side")];
          return running.every((one) => one.podSandboxId === only.id) ? only : undefined;
        }, { within: patience });

      await t.step("the sandbox's process killed: a new sandbox, the containers in it", async () => {
        await agent.putManifest("pause.yaml", plain("pause"));
        await seen.ready("pause");
        const sandbox = await newest("pause");
        assert.ok(signal(await sandboxPid(sandbox.id), "SIGKILL"));
        const next = await anew("pause", sandbox.id);
        assert.equal(next.metadata?.attempt, 1);
        assert.equal(next.metadata?.uid, sandbox.metadata?.uid);
        await seen.event("pause", "SandboxChanged");
        const status = await seen.until("pause", "to be ready again", (one) => {
          return one.conditions?.find((c) => c.type === "Ready")?.status === "True" &&
            Observer.of(one, "main").restartCount === 1;
        });
        const answer = await seen.cri.call(method.podSandboxStatus, { podSandboxId: next.id });
        assert.equal(status.podIP, answer.status?.network?.ip);
        assert.match(await seen.out("pause", "cat /etc/hosts"), new RegExp(`^${status.podIP}\t`, "m"));
      });

      await t.step(
        "a container removed from the runtime is started again, its log goes on under the next number",
        async () => {
          await agent.putManifest("removed.yaml", plain("removed"));
          await seen.ready("removed");
          const { id } = await seen.running("removed");
          const side = await seen.running("removed", "side");
          await seen.cri.call(method.removeContainer, { containerId: id });
          const next = await waitFor("its successor", () => seen.running("removed"), { within: patience });
          assert.notEqual(next.id, id);
          assert.equal(next.metadata?.attempt, 1);
          assert.equal((await seen.running("removed", "side")).id, side.id);
        },
      );

      await t.step("a whole pod removed from the runtime comes back", async () => {
        const sandbox = await newest("removed");
        await seen.cri.call(method.stopPodSandbox, { podSandboxId: sandbox.id });
        await seen.cri.call(method.removePodSandbox, { podSandboxId: sandbox.id });
        await anew("removed", sandbox.id);
        await seen.ready("removed");
      });

      await t.step("a sandbox that nobody knows is removed", async () => {
        const uid = "77777777-0000-4000-8000-000000000000";
        const labels = {
          "io.kubernetes.pod.name": "stranger",
          "io.kubernetes.pod.namespace": "default",
          "io.kubernetes.pod.uid": uid,
        };
        const { podSandboxId } = await seen.cri.call(method.runPodSandbox, {
          config: {
            metadata: { name: "stranger", namespace: "default", uid, attempt: 0 },
            labels,
            logDirectory: `${agent.paths.logs}/default_stranger_${uid}`,
            linux: { cgroupParent: `${agent.paths.cgroup}/kubepods/besteffort/pod${uid}` },
          },
        });
        await waitFor("the stranger to go", async () => {
          const { items } = await seen.cri.call(method.listPodSandbox, { filter: { id: podSandboxId } });
          return items.every((one) => one.state === PodSandboxState.SANDBOX_NOTREADY);
        }, { within: patience });
      });

      await t.step("a container over its memory limit is killed, and the status says so", async () => {
        await agent.putManifest(
          "hungry.yaml",
          pod("hungry", {
            restartPolicy: "Never",
            containers: [
              shell("main", "head -c 200000000 /dev/zero | tail", { resources: { limits: { memory: "20Mi" } } }),
            ],
          }),
        );
        const status = await seen.phase("hungry", "Failed");
        const { terminated } = Observer.of(status, "main").state ?? {};
        assert.equal(terminated?.reason, "OOMKilled");
        assert.equal(terminated?.exitCode, 137);
      });

      await t.step("directories of a running pod deleted by hand: its end goes well all the same", async () => {
        const spec = pod("bare", {
          containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v" }] })],
          volumes: [{ name: "v", emptyDir: {} }, { name: "m", emptyDir: { medium: "Memory" } }],
        });
        await agent.putManifest("bare.yaml", spec);
        await seen.ready("bare");
        const uid = await seen.uid("bare");
        await remove(`${agent.paths.logs}/default_${seen.full("bare")}_${uid}`);
        await remove(`${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir/v`);
        await remove(`${agent.paths.kubelet}/pods/${uid}/etc-hosts`);
        await agent.removeManifest("bare.yaml");
        await seen.gone("bare", uid);
      });

      await t.step("edits faster than the pod ends: one at a time, and the last one stays", async () => {
        const edition = (name: string) =>
          pod("churn", {
            terminationGracePeriodSeconds: 20,
            containers: [
              shell(
                "main",
                `trap 'sleep 1; echo ${name} ends >> /trace/t; exit 0' TERM; echo ${name} >> /trace/t; while :; do sleep 0.1; done`,
                {
                  volumeMounts: [{ name: "trace", mountPath: "/trace" }],
                },
              ),
            ],
            volumes: [{ name: "trace", hostPath: { path: traces } }],
          });
        const trace = async () =>
          (await unlessMissing(Deno.readTextFile(`${traces}/t`)) ?? "").split("\n").filter((line) => line !== "");
        const until = async (last: string) =>
          await waitFor(`${last} to run`, async () => (await trace()).at(-1) === last, { within: patience });
        const put = async (name: string) => await agent.putManifest("churn.yaml", edition(name));
        await put("one");
        await until("one");
        const uid = await seen.uid("churn");
        await put("two");
        await waitFor("the first to be ended", async () => {
          return (await seen.events("churn")).some((one) => one.reason === "Killing");
        }, { within: patience, every: 20 });
        await put("three");
        await until("three");
        assert.deepEqual(await trace(), ["one", "one ends", "three"]);
        // there and back, while it still ends: the same pod comes again
        await put("four");
        await waitFor("the third to be ended", async () => {
          return (await seen.events("churn")).filter((one) => one.reason === "Killing").length === 2;
        }, { within: patience, every: 20 });
        await put("three");
        await waitFor("the third to run again", async () => (await trace()).length === 5, { within: patience });
        assert.deepEqual((await trace()).slice(2), ["three", "three ends", "three"]);
        await agent.removeManifest("churn.yaml");
        await seen.gone("churn", uid);
        await waitFor("the last end", async () => (await trace()).at(-1) === "three ends", { within: patience });
      });

      await t.step("an agent killed while it ends a pod whose manifest is gone: the next one ends it", async () => {
        await agent.putManifest(
          "slow.yaml",
          pod("slow", {
            terminationGracePeriodSeconds: 4,
            containers: [shell("main", "trap '' TERM; while :; do sleep 0.1; done")],
            volumes: [{ name: "m", emptyDir: { medium: "Memory" } }],
          }),
        );
        await seen.ready("slow");
        const uid = await seen.uid("slow");
        await agent.removeManifest("slow.yaml");
        await seen.event("slow", "Killing");
        await agent.kill("SIGKILL");
        agent.start();
        await agent.healthy();
        await seen.gone("slow", uid);
      });

      await t.step("two dozen pods at once come and go, and no open file of the agent stays for them", async () => {
        const openFiles = async () => (await namesIn(`/proc/${agent.pid}/fd`)).length;
        const before = await openFiles();
        const names = Array.from({ length: 24 }, (_, i) => `many-${i}`);
        for (const name of names) {
          await agent.putManifest(
            `${name}.yaml`,
            pod(name, {
              containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v" }] })],
              volumes: [{ name: "v", emptyDir: {} }],
            }),
          );
        }
        for (const name of names) await seen.ready(name);
        for (const name of names) assert.equal((await seen.containers(name)).length, 1, name);
        const states = await Promise.all(names.map(async (name) => (await seen.containers(name))[0]?.state));
        assert.ok(states.every((one) => one === ContainerState.CONTAINER_RUNNING));
        for (const name of names) await agent.removeManifest(`${name}.yaml`);
        for (const name of names) {
          await waitFor(`${name} to go`, async () => (await seen.sandboxes(name)).length === 0, { within: patience });
        }
        await waitFor("the open files to be as many as before", async () => await openFiles() <= before + 3, {
          within: patience,
        });
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
    await remove(traces);
  });
}
