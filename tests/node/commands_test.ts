import assert from "@assert";
import { makeExecutable } from "../../scripts/compile.ts";
import { remove, repository } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { agentProgram, box, Observer, patience, pod, shell, withObserver } from "./support.ts";

/** What is tested: a program instead of the sources, with more variables. */
interface Tested {
  readonly program?: string;
  readonly env?: Record<string, string>;
}
const tested = new WeakMap<Observer, Tested>();

/** Runs a command of the program under test. */
async function kubelet(seen: Observer, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { paths } = seen.node.agent;
  const how = tested.get(seen);
  const program = how?.program ?? Deno.env.get("DENOLET_TEST_PROGRAM");
  const all = [...args, "--root-dir", paths.kubelet];
  if (program === undefined) return await agentProgram(all, { run: paths.run });
  const env = { DENOLET_RUN: paths.run, NO_COLOR: "1", ...how?.env };
  const { code, stdout, stderr } = await new Deno.Command(program, { args: all, env, cwd: "/" }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

/** What a command prints, when it succeeds. */
async function said(seen: Observer, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await kubelet(seen, ...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

Deno.test("kubelet ps, explain, logs and check on a real node", async (t) => {
  await lookAtNode(t, {});
});

Deno.test("the executable's commands, with the rights that the plan gives each", async (t) => {
  const cache = await Deno.makeTempDir({ prefix: "denolet-commands-" });
  try {
    await Deno.chmod(cache, 0o755);
    await makeExecutable("launcher");
    await lookAtNode(t, { program: `${repository}/dist/kubelet`, env: { DENOLET_CACHE: cache } });
  } finally {
    await remove(cache);
  }
});

async function lookAtNode(t: Deno.TestContext, how: Tested): Promise<void> {
  await withObserver({ name: "commands", containerd: "debian", ...how }, async (seen) => {
    tested.set(seen, how);
    const { agent } = seen.node;
    const talk = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done";
    await agent.putManifest("well.json", pod("well", { containers: [shell("main", talk)] }));
    await agent.putManifest("loop.json", pod("loop", { containers: [shell("main", "echo no luck; exit 3")] }));
    await agent.putManifest(
      "never.json",
      pod("never", { containers: [box("main", { image: "localhost/none:1", imagePullPolicy: "Never" })] }),
    );
    await agent.putManifest(
      "large.json",
      pod("large", { containers: [box("main", { resources: { requests: { cpu: "999" } } })] }),
    );
    await agent.putManifest(
      "unmounted.json",
      pod("unmounted", {
        containers: [box("main", { volumeMounts: [{ name: "data", mountPath: "/data" }] })],
        volumes: [{ name: "data", hostPath: { path: `${agent.paths.root}/none`, type: "Directory" } }],
      }),
    );
    await seen.ready("well");
    await seen.event("unmounted", "FailedMount");
    await seen.until("loop", "the crash loop", (status) => {
      return Observer.of(status, "main").state?.waiting?.reason === "CrashLoopBackOff";
    });
    await seen.phase("large", "Failed");
    await seen.until("never", "its image", (status) => {
      return Observer.of(status, "main").state?.waiting?.reason === "ErrImageNeverPull";
    });

    await t.step("ps lists all of them, also the one that was rejected", async () => {
      const table = await said(seen, "ps");
      assert.match(table, /^NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE +IP +UID\n/);
      assert.match(table, /default +well-commands +1\/1 +Running +0 +\S+ +[\d.]+ +\S+\n/);
      assert.match(table, /default +loop-commands +0\/1 +CrashLoopBackOff +[1-9]/);
      assert.match(table, /default +never-commands +0\/1 +ErrImageNeverPull +0/);
      assert.match(table, /default +large-commands +0\/1 +UnexpectedAdmissionError +0/);
      const list = JSON.parse(await said(seen, "ps", "-o", "json"));
      assert.equal(list.items.length, 5);
    });
    await t.step("the socket is root's alone", async () => {
      const { mode } = await Deno.stat(`${agent.paths.kubelet}/denolet.sock`);
      assert.equal((mode ?? 0) & 0o777, 0o600);
    });
    await t.step("explain", async () => {
      assert.match(await said(seen, "explain", "well"), /Nothing is wrong: every container runs and is ready/);
      const loop = await said(seen, "explain", "default/loop-commands");
      assert.match(loop, /Why: Container main ends again and again: its command ended with exit code 3/);
      assert.match(loop, /Remedy: Read what it wrote: kubelet logs -p -c main loop-commands\n/);
      assert.match(loop, /RunPodSandbox[^]*StartContainer main/);
      assert.match(
        await said(seen, "explain", "never"),
        /needs the image localhost\/none:1, which is not on this node/,
      );
      const large = await said(seen, "explain", (await seenUid(seen, "large")).slice(0, 8));
      assert.match(
        large,
        /did not take the pod \([^)]+\): it requests more cpu than is free[^]*Remedy: Lower resources\.requests/,
      );
      const image = await said(seen, "explain", "image", "localhost/busybox:1");
      assert.match(image, /default\/well-commands, container main \(imagePullPolicy IfNotPresent\): runs/);
      assert.match(
        image,
        /On the node as sha256:\w+, [\d.]+ MiB: it stays, as container main of pod default\/\S+-commands/,
      );
      const unmounted = await said(seen, "explain", "unmounted");
      assert.match(unmounted, /a volume that cannot be set up: data: .*none/);
      assert.match(unmounted, /MountVolume: set up volume "data" FAILED: /);
      const { code, stderr } = await kubelet(seen, "explain", "wel-commands");
      assert.deepEqual([code, /knows a pod "wel-commands"/.test(stderr)], [1, true], stderr);
    });
    await t.step("logs, of this instance and the one before", async () => {
      const tail = await said(seen, "logs", "--tail", "2", "well");
      assert.match(tail, /^line \d+\nline \d+\n$/);
      assert.equal(await said(seen, "logs", "-p", "loop"), "no luck\n");
      assert.match(await said(seen, "logs", "--timestamps", "loop"), /^\d{4}-\d\d-\d\dT\S+ no luck\n$/);
      const { code, stderr } = await kubelet(seen, "logs", "never");
      assert.equal(code, 1);
      assert.match(stderr, /waiting to start: ErrImageNeverPull; why: kubelet explain never-commands/);
    });
    await t.step("logs -f goes on until the container ends", async () => {
      const following = said(seen, "logs", "-f", "--tail", "1", "well");
      const { id } = (await seen.containers("well"))[0] ?? { id: "" };
      await waitFor("another line", async () => {
        const { info } = await seen.detail(id);
        return info.pid > 0;
      }, { within: patience });
      await agent.removeManifest("well.json");
      const lines = (await following).trimEnd().split("\n").map((line) => Number(line.replace("line ", "")));
      lines.forEach((n, at) => assert.equal(n, (lines[0] ?? 0) + at));
    });
    await t.step("a pod that is gone is explained from the journal file", async () => {
      const text = await waitFor("the pod to be gone", async () => {
        const { stdout } = await kubelet(seen, "explain", "well");
        return stdout.includes("its journal file") ? stdout : undefined;
      }, { within: patience });
      assert.match(text, /The pod is gone \([^)]+\)/);
      assert.match(text, /StopContainer main/);
    });
    await t.step("check", async () => {
      const { stdout, code } = await kubelet(seen, "check", "--config", agent.paths.config);
      assert.match(stdout, /^ok +configuration +can be used$/m);
      assert.match(stdout, /^ok +runtime +containerd \S+ answers at /m);
      assert.match(stdout, /^ok +network /m);
      assert.match(stdout, /^(ok|warn) +cgroups +version [12]/m);
      assert.equal(code, /^fail/m.test(stdout) ? 1 : 0, stdout);
      assert.doesNotMatch(stdout, /^fail/m);
      const bad = await kubelet(
        seen,
        "check",
        "--container-runtime-endpoint=unix:///run/none.sock",
        "--fail-swap-on=false",
      );
      assert.equal(bad.code, 1);
      assert.match(bad.stdout, /^fail +runtime +unix:\/\/\/run\/none\.sock does not answer.*\n +Remedy: Start it/m);
    });
    await t.step("without an agent: said so, and told from the files", async () => {
      await agent.kill();
      const ps = await kubelet(seen, "ps");
      assert.deepEqual([ps.code, ps.stdout], [1, ""]);
      assert.match(ps.stderr, /no agent runs with the root directory \S+; start it/);
      assert.match(await said(seen, "explain", "loop"), /^The agent does not answer[^]*Pod default\/loop-commands/);
      const logs = await kubelet(seen, "logs", "loop-commands");
      assert.deepEqual([logs.code, logs.stdout], [0, "no luck\n"], logs.stderr);
      assert.match(logs.stderr, /the agent does not answer/);
      agent.start();
      await agent.healthy();
    });
  });
}

async function seenUid(seen: Observer, name: string): Promise<string> {
  const list = JSON.parse(await said(seen, "ps", "-o", "json"));
  const found = list.items.find((one: { metadata: { name: string } }) => one.metadata.name === seen.full(name));
  return found.metadata.uid;
}
