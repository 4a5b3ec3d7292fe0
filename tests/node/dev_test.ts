import assert from "@assert";
import { parse } from "yaml";
import { attempt } from "../../scripts/lib/command.ts";
import { exists, namesIn, remove, repository } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { cgroupRoots } from "../../scripts/node/cgroups.ts";
import { layoutOf } from "../../scripts/node/containerd.ts";
import { processes } from "../../scripts/node/processes.ts";

const name = "t-dev";
const examples = `${repository}/examples/pods`;

function dev(...args: string[]): string[] {
  return [Deno.execPath(), "run", "--allow-all", "--quiet", `${repository}/scripts/dev.ts`, "--name", name, ...args];
}

/** What a dev node of our name has on the machine. */
async function remains(): Promise<string[]> {
  const { bridge } = layoutOf({ name });
  const paths = [`/run/denolet-${name}`, `/run/denolet-agent.${name}`, `/var/lib/denolet-${name}`];
  paths.push(`/sys/class/net/${bridge}`, ...(await cgroupRoots()).map((root) => `${root}/denolet-${name}`));
  const left: string[] = [];
  for (const path of paths) if (await exists(path)) left.push(path);
  const mounts = (await Deno.readTextFile("/proc/self/mounts")).split("\n");
  left.push(...mounts.filter((line) => line.includes(`denolet-${name}`) || line.includes(`denolet-agent.${name}`)));
  left.push(
    ...(await processes()).map((one) => one.command.join(" ")).filter((line) => line.includes(`denolet-${name}/`)),
  );
  const nat = (await attempt(["iptables", "-t", "nat", "-S"])).stdout.split("\n");
  return [...left, ...nat.filter((rule) => rule.includes(`denolet-${name}\\"`))];
}

async function withManifests(
  manifests: Record<string, object>,
  test: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "denolet-dev-test-" });
  try {
    for (const [file, manifest] of Object.entries(manifests)) {
      await Deno.writeTextFile(`${directory}/${file}`, JSON.stringify(manifest));
    }
    await test(directory);
  } finally {
    await remove(directory);
  }
}

function pod(podName: string, command: string, more: object = {}): object {
  const container = { name: "c", image: "localhost/busybox:1", command: ["sh", "-c", command], ...more };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: podName, namespace: "default" },
    spec: { restartPolicy: "Never", terminationGracePeriodSeconds: 1, containers: [container] },
  };
}

for (const version of ["debian", "v2"]) {
  Deno.test(`dev --once on containerd ${version}: every example becomes ready, exit code 0, nothing left`, async () => {
    const { code, stdout, stderr } = await attempt(dev("--once", "--containerd", version));
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    for (const file of await namesIn(examples)) {
      const { metadata } = parse(await Deno.readTextFile(`${examples}/${file}`));
      assert.match(stdout, new RegExp(`default/${metadata.name}-${name} `), file);
    }
    assert.deepEqual(await remains(), []);
  });
}

Deno.test("dev --once: a pod that fails gives exit code 1 and is named, nothing left", async () => {
  // without the probe it would count as ready for the moment that it runs
  const bad = pod("bad", "exit 7", { readinessProbe: { exec: { command: ["false"] } } });
  await withManifests({ "good.json": pod("good", "true"), "bad.json": bad }, async (directory) => {
    const { code, stdout, stderr } = await attempt(dev("--once", "--manifests", directory));
    assert.equal(code, 1, `${stdout}\n${stderr}`);
    assert.match(`${stdout}${stderr}`, new RegExp(`bad-${name}.*(7|Failed|Error)`));
    assert.deepEqual(await remains(), []);
  });
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`dev: ${signal} ends the pods and leaves nothing`, async () => {
    await withManifests({ "long.json": pod("long", "sleep 1000") }, async (directory) => {
      const [program = "", ...args] = dev("--manifests", directory);
      const child = new Deno.Command(program, { args, stdin: "null", stdout: "piped", stderr: "piped" }).spawn();
      let said = "";
      const reading = Promise.all([child.stdout, child.stderr].map(async (stream) => {
        for await (const text of stream.pipeThrough(new TextDecoderStream())) said += text;
      }));
      try {
        await waitFor("the pod to run", () => /long-t-dev +1\/1 +Running/.test(said), { within: 60_000 });
      } catch (thrown) {
        throw new Error(said, { cause: thrown });
      } finally {
        child.kill(signal);
        await Promise.all([child.status, reading]);
      }
      assert.equal((await child.status).code, 0, said);
      assert.match(said, /nothing left/);
      assert.deepEqual(await remains(), []);
    });
  });
}
