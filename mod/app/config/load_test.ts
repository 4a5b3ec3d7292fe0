import assert from "@assert";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger } from "../../base/log.ts";
import { formatQuantity } from "../../kube/quantity.ts";
import { describeUnused } from "./explain.ts";
import { head, load, refused, type Scene, standalone } from "./load_testing.ts";
import { loadConfig } from "./load.ts";

// As the reference v1.36.3 served it at /configz (contract samples/configz.json).
const served =
  '{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","enableServer":true,"staticPodPath":"/var/tmp/m","podLogsDir":"/var/log/pods","syncFrequency":"1m0s","fileCheckFrequency":"20s","httpCheckFrequency":"20s","address":"127.0.0.1","port":10250,"readOnlyPort":10255,"tlsCertFile":"/var/lib/kubelet/pki/kubelet.crt","tlsPrivateKeyFile":"/var/lib/kubelet/pki/kubelet.key","authentication":{"x509":{},"webhook":{"enabled":false,"cacheTTL":"2m0s"},"anonymous":{"enabled":true}},"authorization":{"mode":"AlwaysAllow","webhook":{"cacheAuthorizedTTL":"5m0s","cacheUnauthorizedTTL":"30s"}},"registryPullQPS":5,"registryBurst":10,"imagePullCredentialsVerificationPolicy":"NeverVerifyPreloadedImages","eventRecordQPS":50,"eventBurst":100,"enableDebuggingHandlers":true,"healthzPort":10248,"healthzBindAddress":"127.0.0.1","oomScoreAdj":0,"streamingConnectionIdleTimeout":"4h0m0s","nodeStatusUpdateFrequency":"10s","nodeStatusReportFrequency":"5m0s","nodeLeaseDurationSeconds":40,"imageMinimumGCAge":"2m0s","imageMaximumGCAge":"0s","imageGCHighThresholdPercent":85,"imageGCLowThresholdPercent":80,"volumeStatsAggPeriod":"1m0s","cgroupsPerQOS":true,"cgroupDriver":"cgroupfs","cpuManagerPolicy":"none","cpuManagerReconcilePeriod":"10s","memoryManagerPolicy":"None","topologyManagerPolicy":"none","topologyManagerScope":"container","runtimeRequestTimeout":"2m0s","hairpinMode":"promiscuous-bridge","maxPods":110,"podPidsLimit":-1,"resolvConf":"/etc/resolv.conf","cpuCFSQuota":true,"cpuCFSQuotaPeriod":"100ms","nodeStatusMaxImages":50,"maxOpenFiles":1000000,"contentType":"application/vnd.kubernetes.protobuf","kubeAPIQPS":50,"kubeAPIBurst":100,"serializeImagePulls":true,"evictionHard":{"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"100Mi","nodefs.available":"10%","nodefs.inodesFree":"5%"},"evictionPressureTransitionPeriod":"5m0s","mergeDefaultEvictionSettings":false,"enableControllerAttachDetach":true,"makeIPTablesUtilChains":true,"iptablesMasqueradeBit":14,"iptablesDropBit":15,"failSwapOn":true,"memorySwap":{},"containerLogMaxSize":"10Mi","containerLogMaxFiles":5,"containerLogMaxWorkers":1,"containerLogMonitorInterval":"10s","configMapAndSecretChangeDetectionStrategy":"Watch","enforceNodeAllocatable":["pods"],"volumePluginDir":"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/","logging":{"format":"text","flushFrequency":"5s","verbosity":0,"options":{"text":{"infoBufferSize":"0"},"json":{"infoBufferSize":"0"}}},"enableSystemLogHandler":true,"enableSystemLogQuery":false,"shutdownGracePeriod":"0s","shutdownGracePeriodCriticalPods":"0s","crashLoopBackOff":{"maxContainerRestartPeriod":"5m0s"},"enableProfilingHandler":true,"enableDebugFlagsHandler":true,"seccompDefault":false,"memoryThrottlingFactor":0.9,"memoryReservationPolicy":"None","registerNode":true,"localStorageCapacityIsolation":true,"containerRuntimeEndpoint":"unix:///run/containerd/containerd.sock","failCgroupV1":false}';

Deno.test("/configz has the reference's fields, order and texts", async () => {
  const { v1beta1 } = await load({
    config: `${standalone}
staticPodPath: /var/tmp/m
address: 127.0.0.1
readOnlyPort: 10255
tlsCertFile: /var/lib/kubelet/pki/kubelet.crt
tlsPrivateKeyFile: /var/lib/kubelet/pki/kubelet.key
oomScoreAdj: 0
failCgroupV1: no
`.replace("webhook: {enabled: false}", "webhook: {enabled: false}, anonymous: {enabled: true}"),
  });
  assert.equal(JSON.stringify(v1beta1), served);
});

Deno.test("without --config the old command line's defaults hold", async () => {
  const { config, v1beta1, changed } = await load({});
  assert.equal(config.authentication.anonymous.enabled, true);
  assert.equal(config.authentication.webhook.enabled, false);
  assert.equal(config.authorization.mode, "AlwaysAllow");
  assert.equal(config.readOnlyPort, 10255);
  assert.deepEqual(config.evictionThresholds, []);
  assert.equal(v1beta1.evictionHard, undefined);
  assert.equal(config.cgroupRoot, "/");
  assert.deepEqual(changed, []);
});

Deno.test("with --config the file's defaults hold, and need an API server", async () => {
  await refused(
    { config: head },
    /2 problems: authentication\.webhook\.enabled \(--authentication-token-webhook\): true needs an API server.*authorization\.mode/,
  );
  const { config } = await load({ config: head, argv: ["--kubeconfig=/etc/kubeconfig"] });
  assert.equal(config.authentication.anonymous.enabled, false);
  assert.equal(config.authorization.mode, "Webhook");
  assert.equal(config.readOnlyPort, 0);
  assert.equal(config.evictionThresholds.length, 5);
  assert.equal(config.containerLogMaxSizeBytes, 10 * 1024 * 1024);
  assert.equal(config.syncFrequencyMs, 60_000);
  assert.equal(config.cpuCFSQuotaPeriodMs, 100);
  assert.equal(config.imageServiceEndpoint, "unix:///run/containerd/containerd.sock");
});

const cases: [name: string, scene: Scene, field: string, want: unknown][] = [
  ["a file wins over a default", { config: `${standalone}maxPods: 7` }, "maxPods", 7],
  ["a flag wins over a file", { config: `${standalone}maxPods: 7`, argv: ["--max-pods=8"] }, "maxPods", 8],
  [
    "JSON is read",
    {
      config: JSON.stringify({
        apiVersion: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        authentication: { webhook: { enabled: false } },
        authorization: { mode: "AlwaysAllow" },
        maxPods: 9,
      }),
    },
    "maxPods",
    9,
  ],
  ["a zero duration means the default", { config: `${standalone}syncFrequency: 0s` }, "syncFrequencyMs", 60_000],
  ["a zero that can be told from unset is kept", { config: `${standalone}registryPullQPS: 0` }, "registryPullQPS", 0],
  ["a zero that can't be told from unset is the default", { config: `${standalone}maxPods: 0` }, "maxPods", 110],
  ["an empty resolvConf is kept", { config: `${standalone}resolvConf: ""` }, "resolvConf", ""],
  ["null is unset", { config: `${standalone}maxPods: null` }, "maxPods", 110],
  ["a negative pid limit is -1", { config: `${standalone}podPidsLimit: -7` }, "podPidsLimit", -1],
  [
    "the report frequency follows the update frequency",
    { config: `${standalone}nodeStatusUpdateFrequency: 4s` },
    "nodeStatusReportFrequencyMs",
    4000,
  ],
  [
    "but not that of a flag",
    { config: standalone, argv: ["--node-status-update-frequency=4s"] },
    "nodeStatusReportFrequencyMs",
    300_000,
  ],
  [
    "parallel pulls switch serial ones off",
    { config: `${standalone}maxParallelImagePulls: 3` },
    "serializeImagePulls",
    false,
  ],
  ["one parallel pull does not", { config: `${standalone}maxParallelImagePulls: 1` }, "serializeImagePulls", true],
  [
    "relative paths start at the file",
    { config: `${standalone}staticPodPath: manifests` },
    "staticPodPath",
    "/etc/kubelet/manifests",
  ],
  [
    "relative paths are cleaned",
    { config: `${standalone}volumePluginDir: ../plugins/` },
    "volumePluginDir",
    "/etc/plugins",
  ],
  ["a flag's relative path stays", { config: standalone, argv: ["--pod-manifest-path=m"] }, "staticPodPath", "m"],
  ["seccompDefault by flag", { config: standalone, argv: ["--seccomp-default"] }, "seccompDefault", true],
  ["seccompDefault by field", { config: `${standalone}seccompDefault: true` }, "seccompDefault", true],
  ["run once is kept", { argv: ["--runonce"] }, "runOnce", true],
  ["run once by field", { config: `${standalone}runOnce: true` }, "runOnce", true],
  [
    "an image endpoint of its own",
    { argv: ["--image-service-endpoint=unix:///i"] },
    "imageServiceEndpoint",
    "unix:///i",
  ],
  [
    "a drop-in wins over the file",
    { config: `${standalone}maxPods: 7`, dropIns: { "10.conf": `${head}maxPods: 8` } },
    "maxPods",
    8,
  ],
  [
    "a later drop-in wins",
    { config: standalone, dropIns: { "20.conf": `${head}maxPods: 9`, "10.conf": `${head}maxPods: 8` } },
    "maxPods",
    9,
  ],
  [
    "sub-directories are walked",
    { config: standalone, dropIns: { "a/x.conf": `${head}maxPods: 9`, "b.conf": `${head}port: 1` } },
    "maxPods",
    9,
  ],
  [
    "other files are passed over",
    { config: standalone, dropIns: { "a.yaml": "{{{", "x.conf": `${head}maxPods: 9` } },
    "maxPods",
    9,
  ],
  [
    "null in a drop-in brings the default back",
    { config: `${standalone}maxPods: 7`, dropIns: { "a.conf": `${head}maxPods: null` } },
    "maxPods",
    110,
  ],
  [
    "a list in a drop-in replaces",
    { config: `${standalone}clusterDNS: [10.0.0.1]`, dropIns: { "a.conf": `${head}clusterDNS: [10.0.0.2]` } },
    "clusterDNS",
    ["10.0.0.2"],
  ],
  ["drop-ins work without a file", { dropIns: { "a.conf": `${head}maxPods: 6` } }, "maxPods", 6],
  ["which keeps the old defaults", { dropIns: { "a.conf": `${head}maxPods: 6` } }, "readOnlyPort", 10255],
  ["a flag wins over drop-ins", { dropIns: { "a.conf": `${head}maxPods: 6` }, argv: ["--max-pods=5"] }, "maxPods", 5],
];
for (const [name, scene, field, want] of cases) {
  Deno.test(`loading: ${name}`, async () => {
    const { config } = await load(scene);
    assert.deepEqual(config[field as keyof typeof config], want);
  });
}

Deno.test("the root directory is told in full: the runtime gets paths below it", async () => {
  const rootOf = async (given: string) => {
    const argv = [`--config=/c.yaml`, `--root-dir=${given}`];
    return (await loadConfig({
      argv,
      host: new FakeHost({ files: { "/c.yaml": standalone } }),
      log: new RecordingLogger(),
      cwd: "/here",
    })).flags.rootDir;
  };
  assert.equal(await rootOf("rel dir/x"), "/here/rel dir/x");
  assert.equal(await rootOf("."), "/here");
  assert.equal(await rootOf("/a//b/../c/"), "/a/c");
  assert.equal(await rootOf("/"), "/");
  await refused({ config: standalone, argv: ["--root-dir="] }, /--root-dir is empty; give a directory/);
});

Deno.test("feature gates are merged by name, flags win, and defaults follow them", async () => {
  const { gates, v1beta1, config } = await load({
    config: `${standalone}featureGates: {MemoryQoS: true, EventedPLEG: true}`,
    dropIns: { "a.conf": `${head}featureGates: {PodsAPI: true}` },
    argv: ["--feature-gates=EventedPLEG=false,KubeletCrashLoopBackOffMax=false"],
  });
  assert.deepEqual(v1beta1.featureGates, {
    EventedPLEG: false,
    KubeletCrashLoopBackOffMax: false,
    MemoryQoS: true,
    PodsAPI: true,
  });
  assert.equal(gates.enabled("MemoryQoS"), true);
  assert.deepEqual(v1beta1.crashLoopBackOff, {});
  assert.equal(config.crashLoopBackOff.maxContainerRestartPeriodMs, 300_000);
});

Deno.test("evictionHard: absent, own, empty, merged", async () => {
  const signals = async (text: string) =>
    (await load({ config: `${standalone}${text}` })).config.evictionThresholds.map((t) => t.signal);
  assert.equal((await signals("")).length, 5);
  assert.deepEqual(await signals("evictionHard: {memory.available: 5%}"), ["memory.available"]);
  assert.deepEqual(await signals("evictionHard: {}"), []);
  assert.deepEqual(await signals("evictionHard: {memory.available: 0%}"), []);
  const { config, v1beta1 } = await load({
    config:
      `${standalone}evictionHard: {memory.available: 5%}\nmergeDefaultEvictionSettings: true\nevictionMinimumReclaim: {memory.available: 1Mi}\n`,
  });
  assert.equal(config.evictionThresholds.length, 5);
  assert.equal(v1beta1.evictionHard?.["memory.available"], "5%");
  const memory = config.evictionThresholds.find((t) => t.signal === "memory.available");
  assert.deepEqual(memory?.value, { share: 0.05 });
  assert.equal(memory?.gracePeriodMs, 0);
  assert(memory?.minReclaim !== undefined && "quantity" in memory.minReclaim);
});

Deno.test("soft thresholds carry their grace period", async () => {
  const { config } = await load({
    argv: ["--eviction-soft=memory.available<1.5Gi", "--eviction-soft-grace-period=memory.available=1m30s"],
  });
  const [soft] = config.evictionThresholds;
  assert.equal(soft?.gracePeriodMs, 90_000);
  assert.equal(soft !== undefined && "quantity" in soft.value && formatQuantity(soft.value.quantity), "1536Mi");
});

Deno.test("reservedSystemCPUs replaces the cpu of the reservations", async () => {
  const { config, v1beta1 } = await load({
    argv: ["--reserved-cpus=0,2-3", "--kube-reserved=cpu=2,memory=1Gi", "--system-reserved=cpu=7"],
    files: { "/proc/stat": "cpu  1\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\n" },
  });
  assert.deepEqual(config.reservedSystemCPUs, [0, 2, 3]);
  assert.deepEqual(Object.keys(config.kubeReserved), ["memory"]);
  assert.equal(formatQuantity(config.systemReserved.cpu ?? { nano: 0n, format: "DecimalSI" }), "3");
  assert.deepEqual(v1beta1.systemReserved, { cpu: "7" });
});

Deno.test("unknown and doubled fields are warnings that name them", async () => {
  const { warnings, config } = await load({
    config: `${standalone}maxpods: 3\nmaxPods: 4\nmaxPods: 5\nlogging: {verbose: 1}\n`,
  });
  assert.equal(config.maxPods, 5);
  assert.match(warnings.join("\n"), /key "maxPods" is given twice/);
  assert.match(warnings.join("\n"), /unknown fields are ignored: maxpods; did you mean maxPods.*logging\.verbose/);
});

Deno.test("set fields are known, and those without effect can be told", async () => {
  const loaded = await load({
    config: `${standalone}iptablesDropBit: 3\nlogging: {verbosity: 2}\n`,
    argv: ["--hairpin-mode=none"],
  });
  assert.deepEqual(
    loaded.setFields.filter((path) => !path.startsWith("auth")).sort(),
    ["hairpinMode", "iptablesDropBit", "logging.verbosity"],
  );
  assert.match(describeUnused(loaded).join(), /does not act on them: .*iptablesDropBit/);
  assert.doesNotMatch(describeUnused(loaded).join(), /logging/);
  const some = describeUnused({ setFields: ["iptablesDropBit", "volumeStatsAggPeriod"] });
  assert.deepEqual(some.map((text) => text.includes("\n")), [false, false], "each is a line of the log");
  assert.match(loaded.warnings.join(), /deprecated flags; set these fields.*--hairpin-mode \(hairpinMode\)/);
});
