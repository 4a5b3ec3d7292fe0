import assert from "@assert";
import { parse } from "yaml";
import { namesIn, repository } from "./lib/files.ts";

interface Container {
  name: string;
  image: string;
  imagePullPolicy?: string;
}
interface Manifest {
  kind: string;
  metadata: { name: string; namespace: string };
  spec: {
    containers: Container[];
    initContainers?: Container[];
    volumes?: { hostPath?: { path: string; type?: string } }[];
  };
}

const directory = `${repository}/examples/pods`;

async function manifests(): Promise<Manifest[]> {
  const files = await namesIn(directory);
  return await Promise.all(
    files.map(async (file) => parse(await Deno.readTextFile(`${directory}/${file}`)) as Manifest),
  );
}

Deno.test("examples: each is one pod with a name of its own, run from images that are built here", async () => {
  const pods = await manifests();
  assert.ok(pods.length >= 12);
  assert.equal(new Set(pods.map((pod) => pod.metadata.name)).size, pods.length);
  const built = new Set(["localhost/busybox:1", "localhost/web:1"]);
  for (const pod of pods) {
    assert.equal(pod.kind, "Pod");
    for (const one of [...pod.spec.containers, ...pod.spec.initContainers ?? []]) {
      const where = `${pod.metadata.name}/${one.name}`;
      assert.ok(built.has(one.image), `${where}: ${one.image}`);
      assert.ok(["IfNotPresent", "Never"].includes(one.imagePullPolicy ?? ""), `${where}: pull policy`);
    }
  }
});

Deno.test("examples: what they make on the node lies where `deno task dev` removes it", async () => {
  const volumes = (await manifests()).flatMap((pod) => pod.spec.volumes ?? []);
  const made = volumes.flatMap(({ hostPath }) => hostPath?.type?.endsWith("OrCreate") ? [hostPath.path] : []);
  assert.deepEqual(made.sort(), ["/tmp/denolet-example", "/tmp/denolet-example-file"]);
});
