import assert from "@assert";
import { RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { attempt } from "../../scripts/lib/command.ts";
import { exists } from "../../scripts/lib/files.ts";
import { BareCri } from "../../scripts/node/bare_cri.ts";
import { cgroupRoots, removeCgroup } from "../../scripts/node/cgroups.ts";
import { Containerd, startContainerd } from "../../scripts/node/containerd.ts";
import { ensureContainerd2 } from "../../scripts/node/containerd2.ts";
import { mountsBelow } from "../../scripts/node/mounts.ts";
import { readPods } from "../../scripts/node/pods.ts";
import { identity, processes } from "../../scripts/node/processes.ts";
import { versions, withContainerd } from "./harness.ts";

const method = RuntimeService.method;

/** Runs a pod of the web image below a control group. */
async function runWeb(containerd: Containerd, cgroup: string): Promise<void> {
  using cri = new BareCri(containerd.socket);
  const config = {
    metadata: { name: "web", namespace: "default", uid: "u1", attempt: 0 },
    labels: { "io.kubernetes.pod.uid": "u1" },
    logDirectory: `${containerd.layout.root}/pod-logs`,
    linux: { cgroupParent: cgroup },
  };
  const { podSandboxId } = await cri.call(method.runPodSandbox, { config });
  const { containerId } = await cri.call(method.createContainer, {
    podSandboxId,
    sandboxConfig: config,
    config: {
      metadata: { name: "server", attempt: 2 },
      labels: { "io.kubernetes.container.name": "server", "io.kubernetes.pod.uid": "u1" },
      image: { image: "localhost/web:1" },
      logPath: "server.log",
      linux: {},
    },
  });
  await cri.call(method.startContainer, { containerId });
}

/** What is left on the machine of a private containerd and its pods. */
async function remains(containerd: Containerd, cgroup: string): Promise<string[]> {
  const { root, run, bridge, name } = containerd.layout;
  const mountinfo = await Deno.readTextFile("/proc/self/mountinfo");
  const paths = [root, run, `/sys/class/net/${bridge}`];
  for (const at of await cgroupRoots()) paths.push(`${at}${cgroup}`);
  const left: string[] = [];
  for (const path of paths) if (await exists(path)) left.push(path);
  left.push(...mountsBelow(mountinfo, run), ...mountsBelow(mountinfo, root));
  left.push(
    ...(await processes()).filter((one) => one.command.join(" ").includes(run)).map((one) => one.command.join(" ")),
  );
  const nat = (await attempt(["iptables", "-t", "nat", "-S"])).stdout;
  left.push(...nat.split("\n").filter((rule) => rule.includes(`denolet-${name}\\"`)));
  return left;
}

for (const version of versions) {
  Deno.test(`private containerd ${version}: runs a pod, survives a crash of the daemon, leaves nothing`, async () => {
    const name = `t-life-${version}`;
    const kept = await withContainerd({ name, containerd: version }, async (containerd) => {
      await runWeb(containerd, `/${name}`);
      const before = await readPods(containerd.socket);
      assert.equal(before.length, 1);
      const [pod] = before;
      assert.equal(pod?.name, "web");
      assert.deepEqual(pod?.containers.map((one) => [one.name, one.state, one.restarts]), [["server", "running", 2]]);
      const answer = await fetch(`http://${pod?.ip}/healthz`);
      assert.equal(await answer.text(), "ok\n");
      await containerd.kill("SIGKILL");
      await containerd.start();
      assert.deepEqual(await readPods(containerd.socket), before);
      return containerd;
    });
    await removeCgroup(`/${name}`);
    assert.deepEqual(await remains(kept, `/${name}`), []);
    await kept.stop();
  });

  Deno.test(`private containerd ${version}: cleans up what a killed run left`, async () => {
    const name = `t-left-${version}`;
    const options = {
      name,
      version,
      masquerade: true,
      binDir: version === "v2" ? await ensureContainerd2() : "/usr/bin",
    };
    const killed = await startContainerd(options);
    let next: Containerd | undefined;
    try {
      await killed.importImages();
      await runWeb(killed, `/${name}`);
      await killed.kill("SIGKILL");
      assert.ok((await remains(killed, `/${name}`)).length > 5, "a killed run leaves much to clean up");
      next = await startContainerd(options);
      assert.deepEqual(await readPods(next.socket), []);
    } finally {
      await (next ?? killed).stop();
    }
    await removeCgroup(`/${name}`);
    assert.deepEqual(await remains(killed, `/${name}`), []);
  });
}

Deno.test("private containerd: one that a living process uses is not taken from it", async () => {
  const run = "/run/denolet-t-owned";
  const other = new Deno.Command("/bin/sleep", { args: ["60"] }).spawn();
  try {
    await Deno.mkdir(run);
    await Deno.writeTextFile(`${run}/.denolet-node`, "t-owned\n");
    await Deno.writeTextFile(`${run}/owner`, `${await identity(other.pid)}\n`);
    await assert.rejects(startContainerd({ name: "t-owned" }), new RegExp(`in use by process ${other.pid}`));
    assert.equal(await exists(`${run}/owner`), true);
    other.kill("SIGKILL");
    await other.status;
    await using containerd = await startContainerd({ name: "t-owned" });
    assert.ok(containerd.pid > 0);
  } finally {
    await Deno.remove(run, { recursive: true }).catch((thrown) => {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    });
  }
});

Deno.test("private containerd: a directory that is not its own is refused and untouched", async () => {
  const root = await Deno.makeTempDir({ prefix: "denolet-foreign-" });
  try {
    await Deno.writeTextFile(`${root}/precious`, "data");
    await assert.rejects(startContainerd({ name: "t-foreign", root }), /not empty and not ours/);
    assert.equal(await Deno.readTextFile(`${root}/precious`), "data");
    assert.equal(await exists("/run/denolet-t-foreign"), false);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
