import assert from "@assert";
import * as paths from "./paths.ts";

const pod = { metadata: { name: "web", namespace: "ns", uid: "u-1" } };
const root = "/var/lib/kubelet";

Deno.test("paths are the contract's", () => {
  const cases: [string, string][] = [
    [paths.podDir(root, "u-1"), "/var/lib/kubelet/pods/u-1"],
    [
      paths.podVolumeDir(root, "u-1", "kubernetes.io/empty-dir", "data"),
      "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~empty-dir/data",
    ],
    [paths.podPluginDir(root, "u-1", "kubernetes.io/csi"), "/var/lib/kubelet/pods/u-1/plugins/kubernetes.io~csi"],
    [
      paths.podVolumeDevice(root, "u-1", "kubernetes.io/csi", "pv"),
      "/var/lib/kubelet/pods/u-1/volumeDevices/kubernetes.io~csi/pv",
    ],
    [paths.podSubPath(root, "u-1", "data", "c", 2), "/var/lib/kubelet/pods/u-1/volume-subpaths/data/c/2"],
    [paths.containerDir(root, "u-1", "c"), "/var/lib/kubelet/pods/u-1/containers/c"],
    [paths.terminationFile(root, "u-1", "c", 0xbeef), "/var/lib/kubelet/pods/u-1/containers/c/0000beef"],
    [paths.terminationFile(root, "u-1", "c", 2 ** 32 - 1), "/var/lib/kubelet/pods/u-1/containers/c/ffffffff"],
    [paths.etcHostsFile(root, "u-1"), "/var/lib/kubelet/pods/u-1/etc-hosts"],
    [paths.usernsFile(root, "u-1"), "/var/lib/kubelet/pods/u-1/userns"],
    [paths.podLogDir("/var/log/pods", pod), "/var/log/pods/ns_web_u-1"],
    [paths.containerLogDir("/var/log/pods", pod, "c"), "/var/log/pods/ns_web_u-1/c"],
    [paths.containerLogPath("c", 3), "c/3.log"],
    [paths.containerLogFile("/var/log/pods", pod, "c", 3), "/var/log/pods/ns_web_u-1/c/3.log"],
    [paths.legacyLogLink("/var/log/containers", pod, "c", "abc"), "/var/log/containers/web_ns_c-abc.log"],
    [
      paths.checkpointPath(root, pod, "c", "2026-01-02T03:04:05Z"),
      "/var/lib/kubelet/checkpoints/checkpoint-web_ns-c-2026-01-02T03:04:05Z.tar",
    ],
    [paths.rootPaths.imageManager(root, "pulled"), "/var/lib/kubelet/image_manager/pulled"],
    [paths.rootPaths.pluginRegistration(root), "/var/lib/kubelet/plugins_registry"],
  ];
  for (const [got, want] of cases) assert.equal(got, want);
});

Deno.test("names that would lead elsewhere are refused", () => {
  for (const bad of ["", ".", "..", "a/b", "../x", "/", "a\0b", "x".repeat(256), "é".repeat(128)]) {
    const refused = { code: "BadPod" };
    assert.throws(() => paths.podDir(root, bad), refused, JSON.stringify(bad));
    assert.throws(() => paths.podVolumeDir(root, "u", "kubernetes.io/empty-dir", bad), refused);
    assert.throws(() => paths.podSubPath(root, "u", "v", bad, 0), refused);
    assert.throws(() => paths.containerDir(root, "u", bad), refused);
    assert.throws(() => paths.containerLogPath(bad, 0), refused);
  }
  assert.throws(() => paths.podVolumeDir(root, "u", "..", "v"), { code: "BadPod" });
  assert.throws(() => paths.podLogDir("/l", { metadata: { name: "x/../../y", namespace: "ns", uid: "u" } }), {
    code: "BadPod",
    message: /pod log directory/,
  });
  assert.throws(() => paths.legacyLogLink("/l", pod, "a/b", "id"), { code: "BadPod" });
  assert.equal(paths.podDir(root, "__proto__"), `${root}/pods/__proto__`);
});

Deno.test("a relative path stays below its directory", () => {
  assert.equal(paths.pathBelow("/d", "a//b/./c", "x"), "/d/a/b/c");
  assert.equal(paths.pathBelow("/d", "..a/b..", "x"), "/d/..a/b..");
  assert.equal(paths.pathBelow("/d", "", "x"), "/d");
  for (const bad of ["/a", "..", "a/../b", "a/..", "a\0"]) {
    assert.throws(() => paths.pathBelow("/d", bad, "profile"), { code: "BadPod", message: /^profile/ });
  }
});

Deno.test("the legacy link's name fits in 255 bytes", () => {
  const of = (name: string) =>
    paths.legacyLogLink("/l", { metadata: { name, namespace: "ns", uid: "u" } }, "c", "0123456789").slice(3);
  assert.equal(of("a".repeat(235)).length, 255);
  assert.ok(of("a".repeat(235)).endsWith("-0123456789.log"));
  assert.equal(of("a".repeat(300)), `${"a".repeat(251)}.log`);
  assert.equal(of(`${"a".repeat(250)}é`), `${"a".repeat(250)}.log`, "no half character");
});

Deno.test("a pod whose names are too long for a log directory has none", () => {
  const named = (length: number) => ({ metadata: { namespace: "n", name: "x".repeat(length), uid: "u" } });
  assert.equal(paths.podLogDirIfAny("/l", named(251)), `/l/n_${"x".repeat(251)}_u`);
  assert.equal(paths.podLogDirIfAny("/l", named(252)), undefined);
  assert.throws(() => paths.podLogDir("/l", named(252)), /255 bytes/);
});

Deno.test("names on disk are read back", () => {
  assert.equal(paths.uidOfLogDir("ns_web_u-1"), "u-1");
  assert.equal(paths.uidOfLogDir("u-1"), "u-1");
  const logs: [string, number | undefined][] = [
    ["0.log", 0],
    ["12.log", 12],
    ["3.log.20260102-030405.gz", 3],
    [
      "x.log",
      undefined,
    ],
    ["1.logx", undefined],
    ["-1.log", undefined],
    ["", undefined],
  ];
  for (const [name, want] of logs) assert.equal(paths.restartCountOfLog(name), want, name);
  assert.equal(paths.containerIdOfLegacyLink("/l/web_ns_c-0123456789.log"), "0123456789");
  assert.equal(paths.containerIdOfLegacyLink("/l/web_ns_c-01234.log"), undefined);
  assert.equal(paths.containerIdOfLegacyLink("/l/web"), undefined);
});
