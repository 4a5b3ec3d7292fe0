import assert from "@assert";
import { attempt } from "../../scripts/lib/command.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { agentConfig, agentPaths, cleanAgent } from "../../scripts/node/agent_node.ts";
import { agentProgram, box, patience, pod, runAgent, shell, withObserver } from "./support.ts";

/** A configuration in a file of its own, and the directory of it; nothing runs. */
async function withConfig(
  name: string,
  config: Record<string, unknown> | string,
  test: (paths: { config: string; root: string; run: string }) => Promise<void>,
): Promise<void> {
  const paths = agentPaths(name);
  await cleanAgent(paths);
  await Deno.mkdir(paths.root, { recursive: true });
  const facts = { root: paths.root, endpoint: "unix:///nowhere.sock", cgroup: "/", healthzPort: 0 };
  const text = typeof config === "string" ? config : JSON.stringify({ ...agentConfig(facts), ...config });
  await Deno.writeTextFile(paths.config, text);
  try {
    await test({ config: paths.config, root: paths.kubelet, run: paths.run });
  } finally {
    await cleanAgent(paths);
  }
}

Deno.test("process: bad flags and bad configuration end it with exit code 1 and a plain error", async (t) => {
  const cases: readonly [string, Record<string, unknown> | string, readonly string[], RegExp][] = [
    ["an unknown flag", {}, ["--no-such-flag=1"], /unknown flag.*--no-such-flag/],
    ["a flag nearly right", {}, ["--rot-dir=/x"], /--rot-dir.*--root-dir/s],
    ["a flag without its value", {}, ["--node-ip"], /--node-ip/],
    ["a flag with a bad value", {}, ["--v=many"], /many.*--v|--v.*many/],
    ["a word too many", {}, ["surplus"], /surplus/],
    ["a configuration that is not there", {}, ["--config=/no/such/file"], /\/no\/such\/file/],
    ["a field of the wrong type", { maxPods: "many" }, [], /maxPods/],
    ["a field out of range", { healthzPort: 70_000 }, [], /healthzPort.*70000/],
    ["a duration that is none", { fileCheckFrequency: "soon" }, [], /fileCheckFrequency.*soon/],
    [
      "a wrong eviction threshold",
      { evictionHard: { "memory.available": "lots" } },
      [],
      /evictionHard|memory\.available/,
    ],
    ["an unknown kind", { kind: "Pod", apiVersion: "v1" }, [], /Pod|kind/],
    ["broken YAML", "kind: [", [], /config\.yaml/],
    ["a feature gate that is none", { featureGates: { NoSuchGate: true } }, [], /NoSuchGate/],
    ["cgroup v1 refused", { failCgroupV1: true }, [], /failCgroupV1/],
  ];
  const version1 = (await attempt(["test", "-e", "/sys/fs/cgroup/cgroup.controllers"])).code !== 0;
  for (const [what, config, flags, text] of cases) {
    await t.step({
      name: what,
      ignore: what.startsWith("cgroup v1") && !version1,
      fn: () =>
        withConfig("ps-bad", config, async (paths) => {
          const ended = await agentProgram(["--config", paths.config, "--root-dir", paths.root, ...flags], paths);
          assert.equal(ended.code, 1, ended.stderr);
          assert.match(ended.stderr, text);
          assert.equal(ended.stdout, "");
          assert.doesNotMatch(ended.stderr, /\bat .*\.ts:\d+|Uncaught|Stack/, "no stack trace");
        }),
    });
  }
});

Deno.test("process: a root directory that cannot be written ends it with a plain error", async () => {
  await withConfig("ps-ro", {}, async (paths) => {
    await Deno.mkdir(paths.root);
    await attempt(["mount", "-t", "tmpfs", "-o", "ro", "denolet-test", paths.root]);
    const ended = await agentProgram(["--config", paths.config, "--root-dir", paths.root], paths);
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, new RegExp(`${paths.root}.*[Rr]ead-only`));
    assert.doesNotMatch(ended.stderr, /\bat .*\.ts:\d+|Uncaught/);
  });
});

Deno.test("process: help and version need nothing", async () => {
  const paths = agentPaths("ps-help");
  try {
    const help = await agentProgram(["--help"], paths);
    assert.equal(help.code, 0);
    assert.match(help.stdout, /--root-dir/);
    const version = await agentProgram(["--version"], paths);
    assert.equal(version.code, 0);
    assert.match(version.stdout, /^Kubernetes v1\.36\./);
  } finally {
    await cleanAgent(paths);
  }
});

Deno.test("process: run-once, other sources, and manifests that cannot be read", async (t) => {
  await withObserver({ name: "ps-node", start: false }, async (seen) => {
    const { agent } = seen.node;
    /** Ends what a run-once left running: an agent without manifests does. */
    const sweep = async () => {
      assert.ok(await agent.drain());
      await agent.kill();
      await seen.nothingLeft();
    };

    await t.step("run-once of pods that come up: exit code 0, a table, the pods go on", async () => {
      await agent.putManifest("good.yaml", pod("good", { containers: [box("main")] }));
      await agent.putManifest(
        "done.yaml",
        pod("done", { restartPolicy: "Never", containers: [shell("main", "true")] }),
      );
      const ended = await runAgent(seen, ["--runonce"]);
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stdout, /^NAME +READY +STATUS/);
      assert.match(ended.stdout, new RegExp(`^default/${seen.full("good")} +1/1 +Running`, "m"));
      assert.match(ended.stdout, new RegExp(`^default/${seen.full("done")} +0/1 +Succeeded`, "m"));
      await seen.running("good");
    });

    await t.step("run-once with a pod that fails, and with a manifest that is none: exit code 1", async () => {
      await agent.putManifest(
        "bad.yaml",
        pod("bad", { restartPolicy: "Never", containers: [shell("main", "exit 3")] }),
      );
      const failed = await runAgent(seen, ["--runonce"]);
      assert.equal(failed.code, 1, failed.stderr);
      assert.match(failed.stdout, new RegExp(`^default/${seen.full("bad")} .*exit code 3`, "m"));
      await agent.removeManifest("bad.yaml");
      await agent.putManifest("broken.yaml", "kind: [");
      const broken = await runAgent(seen, ["--runonce"]);
      assert.equal(broken.code, 1, broken.stderr);
      assert.match(broken.stdout, /broken\.yaml: /);
      await agent.removeManifest("broken.yaml");
      await sweep();
    });

    await t.step("run-once without any manifest: exit code 0", async () => {
      assert.equal((await runAgent(seen, ["--runonce"])).code, 0);
    });

    await t.step("manifests from standard input, several documents", async () => {
      const documents = ["piped", "good"].map((name) => JSON.stringify(pod(name, { containers: [box("main")] })));
      const ended = await runAgent(seen, ["--runonce", "--pod-manifest-path=-"], { stdin: documents.join("\n---\n") });
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stdout, new RegExp(`^default/${seen.full("piped")} +1/1 +Running`, "m"));
      assert.match(ended.stdout, new RegExp(`^default/${seen.full("good")} +1/1 +Running`, "m"));
      const bad = await runAgent(seen, ["--runonce", "--pod-manifest-path=-"], { stdin: "kind: [" });
      assert.equal(bad.code, 1);
      assert.match(bad.stdout, /standard input/);
      await sweep();
    });

    await t.step("manifests from a URL, with a header; a failing server changes nothing", async () => {
      let answer: { status: number; body: string } = { status: 200, body: "" };
      let asked = 0;
      let refused = 0;
      await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
        asked++;
        if (request.headers.get("x-key") === "secret") return new Response(answer.body, { status: answer.status });
        refused++;
        return new Response("no", { status: 403 });
      });
      const list = (...pods: object[]) => JSON.stringify({ apiVersion: "v1", kind: "PodList", items: pods });
      const one = pod("fetched", { containers: [box("main")] });
      answer = { status: 200, body: list(one) };
      const url = `http://user:hidden@127.0.0.1:${server.addr.port}/pods`;
      agent.start([`--manifest-url=${url}`, "--manifest-url-header=X-Key:secret", "--http-check-frequency=1s"]);
      await agent.healthy();
      await seen.ready("fetched");
      const { id, annotations } = await seen.running("fetched");
      const [sandbox] = await seen.sandboxes("fetched");
      assert.equal(sandbox?.annotations["kubernetes.io/config.source"], "http");
      assert.ok(annotations["io.kubernetes.container.hash"]);
      /** The server was asked twice more: the answer in between has been taken. */
      const taken = async () => {
        const before = asked;
        await waitFor("the next two polls", () => asked >= before + 2, { within: patience });
      };
      for (
        const bad of [{ status: 500, body: "broken" }, { status: 200, body: "kind: [" }, {
          status: 200,
          body: "x".repeat(11 << 20),
        }]
      ) {
        answer = bad;
        await taken();
        assert.equal((await seen.running("fetched")).id, id);
      }
      answer = { status: 200, body: list() };
      await seen.gone("fetched", sandbox?.metadata?.uid ?? "");
      assert.equal(refused, 0);
      const log = await Deno.readTextFile(agent.paths.log);
      assert.doesNotMatch(log, /hidden|secret/, "the log does not tell the URL's password or the header");
      await agent.kill();
      await seen.nothingLeft();
    });

    await t.step(
      "a manifest directory that is none: said in the log, nothing crashes, it is found when it comes",
      async () => {
        await Deno.rename(agent.paths.manifests, `${agent.paths.root}/aside`);
        await Deno.symlink("manifests", agent.paths.manifests); // a link to itself
        const since = (await seen.records()).length;
        agent.start();
        await agent.healthy();
        await seen.logged("what is wrong with the directory", (one) => {
          return one.path === agent.paths.manifests && one.problem !== undefined;
        }, since);
        await Deno.remove(agent.paths.manifests);
        await Deno.rename(`${agent.paths.root}/aside`, agent.paths.manifests);
        await agent.putManifest("good.yaml", pod("good", { containers: [box("main")] }));
        await seen.ready("good");
        await sweep();
      },
    );
  });
});

Deno.test("process: a container runtime that is none is waited for; SIGTERM still ends the agent well", async () => {
  await withObserver({
    name: "ps-waits",
    config: { containerRuntimeEndpoint: "unix:///run/denolet-ps-nowhere/none.sock", staticPodPth: "/x" },
  }, async (seen) => {
    const { agent } = seen.node;
    await seen.logged("waiting", (one) => one.msg === "waiting for the container runtime");
    // as with the reference: told, not refused
    await seen.logged("the unknown field", (one) => /staticPodPth.*staticPodPath/.test(String(one.msg)));
    const ended = agent.exited();
    Deno.kill(agent.pid, "SIGTERM");
    assert.equal(await ended, 0);
  });
});
