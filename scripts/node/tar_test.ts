import assert from "@assert";
import { createHash } from "node:crypto";
import { run } from "../lib/command.ts";
import { ociArchive } from "./oci.ts";
import { tar } from "./tar.ts";

const long = `${"d".repeat(90)}/${"e".repeat(60)}/${"f".repeat(99)}`;

Deno.test("tar: the system's tar reads back what was written", async () => {
  const directory = await Deno.makeTempDir({ prefix: "denolet-tar-" });
  try {
    const data = new Uint8Array(1000).fill(7);
    await Deno.writeFile(
      `${directory}/a.tar`,
      tar([
        { path: "bin", kind: "directory" },
        { path: "bin/tool", kind: "file", mode: 0o4755, data, uid: 1000, gid: 2000 },
        { path: "bin/link", kind: "symlink", target: "tool" },
        { path: "empty", kind: "file", data: "" },
        { path: "tmp", kind: "directory", mode: 0o1777 },
        { path: long, kind: "file", data: "far\n" },
      ]),
    );
    const list = await run(["tar", "--numeric-owner", "-tvf", `${directory}/a.tar`]);
    const lines = list.trim().split("\n").map((line) => line.split(/\s+/));
    assert.deepEqual(lines.map((words) => [words[0], words[1], words[2], words.slice(5).join(" ")]), [
      ["drwxr-xr-x", "0/0", "0", "bin/"],
      ["-rwsr-xr-x", "1000/2000", "1000", "bin/tool"],
      ["lrwxrwxrwx", "0/0", "0", "bin/link -> tool"],
      ["-rw-r--r--", "0/0", "0", "empty"],
      ["drwxrwxrwt", "0/0", "0", "tmp/"],
      ["-rw-r--r--", "0/0", "4", long],
    ]);
    assert.equal(await run(["tar", "-xOf", `${directory}/a.tar`, long]), "far\n");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("tar: a name that has no room is refused, not cut", () => {
  assert.throws(() => tar([{ path: "x".repeat(101), kind: "file", data: "" }]), RangeError);
  assert.throws(() => tar([{ path: "l", kind: "symlink", target: "y".repeat(101) }]), RangeError);
});

Deno.test("oci: every digest and size in the archive is true, and the same input gives the same bytes", async () => {
  const layer = tar([{ path: "pause", kind: "file", data: "x" }]);
  const image = { name: "localhost/x:1", layers: [layer, layer], config: { Cmd: ["/x"] }, architecture: "amd64" };
  const archive = ociArchive(image);
  assert.deepEqual(ociArchive(image), archive);
  const directory = await Deno.makeTempDir({ prefix: "denolet-oci-" });
  try {
    await Deno.writeFile(`${directory}/a.tar`, archive);
    await run(["tar", "-xf", `${directory}/a.tar`, "-C", directory]);
    const blob = async (one: { digest: string; size: number }) => {
      const data = await Deno.readFile(`${directory}/blobs/${one.digest.replace(":", "/")}`);
      assert.equal(one.digest, `sha256:${createHash("sha256").update(data).digest("hex")}`);
      assert.equal(one.size, data.length);
      return data;
    };
    const json = (data: Uint8Array) => JSON.parse(new TextDecoder().decode(data));
    const index = json(await Deno.readFile(`${directory}/index.json`));
    assert.equal(index.manifests[0].annotations["io.containerd.image.name"], "localhost/x:1");
    const manifest = json(await blob(index.manifests[0]));
    const config = json(await blob(manifest.config));
    assert.deepEqual(config.config.Cmd, ["/x"]);
    assert.deepEqual(config.rootfs.diff_ids, manifest.layers.map((one: { digest: string }) => one.digest));
    assert.equal(manifest.layers.length, 2);
    for (const one of manifest.layers) assert.deepEqual(await blob(one), layer);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
