import assert from "@assert";
import { turn } from "../../mod/base/fake_clock.ts";
import type { PodSpec, Volume } from "../../mod/kube/types.ts";
import { files, mode, podWith, scene, volumes } from "./api_testing.ts";

Deno.test("secret: in memory, read-only, default mode and modes of items, group of the pod", async () => {
  const s = scene();
  s.secret("s", { a: "1", b: "2" });
  const cases: [string, Partial<Volume>, Partial<PodSpec>, Record<string, string>][] = [
    ["all keys", { secret: { secretName: "s" } }, {}, { a: mode("1", "644"), b: mode("2", "644") }],
    [
      "items",
      {
        secret: {
          secretName: "s",
          items: [{ key: "a", path: "x" }, { key: "b", path: "y", mode: 0o400 }],
          defaultMode: 0o440,
        },
      },
      {},
      {
        x: mode("1", "440"),
        y: mode("2", "400"),
      },
    ],
    ["fsGroup", { secret: { secretName: "s", defaultMode: 0o400 } }, { securityContext: { fsGroup: 77 } }, {
      a: mode("1", "440", "0:77"),
      b: mode("2", "440", "0:77"),
    }],
    [
      "a missing key that is optional",
      { secret: { secretName: "s", optional: true, items: [{ key: "no", path: "x" }] } },
      {},
      {},
    ],
    ["a missing secret that is optional", { secret: { secretName: "none", optional: true } }, {}, {}],
  ];
  for (const [what, volume, spec, expected] of cases) {
    const pod = podWith([{ name: "v", ...volume }], spec);
    const mounted = await s.manager.mountPod(pod, s.signal);
    const dir = `${volumes}/kubernetes.io~secret/v`;
    assert.deepEqual(mounted.get("v"), { name: "v", hostPath: dir, readOnly: true, selinuxRelabel: true }, what);
    assert.deepEqual(await files(s.host, dir), expected, what);
    assert.equal((await s.host.mounts()).find((m) => m.target === dir)?.type, "tmpfs", what);
    await s.manager.unmountPod("u1", s.signal);
    assert.equal(s.host.exists(dir), false, what);
  }
});

Deno.test("configMap: on disk; text and bytes; directories in paths; group of the pod", async () => {
  const s = scene();
  s.api.configMaps.set("m", { data: { a: "text", both: "t" }, binaryData: { bin: btoa("\x00\xff"), both: btoa("b") } });
  const pod = podWith([
    { name: "all", configMap: { name: "m" } },
    { name: "some", configMap: { name: "m", items: [{ key: "both", path: "d/e" }, { key: "bin", path: "bin" }] } },
  ], { securityContext: { fsGroup: 5 } });
  await s.manager.mountPod(pod, s.signal);
  const dir = `${volumes}/kubernetes.io~configmap`;
  assert.deepEqual(await files(s.host, `${dir}/all`), {
    a: mode("text", "644", "0:5"),
    bin: mode(s.host.text(`${dir}/all/bin`) ?? "", "644", "0:5"),
    both: mode("b", "644", "0:5"),
  });
  assert.deepEqual([...await s.host.readBytes(`${dir}/all/bin`)], [0, 255]);
  assert.equal(s.host.text(`${dir}/some/d/e`), "t");
  assert.deepEqual((await s.host.mounts()).filter((m) => m.target.startsWith(dir)), []);
  assert.equal((await s.host.stat(`${dir}/all`))?.gid, 5);
});

Deno.test("what cannot be set up is told as FailedMount, in the contract's words, and tried again", async () => {
  const cases: [Partial<Volume>, string][] = [
    [{ secret: { secretName: "none" } }, 'secret "none" not found'],
    [{ configMap: { name: "none" } }, 'configmap "none" not found'],
    [{ secret: { secretName: "s", items: [{ key: "no", path: "x" }] } }, "references non-existent secret key: no"],
    [
      { configMap: { name: "m", items: [{ key: "no", path: "x" }] } },
      "configmap references non-existent config key: no",
    ],
    [
      {
        projected: {
          sources: [{ secret: { name: "none" } }, { configMap: { name: "none" } }, { secret: { name: "none" } }],
        },
      },
      '[secret "none" not found, configmap "none" not found]',
    ],
  ];
  for (const [volume, expected] of cases) {
    const s = scene();
    s.secret("s", { a: "1" });
    s.api.configMaps.set("m", { data: {} });
    const leave = new AbortController();
    const work = s.manager.mountPod(podWith([{ name: "v", ...volume }]), leave.signal);
    const rejected = assert.rejects(work, { code: "Aborted" });
    for (let i = 0; i < 20; i++) await turn();
    assert.deepEqual(s.failures(), [`FailedMount MountVolume.SetUp failed for volume "v" : ${expected}`]);
    await s.clock.advance(500);
    assert.equal(s.failures().length, 1, "again after half a second");
    leave.abort();
    await rejected;
  }
});

Deno.test("an object that comes at last is shown at once, whatever the back-off", async () => {
  const s = scene();
  const work = s.manager.mountPod(podWith([{ name: "v", secret: { secretName: "late" } }]), s.signal);
  await s.clock.advance(20_000);
  assert.ok(s.failures().length > 3);
  const before = s.clock.now();
  s.secret("late", { a: "1" });
  s.manager.retryNow("u1");
  await work;
  assert.equal(s.clock.now(), before);
});

Deno.test("contents follow the object; keys that have gone, go; nothing is written when nothing changed", async () => {
  const s = scene();
  s.secret("s", { a: "1", b: "2" });
  const pod = podWith([{ name: "v", secret: { secretName: "s" } }]);
  const dir = `${volumes}/kubernetes.io~secret/v`;
  await s.manager.mountPod(pod, s.signal);
  const before = await s.host.readLink(`${dir}/..data`);
  await s.manager.mountPod(pod, s.signal);
  assert.equal(await s.host.readLink(`${dir}/..data`), before);
  s.secret("s", { b: "3", c: "4" });
  await s.manager.mountPod(pod, s.signal);
  assert.deepEqual(await files(s.host, dir), { b: mode("3", "644"), c: mode("4", "644") });
});

Deno.test("contents that cannot be brought up to date stay, are told of, and are looked at again", async () => {
  const s = scene();
  s.secret("s", { a: "1" });
  const pod = podWith([{ name: "v", secret: { secretName: "s" } }, { name: "o", emptyDir: {} }]);
  const dir = `${volumes}/kubernetes.io~secret/v`;
  await s.manager.mountPod(pod, s.signal);
  assert.equal(s.manager.retryInMs("u1"), undefined);
  s.api.secrets.delete("s");
  const mounted = await s.manager.mountPod(pod, s.signal);
  assert.equal(mounted.size, 2, "the pod is not held up");
  assert.deepEqual(s.failures(), ['FailedMount MountVolume.SetUp failed for volume "v" : secret "s" not found']);
  assert.equal(s.manager.retryInMs("u1"), 500);
  await s.manager.mountPod(pod, s.signal);
  assert.deepEqual(s.failures(), [], "not before its time");
  await s.clock.advance(500);
  assert.equal(s.manager.retryInMs("u1"), 0);
  s.secret("s", { a: "2" });
  await s.manager.mountPod(pod, s.signal);
  assert.equal(s.manager.retryInMs("u1"), undefined);
  assert.deepEqual(await files(s.host, dir), { a: mode("2", "644") });
});

Deno.test("after a restart, while the API server is away, what is on disk serves; a refusal does not", async () => {
  const s = scene();
  s.secret("s", { a: "1" });
  s.api.configMaps.set("m", { data: { k: "v" } });
  const pod = podWith([
    { name: "v", secret: { secretName: "s" } },
    { name: "m", configMap: { name: "m" } },
    { name: "t", projected: { sources: [{ serviceAccountToken: { path: "token" } }, { configMap: { name: "m" } }] } },
  ]);
  await s.manager.mountPod(pod, s.signal);
  for (const away of ["unauthorized", "down"] as const) {
    s.api.mode = away;
    s.log.lines.length = 0;
    assert.equal((await s.make().mountPod(pod, s.signal)).size, 3, away);
    assert.deepEqual(s.failures(), [], away);
  }
  assert.deepEqual(await files(s.host, `${volumes}/kubernetes.io~secret/v`), { a: mode("1", "644") });
  assert.equal(s.log.lines.filter((l) => /keeps its contents/.test(l.message)).length, 3);

  s.api.mode = "forbidden";
  const leave = new AbortController();
  const refused = assert.rejects(s.make().mountPod(pod, leave.signal), { code: "Aborted" });
  for (let i = 0; i < 20; i++) await turn();
  assert.equal(s.failures().length, 3);
  leave.abort();
  await refused;

  s.api.mode = "down";
  await s.host.unmount(`${volumes}/kubernetes.io~secret/v`);
  const gone = new AbortController();
  const missing = assert.rejects(s.make().mountPod(pod, gone.signal), { code: "Aborted" });
  for (let i = 0; i < 20; i++) await turn();
  assert.equal(s.failures().length, 1, "after a reboot nothing is in memory");
  gone.abort();
  await missing;
});

Deno.test("a directory is there for what is mounted inside a read-only volume", async () => {
  const s = scene();
  s.secret("s", { a: "1" });
  const pod = podWith([{ name: "v", secret: { secretName: "s" } }, { name: "in", emptyDir: {} }], {
    containers: [{
      name: "c",
      volumeMounts: [
        { name: "v", mountPath: "/etc/v" },
        { name: "in", mountPath: "/etc/v/in/er" },
        { name: "in", mountPath: "/etc/v/in/er/most" },
        { name: "in", mountPath: "/etc/v2" },
      ],
    }],
  });
  await s.manager.mountPod(pod, s.signal);
  const dir = `${volumes}/kubernetes.io~secret/v`;
  assert.equal((await s.host.stat(`${dir}/in/er`))?.mode, 0o755);
  assert.equal(s.host.exists(`${dir}/in/er/most`), false);
  s.secret("s", { a: "2" });
  await s.manager.mountPod(pod, s.signal);
  assert.equal(s.host.exists(`${dir}/in/er`), true, "updates leave it");
});

Deno.test("hostile contents: keys like __proto__ and constructor are files, 1 MiB is one, paths may not lead out", async () => {
  const s = scene();
  const big = "x".repeat(1 << 20);
  s.api.secrets.set("s", { data: JSON.parse(`{"__proto__": "${btoa("p")}", "big": "${btoa(big)}"}`) });
  const pod = podWith([
    { name: "v", secret: { secretName: "s" } },
    { name: "w", secret: { secretName: "s", optional: true, items: [{ key: "constructor", path: "x" }] } },
  ]);
  await s.manager.mountPod(pod, s.signal);
  const dir = `${volumes}/kubernetes.io~secret`;
  assert.equal(s.host.text(`${dir}/v/__proto__`), "p");
  assert.equal(s.host.text(`${dir}/v/big`)?.length, 1 << 20);
  assert.deepEqual(await files(s.host, `${dir}/w`), {});
  await s.manager.unmountPod("u1", s.signal);
  const out = podWith([{ name: "v", secret: { secretName: "s", items: [{ key: "big", path: "../../../etc/x" }] } }]);
  await assert.rejects(s.manager.mountPod(out, s.signal), /must not contain '\.\.'/);
});
