import assert from "@assert";
import { isAborted, KubeletError } from "../../mod/base/errors.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { errno, FakeHost } from "../../mod/base/fake_host.ts";
import { Journal } from "../../mod/base/journal.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";
import { createVolumeManager } from "./manager.ts";
import type { VolumeOperation } from "./types.ts";
import type { VolumePlugin } from "./plugin.ts";
import { standardPlugins } from "./standard.ts";

const root = "/var/lib/kubelet";
const volumes = `${root}/pods/u1/volumes`;

function podWith(list: Volume[], more: Partial<BoundPod["spec"]> = {}): BoundPod {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u1", labels: { b: "2", a: 'x"y' } },
    spec: {
      containers: [{ name: "c", volumeMounts: list.map((v) => ({ name: v.name, mountPath: `/${v.name}` })) }],
      volumes: list,
      ...more,
    },
  };
}

function scene(plugins: VolumePlugin[] = []) {
  const clock = new FakeClock();
  const host = new FakeHost({ clock });
  host.putDir(root, 0o750);
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const memory = { allocatableMemory: () => 1n << 30n };
  const allocatable = () => ({ cpu: "4", memory: "8Gi" });
  const journal = new Journal({ clock });
  const operations: VolumeOperation[] = [];
  const found: string[] = [];
  const make = () =>
    createVolumeManager({
      host,
      clock,
      log,
      events,
      journal,
      onOperation: (done) => operations.push(done),
      found: {
        foundVolume: (known) => found.push(known ? "known" : "not known"),
        forcedVolume: (failed) => found.push(failed ? "cannot be forced" : "forced"),
      },
      scope: new Scope("volumes"),
      rootDir: root,
      plugins: [
        ...plugins,
        ...standardPlugins({ memory, allocatable }),
      ],
    });
  return {
    clock,
    host,
    log,
    events,
    journal,
    operations,
    found,
    make,
    manager: make(),
    signal: new AbortController().signal,
  };
}

async function through<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let done = false;
  const mark = () => void (done = true);
  work.then(mark, mark);
  for (let i = 0; !done && i < 1000; i++) {
    await turn();
    if (!done) await clock.step();
  }
  return await work;
}

Deno.test("emptyDir: 0777 on disk, kept across restarts with what the containers made of it", async () => {
  const s = scene();
  const pod = podWith([{ name: "data", emptyDir: { sizeLimit: "1Gi" } }]);
  const mounted = await s.manager.mountPod(pod, s.signal);
  const dir = `${volumes}/kubernetes.io~empty-dir/data`;
  assert.deepEqual(mounted.get("data"), { name: "data", hostPath: dir, readOnly: false, selinuxRelabel: true });
  assert.equal((await s.host.stat(dir))?.mode, 0o777);
  assert.equal((await s.host.stat(volumes))?.mode, 0o750);
  assert.ok(s.host.exists(`${root}/pods/u1/plugins/kubernetes.io~empty-dir/data/ready`));
  await s.host.chmod(dir, 0o700);
  await s.make().mountPod(pod, s.signal);
  assert.equal((await s.host.stat(dir))?.mode, 0o700);
});

Deno.test("emptyDir Memory: tmpfs of the smallest limit, once", async () => {
  const s = scene();
  const cases: [string | undefined, string | undefined, string][] = [
    ["64Mi", undefined, `size=${64 << 20}`],
    [undefined, undefined, `size=${2 ** 30}`],
    ["64Mi", "32Mi", `size=${32 << 20}`],
  ];
  for (const [i, [sizeLimit, limit, expected]] of cases.entries()) {
    const pod = podWith([{ name: "m", emptyDir: { medium: "Memory", ...(sizeLimit ? { sizeLimit } : {}) } }]);
    pod.metadata.uid = `m${i}`;
    const c = pod.spec.containers[0];
    if (c && limit) c.resources = { limits: { memory: limit } };
    await s.manager.mountPod(pod, s.signal);
    await s.make().mountPod(pod, s.signal);
    const mounts = (await s.host.mounts()).filter((m) => m.target.includes(`/m${i}/`));
    assert.equal(mounts.length, 1);
    assert.equal(mounts[0]?.type, "tmpfs");
    assert.ok(mounts[0]?.options.includes(expected), `${expected} in ${mounts[0]?.options}`);
    assert.equal((await s.host.stat(mounts[0]?.target ?? ""))?.mode, 0o1777);
  }
});

Deno.test("emptyDir HugePages: hugetlbfs of the size that the pod asks for, once, and torn down", async () => {
  const s = scene();
  const pod = podWith([{ name: "h", emptyDir: { medium: "HugePages" } }], { securityContext: { fsGroup: 3000 } });
  const [c] = pod.spec.containers;
  if (c) c.resources = { limits: { "hugepages-2Mi": "4Mi" } };
  const asked: unknown[] = [];
  const mount = s.host.mount.bind(s.host);
  s.host.mount = (options) => {
    asked.push(options);
    return mount(options);
  };
  await s.manager.mountPod(pod, s.signal);
  await s.make().mountPod(pod, s.signal);
  const dir = `${volumes}/kubernetes.io~empty-dir/h`;
  assert.deepEqual(asked, [{ source: "nodev", target: dir, type: "hugetlbfs", options: ["pagesize=2Mi"] }]);
  const info = await s.host.stat(dir);
  assert.deepEqual([info?.mode, info?.gid], [0o2777, 3000]);
  await s.manager.unmountPod("u1", s.signal);
  assert.equal((await s.host.mounts()).some((m) => m.target === dir), false);
});

Deno.test("emptyDir fsGroup: setgid and the group", async () => {
  const s = scene();
  const pod = podWith([{ name: "d", emptyDir: {} }], { securityContext: { fsGroup: 3000 } });
  const path = (await s.manager.mountPod(pod, s.signal)).get("d")?.hostPath ?? "";
  const info = await s.host.stat(path);
  assert.deepEqual([info?.gid, info?.mode], [3000, 0o2777]);
});

Deno.test("hostPath types: table of the contract", async () => {
  const ok: [string | undefined, string][] = [
    [undefined, "/none"],
    ["", "/none"],
    ["DirectoryOrCreate", "/new/deep"],
    ["DirectoryOrCreate", "/dir"],
    ["Directory", "/dir"],
    ["Directory", "/link-to-dir"],
    ["FileOrCreate", "/dir/new-file"],
    ["FileOrCreate", "/file"],
    ["File", "/file"],
    ["Socket", "/sock"],
    ["CharDevice", "/char"],
    ["BlockDevice", "/block"],
  ];
  const bad: [string, string, string][] = [
    ["DirectoryOrCreate", "/file", "hostPath type check failed: /file is not a directory"],
    ["Directory", "/none", "hostPath type check failed: /none is not a directory"],
    ["FileOrCreate", "/dir", "hostPath type check failed: /dir is not a file"],
    ["File", "/none", "hostPath type check failed: /none is not a file"],
    ["Socket", "/file", "hostPath type check failed: /file is not a socket file"],
    ["CharDevice", "/block", "hostPath type check failed: /block is not a character device"],
    ["BlockDevice", "/char", "hostPath type check failed: /char is not a block device"],
    ["Nonsense", "/dir", "Nonsense is an invalid volume type"],
    ["Directory", "/dir/../dir", "invalid HostPath `/dir/../dir`: must not contain '..'"],
    ["", "relative", "must be an absolute path"],
  ];
  const prepare = () => {
    const s = scene();
    s.host.put("/file", "keep");
    s.host.putDir("/dir");
    for (const [path, kind] of [["/sock", "socket"], ["/char", "charDevice"], ["/block", "blockDevice"]] as const) {
      s.host.putNode(path, kind);
    }
    s.host.putNode("/link-to-dir", "symlink", "/dir");
    return s;
  };
  for (const [type, path] of ok) {
    const s = prepare();
    const pod = podWith([{ name: "h", hostPath: { path, ...(type === undefined ? {} : { type }) } }]);
    const mounted = await s.manager.mountPod(pod, s.signal);
    assert.deepEqual(mounted.get("h"), { name: "h", hostPath: path, readOnly: false, selinuxRelabel: false });
    if (path === "/new/deep") assert.equal((await s.host.stat("/new"))?.mode, 0o755);
    if (path === "/dir/new-file") assert.equal((await s.host.stat(path))?.mode, 0o644);
    if (path === "/none") assert.equal(s.host.exists(path), false);
    await s.manager.unmountPod("u1", s.signal);
    assert.equal(s.host.text("/file"), "keep");
    assert.ok(s.host.exists("/dir"));
  }
  for (const [type, path, message] of bad) {
    const s = prepare();
    const pod = podWith([{ name: "h", hostPath: { path, type } }]);
    await assert.rejects(through(s.clock, s.manager.mountPod(pod, s.signal)), (e: unknown) => {
      if (!(e instanceof KubeletError)) return false;
      assert.equal(e.code, "Volume");
      assert.ok(
        e.message.startsWith("unmounted volumes=[h], unattached volumes=[], failed to process volumes=[]: h: "),
      );
      assert.ok(e.message.includes(message), e.message);
      return true;
    });
    assert.ok(s.events.events[0]?.message.startsWith('MountVolume.SetUp failed for volume "h" : '));
  }
});

Deno.test("downwardAPI: formats, modes, live update, read-only tmpfs", async () => {
  const s = scene();
  const pod = podWith([{
    name: "info",
    downwardAPI: {
      defaultMode: 0o440,
      items: [
        { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
        { path: "sub/name", mode: 0o600, fieldRef: { fieldPath: "metadata.name" } },
        { path: "cpu", resourceFieldRef: { containerName: "c", resource: "limits.cpu", divisor: "1m" } },
      ],
    },
  }]);
  const volume = (await s.manager.mountPod(pod, s.signal)).get("info");
  const dir = volume?.hostPath ?? "";
  assert.equal(volume?.readOnly, true);
  assert.equal(s.host.text(`${dir}/labels`), 'a="x\\"y"\nb="2"');
  assert.equal(s.host.text(`${dir}/sub/name`), "p");
  assert.equal(s.host.text(`${dir}/cpu`), "4000");
  assert.deepEqual([(await s.host.stat(`${dir}/labels`))?.mode, (await s.host.stat(`${dir}/sub/name`))?.mode], [
    0o440,
    0o600,
  ]);
  assert.equal((await s.host.mounts()).filter((m) => m.target === dir).length, 1);
  pod.metadata.labels = { a: "new" };
  await s.manager.mountPod(pod, s.signal);
  assert.equal(s.host.text(`${dir}/labels`), 'a="new"');
});

Deno.test("projected: downwardAPI parts merge; other sources say what is missing", async () => {
  const s = scene();
  const item = { path: "n", fieldRef: { fieldPath: "metadata.name" } };
  const good = podWith([{ name: "all", projected: { sources: [{ downwardAPI: { items: [item] } }] } }]);
  const dir = (await s.manager.mountPod(good, s.signal)).get("all")?.hostPath;
  assert.equal(s.host.text(`${dir}/n`), "p");
  const bad = podWith([{ name: "t", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }]);
  await assert.rejects(
    s.manager.mountPod(bad, s.signal),
    /projected source serviceAccountToken is not available without an API/,
  );
});

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

Deno.test("image volumes go to the runtime", async () => {
  const s = scene();
  const mounted = await s.manager.mountPod(podWith([{ name: "i", image: { reference: "r/x:1" } }]), s.signal);
  assert.equal(mounted.get("i")?.image, "r/x:1");
  assert.equal(await s.manager.hasVolumes("u1"), true);
  await s.manager.unmountPod("u1", s.signal);
  assert.equal(await s.manager.hasVolumes("u1"), false);
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

/** A volume kind whose set-up hangs until `release`. */
function hangingPlugin() {
  const gate = Promise.withResolvers<void>();
  const calls: string[] = [];
  const plugin: VolumePlugin = {
    name: "test/hang",
    live: false,
    canSupport: (volume) => volume.nfs !== undefined,
    async setUp({ podUid, dir, volume, host }) {
      calls.push(`setUp ${podUid}`);
      await gate.promise;
      await host.mkdir(dir);
      await host.mount({ source: "nfs", target: dir, type: "nfs" });
      return { name: volume.name, hostPath: dir, readOnly: false, selinuxRelabel: false };
    },
  };
  return { plugin, calls, release: gate.resolve };
}

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

Deno.test("a mount that stays busy is an error that names it; nothing behind it is removed", async () => {
  const s = scene();
  await s.manager.mountPod(podWith([{ name: "m", emptyDir: { medium: "Memory" } }]), s.signal);
  const dir = `${volumes}/kubernetes.io~empty-dir/m`;
  s.host.put(`${dir}/f`, "x");
  {
    using _ = s.host.fault((op) => op === "unmount" ? errno("EBUSY") : undefined);
    await assert.rejects(s.manager.unmountPod("u1", s.signal), (e: unknown) => {
      if (!(e instanceof KubeletError)) return false;
      assert.equal(e.code, "Volume");
      return /UnmountVolume.TearDown failed for volume "m" : unmount .*in use/.test(e.message);
    });
  }
  assert.equal(s.host.text(`${dir}/f`), "x");
  assert.equal(await s.manager.hasVolumes("u1"), true);
  await s.manager.unmountPod("u1", s.signal);
  assert.equal(await s.manager.hasVolumes("u1"), false);
});

Deno.test("subPath: inside the volume only", async () => {
  const s = scene();
  const pod = podWith([{ name: "d", emptyDir: {} }]);
  const volume = (await s.manager.mountPod(pod, s.signal)).get("d");
  if (!volume) return assert.fail("no volume");
  const dir = volume.hostPath;
  s.host.put(`${dir}/a/f`, "inside");
  s.host.put("/etc/shadow", "secret");
  await s.host.symlink("a", `${dir}/in`);
  await s.host.symlink("/etc", `${dir}/out`);
  await s.host.symlink("../../../../../../../../etc", `${dir}/up`);
  await s.host.symlink("nowhere", `${dir}/dangling`);
  const prepare = (subPath: string, index: number) =>
    s.manager.prepareSubPath({ pod, container: "c", index, volume, subPath, signal: s.signal });
  const place = `${root}/pods/u1/volume-subpaths/d/c`;
  assert.equal(await prepare("a", 0), `${place}/0`);
  assert.equal(s.host.text(`${place}/0/f`), "inside");
  await prepare("in/f", 1);
  assert.equal(s.host.text(`${place}/1`), "inside");
  await s.host.chmod(dir, 0o3777);
  await prepare("new/deep", 2);
  assert.equal((await s.host.stat(`${dir}/new/deep`))?.mode, 0o3777);
  // Again, as after a restart of the container: the same mount.
  await prepare("a", 0);
  assert.equal((await s.host.mounts()).filter((m) => m.target.startsWith(place)).length, 3);
  const bad: [string, RegExp][] = [
    ["out", /out is a symbolic link that leads outside the volume/],
    ["out/shadow", /out is a symbolic link that leads outside/],
    ["up", /leads outside/],
    ["dangling", /leads nowhere/],
    ["dangling/x", /leads nowhere/],
    ["../x", /relative path without/],
    ["/etc", /relative path without/],
  ];
  for (const [subPath, expected] of bad) {
    await assert.rejects(prepare(subPath, 9), { code: "Volume", message: expected }, subPath);
  }
  assert.equal((await s.host.mounts()).some((m) => m.target === `${place}/9`), false);
  // A link that is slipped in between the look and the mount is refused by the mount.
  {
    using _ = s.host.fault((op) => {
      if (op === "mountBelow") s.host.putNode(`${dir}/later`, "symlink", "/etc");
      return undefined;
    });
    await assert.rejects(prepare("later", 9), { code: "Volume", message: /mountBelow .*later.*symbolic link/ });
  }
  await assert.rejects(
    s.manager.prepareSubPath({ pod, container: "..", index: 0, volume, subPath: "a", signal: s.signal }),
    { code: "Volume" },
  );
  await s.manager.unmountPod("u1", s.signal);
  assert.equal(s.host.text("/etc/shadow"), "secret");
  assert.deepEqual(s.host.tree(`${root}/pods/u1`), []);
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
