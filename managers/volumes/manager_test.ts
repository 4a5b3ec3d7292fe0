import assert from "@assert";
import { isAborted, KubeletError } from "../../mod/base/errors.ts";
import { turn } from "../../mod/base/fake_clock.ts";
import { errno } from "../../mod/base/fake_host.ts";
import type { Volume } from "../../mod/kube/types.ts";
import { hangingPlugin, podWith, root, scene, through, volumes } from "./manager_testing.ts";

Deno.test("volumes that can't be: named at once, with the reason; unused ones are left alone", async () => {
  const s = scene();
  const cases: [Volume, string][] = [
    [{ name: "x", secret: { secretName: "s" } }, "x: volume kind secret is not available without an API server"],
    [{ name: "x", persistentVolumeClaim: { claimName: "c" } }, "kind persistentVolumeClaim is not available without"],
    [{ name: "x", nfs: { server: "s", path: "/" } }, "volume kind nfs is not supported by this agent"],
  ];
  for (const [volume, reason] of cases) {
    const pod = podWith([volume, { name: "ok", emptyDir: {} }]);
    await assert.rejects(s.manager.mountPod(pod, s.signal), (e: unknown) => {
      if (!(e instanceof KubeletError)) return false;
      assert.ok(e.message.startsWith("unmounted volumes=[x], unattached volumes=[], failed to process volumes=[x]: "));
      return e.message.includes(reason);
    });
  }
  const huge = podWith([{ name: "h", emptyDir: { medium: "HugePages-2Mi" } }]);
  await assert.rejects(s.manager.mountPod(huge, s.signal), /HugePages-2Mi: hugePages storage requested, but/);
  const unused = podWith([{ name: "x", secret: { secretName: "s" } }]);
  unused.spec.containers = [{ name: "c" }];
  assert.equal((await s.manager.mountPod(unused, s.signal)).size, 0);
  const odd = podWith([{ name: "z", emptyDir: { sizeLimit: "lots" } }]);
  await assert.rejects(s.manager.mountPod(odd, s.signal), /volume z emptyDir.sizeLimit/);
});

Deno.test("failing set-ups back off 500 ms ×2, one failure does not touch the others, and heal", async () => {
  const s = scene();
  const tries: number[] = [];
  let full = true;
  s.host.fault((op, path) => {
    if (op !== "mkdir" || !path.endsWith("/bad")) return undefined;
    tries.push(s.clock.now());
    return full ? errno("ENOSPC") : undefined;
  });
  const start = s.clock.now();
  const pod = podWith([{ name: "bad", emptyDir: {} }, { name: "good", emptyDir: {} }]);
  const work = s.manager.mountPod(pod, s.signal);
  await s.clock.advance(8_000);
  assert.deepEqual(tries.map((t) => t - start), [0, 500, 1500, 3500, 7500]);
  assert.match(
    s.events.events[0]?.message ?? "",
    /^MountVolume.SetUp failed for volume "bad" : .*no space or no inodes/,
  );
  assert.equal(s.events.events[0]?.reason, "FailedMount");
  const [noted] = s.journal.records("u1");
  assert.deepEqual([noted?.action, noted?.target, noted?.reason, noted?.message], [
    "MountVolume",
    "bad",
    "FailedMount",
    'set up volume "bad"',
  ]);
  assert.match(noted?.error ?? "", /no space or no inodes/);
  full = false;
  const mounted = await through(s.clock, work);
  assert.deepEqual([...mounted.keys()], ["bad", "good"]);
  const records = s.journal.records("u1");
  assert.deepEqual(records.map(({ error }) => error === undefined), [false, false, false, false, false, true]);
  const emptyDir = "kubernetes.io/empty-dir";
  assert.deepEqual(s.manager.mounted(), new Map([[emptyDir, 2]]));
  await s.manager.unmountPod("u1", s.signal);
  const done = s.operations.map(({ operation, failed }) => `${operation} ${failed}`);
  assert.deepEqual([...new Set(done)].sort(), ["volume_mount false", "volume_mount true", "volume_unmount false"]);
  assert.ok(s.operations.every(({ plugin }) => plugin === emptyDir));
  assert.deepEqual(s.manager.mounted(), new Map());
});

Deno.test("a wait ends after 2 min 3 s with the contract's text; read-only is said plainly", async () => {
  const s = scene();
  using _ = s.host.readOnly(root);
  const start = s.clock.now();
  const pod = podWith([{ name: "b", emptyDir: {} }, { name: "a", emptyDir: {} }]);
  await assert.rejects(through(s.clock, s.manager.mountPod(pod, s.signal)), (e: unknown) => {
    if (!(e instanceof KubeletError)) return false;
    assert.equal(e.code, "Volume");
    assert.match(
      e.message,
      /^unmounted volumes=\[a b\], unattached volumes=\[\], failed to process volumes=\[\]: b: .*read-only: mount it/,
    );
    return true;
  });
  const waited = s.clock.now() - start;
  assert.ok(waited >= 123_000 && waited < 123_500, String(waited));
});

Deno.test("a hung mount hurts only its pod; the caller can leave, and the tear-down comes after it", async () => {
  const hang = hangingPlugin();
  const s = scene([hang.plugin]);
  const stuck = podWith([{ name: "n", nfs: { server: "s", path: "/" } }]);
  const other = podWith([{ name: "d", emptyDir: {} }]);
  other.metadata.uid = "u2";
  const leave = new AbortController();
  const first = s.manager.mountPod(stuck, leave.signal);
  await turn();
  assert.equal((await s.manager.mountPod(other, s.signal)).size, 1);
  leave.abort();
  await assert.rejects(first, isAborted);
  assert.equal(await s.manager.hasVolumes("u1"), true);
  let torn = false;
  const tearDown = s.manager.unmountPod("u1", s.signal).then(() => torn = true);
  await turn();
  assert.equal(torn, false, "it waits for the operation that hangs");
  hang.release();
  await tearDown;
  assert.deepEqual(hang.calls, ["setUp u1"]);
  assert.equal((await s.host.mounts()).some((m) => m.type === "nfs"), false);
  assert.equal(s.host.exists(volumes), false);
});

Deno.test("a set-up that hangs past the wait is reported as that, and not begun a second time beside it", async () => {
  const hang = hangingPlugin();
  const s = scene([hang.plugin]);
  const pod = podWith([{ name: "n", nfs: { server: "s", path: "/" } }]);
  await assert.rejects(through(s.clock, s.manager.mountPod(pod, s.signal)), /n: its set-up does not come to an end/);
  await assert.rejects(through(s.clock, s.manager.mountPod(pod, s.signal)), /does not come to an end/);
  assert.deepEqual(hang.calls, ["setUp u1"]);
  hang.release();
  await turn();
  assert.equal((await through(s.clock, s.manager.mountPod(pod, s.signal))).size, 1);
});

Deno.test("unmountPod takes away what is only on disk, even of unknown plugins, and keeps the pod directory", async () => {
  const s = scene();
  s.host.put(`${root}/pods/u1/etc-hosts`, "hosts");
  s.host.put(`${volumes}/kubernetes.io~empty-dir/d/file`, "x");
  s.host.putDir(`${volumes}/kubernetes.io~csi/pv1/mount`);
  s.host.put("/data/precious", "keep");
  await s.host.mount({ source: "/data", target: `${volumes}/kubernetes.io~csi/pv1/mount`, options: ["bind"] });
  // A container with Bidirectional propagation mounted inside its volume.
  s.host.putDir(`${volumes}/kubernetes.io~empty-dir/d/inner`);
  await s.host.mount({ source: "/data", target: `${volumes}/kubernetes.io~empty-dir/d/inner`, options: ["bind"] });
  await s.host.mount({ source: "tmpfs", target: `${volumes}/kubernetes.io~empty-dir/d/inner`, type: "tmpfs" });
  assert.deepEqual(await s.manager.podsOnDisk(), ["u1"]);
  assert.equal(await s.manager.hasVolumes("u1"), true);
  await s.manager.findLeft();
  assert.deepEqual(s.found.splice(0).sort(), ["known", "not known"]);
  await s.manager.unmountPod("u1", s.signal);
  assert.deepEqual(s.found, ["forced"]);
  assert.deepEqual(s.host.tree(`${root}/pods`), ["u1/", "u1/etc-hosts"]);
  assert.equal(s.host.text("/data/precious"), "keep");
  assert.equal((await s.host.mounts()).length, 1);
  assert.deepEqual(await s.manager.podsOnDisk(), []);
  assert.equal(await s.manager.hasVolumes("u1"), false);
  await s.manager.unmountPod("u1", s.signal);
});

Deno.test("unmountPod follows no link that a container or anyone else made", async () => {
  const s = scene();
  s.host.put("/etc/passwd", "keep");
  const dir = (await s.manager.mountPod(podWith([{ name: "d", emptyDir: {} }]), s.signal)).get("d")?.hostPath ?? "";
  await s.host.symlink("/etc", `${dir}/etc`);
  await s.host.symlink("/etc/passwd", `${dir}/passwd`);
  s.host.putNode(`${volumes}/kubernetes.io~empty-dir/evil`, "symlink", "/etc");
  s.host.putNode(`${volumes}/evil`, "symlink", "/etc");
  await s.manager.unmountPod("u1", s.signal);
  assert.equal(s.host.text("/etc/passwd"), "keep");
  assert.equal(s.host.exists(volumes), false);
  for (const bad of ["", ".", "..", "../..", "a/b", "u1\0"]) {
    await assert.rejects(s.manager.unmountPod(bad, s.signal), { code: "BadPod" }, JSON.stringify(bad));
  }
});

Deno.test("hostile names and paths are refused at once and make nothing", async () => {
  const item = (path: string) => ({ path, fieldRef: { fieldPath: "metadata.name" } });
  const cases: [Volume, RegExp][] = [
    [{ name: "..", emptyDir: {} }, /volume "\.\." can't be part of a path/],
    [{ name: "a/b", emptyDir: {} }, /can't be part of a path/],
    [{ name: "x".repeat(300), emptyDir: { medium: "Memory" } }, /can't be part of a path/],
    [{ name: "d", downwardAPI: { items: [item("../../etc/passwd")] } }, /must not contain '\.\.'/],
    [{ name: "d", downwardAPI: { items: [item("/etc/passwd")] } }, /must be relative path/],
    [{ name: "d", downwardAPI: { items: [item("..data")] } }, /must not start with '\.\.'/],
    [{ name: "d", downwardAPI: { items: [item("a"), item("a/b")] } }, /is a file and the directory/],
    [{ name: "d", downwardAPI: { items: [{ path: "x" }] } }, /needs a fieldRef or a resourceFieldRef/],
    [{ name: "d", downwardAPI: { items: [{ path: "x", fieldRef: { fieldPath: "__proto__" } }] } }, /fieldPath/],
    [{ name: "h", hostPath: { path: "/a\0b" } }, /must be an absolute path/],
  ];
  for (const [volume, expected] of cases) {
    const s = scene();
    s.host.put("/etc/passwd", "keep");
    await assert.rejects(s.manager.mountPod(podWith([volume]), s.signal), expected, volume.name);
    assert.equal(s.host.text("/etc/passwd"), "keep");
    await s.manager.unmountPod("u1", s.signal);
  }
});
