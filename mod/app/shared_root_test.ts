import assert from "@assert";
import { createDenoHost } from "../base/deno_host.ts";
import { errno, FakeHost } from "../base/fake_host.ts";
import { RecordingLogger } from "../base/log.ts";
import type { Host } from "../base/host.ts";
import { shareRoot } from "./shared_root.ts";

const root = "/var/lib/kubelet";

function machine(): FakeHost {
  const host = new FakeHost();
  host.putDir(root);
  return host;
}

async function mounts(host: Host, at = root): Promise<string[]> {
  return (await host.mounts()).filter((m) => m.target.startsWith(at)).map((m) => `${m.target} ${m.propagation}`);
}

Deno.test("root directory: mounted over itself and shared where it is private, once", async () => {
  const host = machine();
  const log = new RecordingLogger();
  await shareRoot(host, root, log);
  await shareRoot(host, root, log);
  assert.deepEqual(await mounts(host), [`${root} shared:1`]);
  assert.equal(log.lines.length, 1);
});

Deno.test("root directory: left alone on a shared mount", async () => {
  const host = machine();
  await host.mount({ source: "/dev/x", target: "/var/lib", type: "ext4" });
  await host.mount({ source: "none", target: "/var/lib", options: ["shared"] });
  host.putDir(root);
  const before = await host.mounts();
  const log = new RecordingLogger();
  await shareRoot(host, root, log);
  assert.deepEqual(await host.mounts(), before);
  assert.deepEqual(log.lines, []);
});

Deno.test("root directory: another's private mount at it keeps its propagation, ours comes over it", async () => {
  const host = machine();
  await host.mount({ source: "/dev/x", target: root, type: "ext4" });
  await shareRoot(host, root, new RecordingLogger());
  assert.deepEqual(await mounts(host), [`${root} `, `${root} shared:1`]);
});

Deno.test("root directory: with mounts in it, or when the kernel refuses, it stays as it is, and that is said", async () => {
  const busy = machine();
  busy.putDir(`${root}/pods/u/v`);
  await busy.mount({ source: "tmpfs", target: `${root}/pods/u/v`, type: "tmpfs" });
  const log = new RecordingLogger();
  await shareRoot(busy, root, log);
  assert.deepEqual(await mounts(busy), [`${root}/pods/u/v `]);
  assert.match(JSON.stringify(log.lines), /while something is mounted in it/);

  const refused = machine();
  const mount = refused.mount.bind(refused);
  refused.mount = (options) => options.source === "none" ? Promise.reject(errno("EPERM")) : mount(options);
  await shareRoot(refused, root, log);
  assert.deepEqual(await mounts(refused), []);
  assert.match(JSON.stringify(log.lines.at(-1)), /cannot be made a shared mount/);
});

Deno.test({
  name: "root directory: a real one is mounted and shared",
  ignore: Deno.uid() !== 0,
  fn: async () => {
    const host = createDenoHost();
    const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "denolet-shared-" }));
    try {
      await host.mount({ source: "tmpfs", target: dir, type: "tmpfs", options: ["size=1m"] });
      await host.mount({ source: "none", target: dir, options: ["private"] });
      await Deno.mkdir(`${dir}/root`);
      const log = new RecordingLogger();
      await shareRoot(host, `${dir}/root`, log);
      await shareRoot(host, `${dir}/root`, log);
      const found = await mounts(host, dir);
      assert.equal(found.length, 2);
      assert.equal(found[0], `${dir} `);
      assert.match(found[1] ?? "", /root shared:\d+$/);
    } finally {
      await host.unmount(`${dir}/root`);
      await host.unmount(dir);
      await Deno.remove(dir);
    }
  },
});
