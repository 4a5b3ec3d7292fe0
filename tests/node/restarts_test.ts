import assert from "@assert";
import { ContainerState, PodSandboxState } from "../../cri/gen/runtime_pb.ts";
import { exists, namesIn } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { signal } from "../../scripts/node/processes.ts";
import { versions } from "./harness.ts";
import { lives } from "./lives.ts";
import { box, Observer, patience, pod, runAgent, shell, withObserver } from "./support.ts";

const steady = pod("steady", {
  initContainers: [shell("init", "echo init"), box("sidecar", { restartPolicy: "Always" })],
  containers: [
    box("main", { readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 } }),
    shell("again", "[ -e /keep/once ] && exec sleep 86400; touch /keep/once", {
      volumeMounts: [{ name: "keep", mountPath: "/keep" }],
    }),
  ],
  volumes: [{ name: "keep", emptyDir: {} }, { name: "memory", emptyDir: { medium: "Memory" } }],
});
const finished = pod("finished", { restartPolicy: "Never", containers: [shell("main", "exit 7")] });

for (const version of versions) {
  Deno.test(`the agent and containerd ${version} end and start again`, async (t) => {
    await withObserver({ name: `rs-${version}`, containerd: version }, async (seen) => {
      const { agent, containerd } = seen.node;
      const restart = async (how: "SIGKILL" | "SIGTERM") => {
        await agent.kill(how);
        const since = (await seen.records()).length;
        agent.start();
        await agent.healthy();
        return since;
      };
      const untouched = ["steady", "finished"];

      await t.step("kill -9 and a new start change no container", async () => {
        await agent.putManifest("steady.yaml", steady);
        await agent.putManifest("finished.yaml", finished);
        await agent.putManifest("doomed.yaml", pod("doomed", { containers: [box("main")] }));
        await agent.putManifest("edit.yaml", pod("edit", { containers: [box("main")] }));
        await seen.ready("doomed");
        await seen.ready("edit");
        await seen.phase("finished", "Failed");
        await seen.until("steady", "a restart of its second container", (status) => {
          const again = Observer.of(status, "again");
          return again.restartCount === 1 && again.state?.running !== undefined && Observer.of(status, "main").ready;
        });
        const before = await lives(seen, untouched);
        const since = await restart("SIGKILL");
        const told = async (name: string, what: RegExp) =>
          await seen.logged(`the status of ${name}`, (one) => {
            return one.msg === "Pod status" && one.pod === `${seen.full(name)}_default` &&
              what.test(JSON.stringify(one.status));
          }, since);
        await told("steady", /"type":"Ready","status":"True"/);
        const status = await seen.ready("steady");
        assert.equal(Observer.of(status, "again").restartCount, 1);
        assert.equal(Observer.of(status, "main").restartCount, 0);
        await told("finished", /"phase":"Failed"/);
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("pods changed, deleted and added while the agent was down are brought in line", async () => {
        const before = await lives(seen, untouched);
        const doomed = await seen.uid("doomed");
        const edited = await seen.uid("edit");
        await agent.kill("SIGKILL");
        await agent.removeManifest("doomed.yaml");
        await agent.putManifest("edit.yaml", pod("edit", { containers: [box("main", { args: ["2"] })] }));
        await agent.putManifest("added.yaml", pod("added", { containers: [box("main")] }));
        agent.start();
        await agent.healthy();
        await seen.gone("doomed", doomed);
        await seen.gone("edit", edited);
        await waitFor("the edited pod", () => seen.running("edit"), { within: patience });
        await waitFor("the added pod", () => seen.running("added"), { within: patience });
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("a container that ended while the agent was down is started again", async () => {
        const { id } = await seen.running("added");
        const { info } = await seen.detail(id);
        await agent.kill("SIGKILL");
        assert.ok(signal(info.pid, "SIGKILL"));
        await waitFor("its end", async () => {
          return (await seen.detail(id)).status.state === ContainerState.CONTAINER_EXITED;
        }, { within: patience });
        agent.start();
        await agent.healthy();
        const next = await waitFor("its successor", () => seen.running("added"), { within: patience });
        assert.notEqual(next.id, id);
        assert.equal(next.metadata?.attempt, 1);
        await seen.until("added", "one restart", (status) => Observer.of(status, "main").restartCount === 1);
      });

      await t.step("a second agent on the same root directory refuses and harms nothing", async () => {
        const before = await lives(seen, untouched);
        const second = await runAgent(seen, ["--healthz-port", "0"]);
        assert.equal(second.code, 1);
        assert.match(second.stderr, /another agent already uses the root directory .*--root-dir/);
        await agent.healthy();
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("SIGTERM ends the agent with exit code 0, and its containers go on", async () => {
        const before = await lives(seen, untouched);
        const ended = agent.exited();
        assert.ok(signal(agent.pid, "SIGTERM"));
        assert.equal(await ended, 0);
        assert.deepEqual(await lives(seen, untouched), before);
        agent.start();
        await agent.healthy();
        await seen.ready("steady");
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("killed while it starts and ends pods: each pod comes to stand once", async () => {
        const names = ["a", "b", "c", "d"].map((letter) => `storm-${letter}`);
        const volumes = [{ name: "v", emptyDir: { medium: "Memory" } }];
        for (const [i, name] of names.entries()) {
          await agent.putManifest(`${name}.yaml`, pod(name, { containers: [box("main"), box("other")], volumes }));
          await waitFor("a sandbox", async () => (await seen.sandboxes(name)).length > 0, {
            within: patience,
            every: 5,
          });
          await agent.kill("SIGKILL");
          if (i > 0) await agent.removeManifest(`${names[i - 1]}.yaml`);
          agent.start();
        }
        await agent.healthy();
        const last = names.at(-1) ?? "";
        for (const container of ["main", "other"]) {
          await waitFor("the last pod", () => seen.running(last, container), { within: patience });
        }
        await waitFor("one sandbox that is ready", async () => {
          const states = (await seen.sandboxes(last)).map((one) => one.state);
          return states.filter((one) => one === PodSandboxState.SANDBOX_READY).length === 1;
        }, { within: patience });
        for (const name of names.slice(0, -1)) {
          await waitFor(`${name} to be gone`, async () => {
            const left = [...await seen.sandboxes(name), ...await seen.containers(name)];
            const dirs = (await namesIn(agent.paths.logs)).filter((one) => one.startsWith(`default_${name}-`));
            return left.length + dirs.length === 0;
          }, { within: patience });
        }
        await agent.removeManifest(`${last}.yaml`);
        await seen.gone(last, await seen.uid(last));
      });

      await t.step("containerd dies and comes back: pods go on, the agent says so and goes on too", async () => {
        const before = await lives(seen, untouched);
        const since = (await seen.records()).length;
        await containerd.kill("SIGKILL");
        await seen.logged("that the runtime is down", (one) => /runtime does not answer/.test(String(one.msg)), since);
        await agent.putManifest("late.yaml", pod("late", { containers: [box("main")] }));
        await agent.removeManifest("edit.yaml");
        assert.equal(
          (await fetch(`http://127.0.0.1:${agent.healthzPort}/healthz`).then((r) => r.text())).length > 0,
          true,
        );
        await containerd.start();
        await seen.logged("that it is back", (one) => one.msg === "the container runtime answers", since);
        await seen.ready("late");
        await waitFor("the removed pod to go", async () => (await seen.sandboxes("edit")).length === 0, {
          within: patience,
        });
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("containerd down when the agent starts: it waits, says so, and goes on when it comes", async () => {
        const before = await lives(seen, untouched);
        await agent.kill("SIGTERM");
        await containerd.kill("SIGKILL");
        const since = (await seen.records()).length;
        agent.start();
        const said = await seen.logged("waiting", (one) => one.msg === "waiting for the container runtime", since);
        assert.equal(said.endpoint, containerd.endpoint);
        await agent.healthy();
        await agent.putManifest("later.yaml", pod("later", { containers: [box("main")] }));
        await containerd.start();
        await seen.ready("later");
        await seen.ready("steady");
        assert.deepEqual(await lives(seen, untouched), before);
      });

      await t.step("directories and groups of pods that nobody knows any more are swept", async () => {
        const { kubelet } = agent.paths;
        const stray = `${kubelet}/pods/5a5a5a5a-0000-4000-8000-000000000000/volumes/kubernetes.io~empty-dir/v`;
        await Deno.mkdir(stray, { recursive: true });
        await Deno.writeTextFile(`${stray}/file`, "x");
        await restart("SIGTERM");
        await waitFor("the stray directory to go", async () => {
          return !await exists(`${kubelet}/pods/5a5a5a5a-0000-4000-8000-000000000000`);
        }, { within: patience });
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
  });
}
