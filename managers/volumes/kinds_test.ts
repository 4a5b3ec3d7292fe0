import assert from "@assert";
import { KubeletError } from "../../mod/base/errors.ts";
import { errno } from "../../mod/base/fake_host.ts";
import { podWith, root, scene, through, volumes } from "./manager_testing.ts";

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

Deno.test("image volumes go to the runtime", async () => {
  const s = scene();
  const mounted = await s.manager.mountPod(podWith([{ name: "i", image: { reference: "r/x:1" } }]), s.signal);
  assert.equal(mounted.get("i")?.image, "r/x:1");
  assert.equal(await s.manager.hasVolumes("u1"), true);
  await s.manager.unmountPod("u1", s.signal);
  assert.equal(await s.manager.hasVolumes("u1"), false);
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
