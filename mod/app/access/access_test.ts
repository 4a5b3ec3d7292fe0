import assert from "@assert";
import { FakeHost } from "../../base/fake_host.ts";
import { silent } from "../../base/log.ts";
import { loadConfig } from "../config/load.ts";
import { accessFlags, accessOf, accessOfLooking, type FileAccess, type Looking } from "./access.ts";

const standalone = [
  "apiVersion: kubelet.config.k8s.io/v1beta1",
  "kind: KubeletConfiguration",
  "authentication: {webhook: {enabled: false}}",
  "authorization: {mode: AlwaysAllow}",
  "",
].join("\n");

const mounts = {
  procRoot: "/run/denolet/proc",
  cgroupRoot: "/run/denolet/cgroup",
  sysRoot: "/run/denolet/sys",
  kernelLog: "/run/denolet/kmsg",
};
const interfaces = [mounts.cgroupRoot, mounts.procRoot, mounts.sysRoot];
const writableInterfaces = [
  mounts.cgroupRoot,
  `${mounts.procRoot}/self/fd`,
  `${mounts.procRoot}/self/oom_score_adj`,
  `${mounts.procRoot}/sys`,
];
const nodeFiles = ["/etc/hosts", "/etc/machine-id", "/etc/os-release", "/etc/passwd", "/usr/lib/os-release"];
const dockerFiles = ["/.docker/config.json", "/.dockercfg", "/root/.docker/config.json", "/root/.dockercfg"];

async function access(config: string, argv: string[] = [], notifySocket = ""): Promise<FileAccess> {
  const host = new FakeHost({ files: { "/etc/kubernetes/kubelet.yaml": standalone + config } });
  const all = ["--config", "/etc/kubernetes/kubelet.yaml", ...argv];
  const { flags, config: loaded } = await loadConfig({ argv: all, host, log: silent, cwd: "/work" });
  return accessOf({ flags, config: loaded, mounts, cwd: "/work", notifySocket });
}

// Whoever makes these lists longer says why in docs/permissions.md.
Deno.test("audit: what may be read and written with a usual configuration is exactly this", async () => {
  const { read, write, run } = await access("staticPodPath: /etc/kubernetes/manifests\nenableServer: false\n");
  assert.equal(run, undefined);
  const owned = [
    "/etc/kubernetes/manifests",
    "/run/containerd/containerd.sock",
    "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
  ];
  const asked = ["/etc/kubernetes/kubelet.yaml", "/etc/resolv.conf"];
  assert.deepEqual(write, [...owned, ...writableInterfaces].sort());
  assert.deepEqual(read, [...owned, ...asked, ...interfaces, mounts.kernelLog, ...nodeFiles, ...dockerFiles].sort());
});

Deno.test("journalctl may be run where queries for logs are switched on, and only there", async () => {
  const query = "featureGates: {NodeLogQuery: true}\nenableSystemLogHandler: true\nenableSystemLogQuery: true\n";
  assert.deepEqual((await access(query)).run, ["/usr/bin/journalctl"]);
  assert.equal((await access(`${query}enableServer: false\n`)).run, undefined);
  assert.equal((await access("")).run, undefined);
});

Deno.test("every path that a configuration names may be read, and those that are the agent's written", async () => {
  const { read, write } = await access(
    [
      "podLogsDir: /logs/pods",
      "volumePluginDir: plugins",
      "tlsCertFile: /tls/cert",
      "tlsPrivateKeyFile: /tls/key",
      "resolvConf: /run/resolv",
      "containerRuntimeEndpoint: unix:///run/crio/crio.sock",
      "imageServiceEndpoint: unix:///run/images.sock",
      "",
    ].join("\n"),
    ["--root-dir", "root", "--cert-dir", "/certs", "--client-ca-file", "/tls/ca", "--lock-file", "/run/l"],
    "/run/systemd/notify",
  );
  const rw = ["/logs/pods", "/etc/kubernetes/plugins", "/work/root", "/certs", "/run/l", "/run/systemd/notify"];
  for (const path of [...rw, "/run/crio/crio.sock", "/run/images.sock"]) {
    assert.ok(read.includes(path) && write.includes(path), path);
  }
  for (const path of ["/tls/cert", "/tls/key", "/tls/ca", "/run/resolv"]) {
    assert.ok(read.includes(path) && !write.includes(path), path);
  }
  assert.ok(!write.includes("/var/log/containers"), "the links of the default root directory only");
});

Deno.test("what a kubeconfig names may be read; its directory is written only where bootstrapping makes it", async () => {
  const host = new FakeHost({ files: { "/c": standalone } });
  const of = async (...argv: string[]) => {
    const { flags, config } = await loadConfig({ argv: ["--config=/c", ...argv], host, log: silent });
    const facts = { mounts, cwd: "/", notifySocket: "", credentials: ["/etc/tokens/t"], programs: ["/opt/login"] };
    return accessOf({ ...facts, flags, config });
  };
  const member = await of("--kubeconfig=/etc/k/kubelet.conf");
  for (const path of ["/etc/k/kubelet.conf", "/etc/tokens/t"]) {
    assert.ok(member.read.includes(path) && !member.write.includes(path), path);
  }
  assert.deepEqual(member.run, ["/opt/login"]);
  const fresh = await of("--kubeconfig=/etc/k/kubelet.conf", "--bootstrap-kubeconfig=/etc/b/bootstrap.conf");
  assert.ok(fresh.write.includes("/etc/k"));
  assert.ok(fresh.read.includes("/etc/b/bootstrap.conf") && !fresh.write.includes("/etc/b/bootstrap.conf"));
});

Deno.test("without a configuration that can be used nothing may be written", async () => {
  const host = new FakeHost({ files: { "/c": standalone } });
  const { flags } = await loadConfig({ argv: ["--config=/c"], host, log: silent });
  assert.deepEqual(accessOf({ flags, config: undefined, mounts, cwd: "/", notifySocket: "/n" }), {
    read: ["/c", ...interfaces],
    write: [],
  });
});

const local = "/r/denolet.sock";
const containerd = "/run/containerd/containerd.sock";
const journals = ["/r/journal.jsonl", "/r/journal.jsonl.1"];
// Whoever makes these lists longer says why in docs/permissions.md.
const lookings: Record<Looking, FileAccess> = {
  ps: { read: [local], write: [local] },
  explain: { read: [local, ...journals], write: [local] },
  logs: { read: ["/c", "/logs/pods", "/r/denolet.json", local], write: [local] },
  check: { read: ["/c", local, containerd, ...interfaces].sort(), write: [local, containerd] },
  "explain config": { read: ["/c"], write: [] },
  completion: { read: [], write: [] },
};
for (const [command, exact] of Object.entries(lookings)) {
  Deno.test(`audit: what kubelet ${command} may read and write is exactly this`, async () => {
    const host = new FakeHost({ files: { "/c": `${standalone}enableServer: false\n` } });
    const argv = ["--config=/c", "--root-dir=/r"];
    const { flags, config } = await loadConfig({ argv, host, log: silent });
    const facts = { flags, config, mounts, cwd: "/", notifySocket: "/n" };
    assert.deepEqual(accessOfLooking(command as Looking, facts, "/logs/pods"), exact);
    const elsewhere = accessOfLooking("logs", facts).read;
    assert(elsewhere.includes("/var/log/pods"), "without a word of the agent, the configuration's directory");
  });
}

Deno.test("flags: commas are doubled, an empty list gives none", () => {
  assert.deepEqual(accessFlags({ read: ["/a,b", "/c"], write: [] }), ["--allow-read=/a,,b,/c"]);
});
