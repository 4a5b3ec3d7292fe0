import assert from "@assert";
import { KubeletError } from "../../../base/errors.ts";
import { FakeHost } from "../../../base/fake_host.ts";
import { silent } from "../../../base/log.ts";
import { loadConfig } from "../load.ts";

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

interface Scene {
  /** Lines of the file, or none. */
  yaml?: string;
  argv?: string[];
  cgroup?: 1 | 2;
}

async function problemsOf({ yaml, argv = [], cgroup }: Scene): Promise<string> {
  const files: Record<string, string> = { "/proc/stat": "cpu  1\ncpu0 1\ncpu1 1\n" };
  if (cgroup === 1) files["/sys/fs/cgroup/memory/cgroup.procs"] = "";
  if (cgroup === 2) files["/sys/fs/cgroup/cgroup.controllers"] = "cpu";
  if (yaml !== undefined) files["/c.yaml"] = head + yaml;
  const all = yaml === undefined ? argv : ["--config=/c.yaml", "--kubeconfig=/k", ...argv];
  try {
    await loadConfig({ argv: all, host: new FakeHost({ files }), log: silent });
    return "";
  } catch (thrown) {
    if (!(thrown instanceof KubeletError) || thrown.code !== "BadConfig") throw thrown;
    return thrown.message;
  }
}

// Contract config.md section 2, in its order: what is refused, and with which words.
const refused: [yaml: string, message: RegExp][] = [
  ["podLogsDir: logs/../x", /^$/], // relative: resolved against the file's directory
  ["podLogsDir: /var//log", /podLogsDir: "\/var\/\/log" must be a clean path; write "\/var\/log"/],
  ["podLogsDir: /var/log/", /must be a clean path/],
  ["podLogsDir: /var/lög", /must have ASCII characters only/],
  ["syncFrequency: -1s", /syncFrequency \(--sync-frequency\): "-1s" must be more than 0/],
  ["address: localhost", /address \(--address\): "localhost" must be an IP address/],
  ["port: -1", /port \(--port\): -1 must be from 1 to 65535/],
  ["port: 65536", /port/],
  ["readOnlyPort: 65536", /readOnlyPort \(--read-only-port\): 65536 must be from 0 to 65535/],
  ["tlsCipherSuites: [RC4]", /"RC4" is no cipher suite/],
  ["tlsCurvePreferences: [1]", /tlsCurvePreferences: 1 is no curve/],
  [
    "tlsMinVersion: TLS12",
    /tlsMinVersion \(--tls-min-version\): "TLS12" must be VersionTLS10, .* or VersionTLS13, or be left out/,
  ],
  [
    "serverTLSBootstrap: true\nfeatureGates: {RotateKubeletServerCertificate: false}",
    /needs feature gate RotateKubeletServerCertificate/,
  ],
  [
    "authorization: {mode: RBAC}",
    /authorization\.mode \(--authorization-mode\): "RBAC" must be AlwaysAllow or Webhook/,
  ],
  ["registryPullQPS: -1", /registryPullQPS \(--registry-qps\): -1 must be 0 or more/],
  ["registryBurst: -1", /registryBurst/],
  ["imagePullCredentialsVerificationPolicy: Maybe", /"Maybe" must be NeverVerify, .* or AlwaysVerify/],
  [
    "featureGates: {KubeletEnsureSecretPulledImages: false}\nimagePullCredentialsVerificationPolicy: AlwaysVerify",
    /needs feature gate KubeletEnsureSecretPulledImages/,
  ],
  [
    "preloadedImagesVerificationAllowlist: [a]",
    /needs imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages/,
  ],
  [
    "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ['a:1']",
    /"a:1" must have no tag or digest/,
  ],
  [
    "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ['a*']",
    /may have a \* only as/,
  ],
  ["eventRecordQPS: -1", /eventRecordQPS \(--event-qps\)/],
  ["eventBurst: -1", /eventBurst/],
  ["healthzPort: 65536", /healthzPort/],
  ["healthzBindAddress: x", /healthzBindAddress/],
  ["oomScoreAdj: -1001", /oomScoreAdj \(--oom-score-adj\): -1001 must be from -1000 to 1000/],
  ["nodeLeaseDurationSeconds: -1", /nodeLeaseDurationSeconds: -1 must be 1 or more/],
  ["imageMinimumGCAge: -1s", /imageMinimumGCAge \(--minimum-image-ttl-duration\)/],
  ["imageMaximumGCAge: -1s", /imageMaximumGCAge/],
  ["imageMaximumGCAge: 1m", /imageMaximumGCAge: "1m0s" must be more than imageMinimumGCAge/],
  ["imageGCHighThresholdPercent: 101", /from 0 to 100/],
  ["imageGCLowThresholdPercent: 85", /must be less than imageGCHighThresholdPercent .*, 85/],
  ["systemCgroups: /x", /systemCgroups \(--system-cgroups\): "\/x" needs cgroupRoot/],
  ["systemCgroups: /\ncgroupRoot: /", /must not be \//],
  ["cgroupsPerQOS: false", /enforceNodeAllocatable .* needs cgroupsPerQOS: true .* for pods/],
  ["cgroupDriver: none", /cgroupDriver/],
  ["cpuManagerPolicy: dynamic", /cpuManagerPolicy .*must be none or static/],
  ["cpuManagerPolicy: static", /needs reserved CPU above 0/],
  ["cpuManagerPolicyOptions: {full-pcpus-only: 'true'}", /has no meaning with cpuManagerPolicy none/],
  [
    "cpuManagerPolicy: static\nkubeReserved: {cpu: '1'}\ncpuManagerPolicyOptions: {full-pcpu-only: 'true'}",
    /unknown option "full-pcpu-only"; did you mean full-pcpus-only/,
  ],
  [
    "cpuManagerPolicy: static\nkubeReserved: {cpu: '1'}\ncpuManagerPolicyOptions: {align-by-socket: 'true'}",
    /align-by-socket needs feature gate CPUManagerPolicyAlphaOptions/,
  ],
  [
    "cpuManagerPolicy: static\nkubeReserved: {cpu: '1'}\ncpuManagerPolicyOptions: {full-pcpus-only: maybe}",
    /full-pcpus-only=maybe must be true or false/,
  ],
  ["memoryManagerPolicy: static", /must be None or Static/],
  [
    "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]",
    /must equal systemReserved \+ kubeReserved/,
  ],
  ["topologyManagerPolicy: x", /topologyManagerPolicy/],
  ["topologyManagerScope: x", /topologyManagerScope/],
  ["topologyManagerPolicyOptions: {max-allowable-numa-nodes: '4'}", /must be a whole number of at least 8/],
  ["qosReserved: {cpu: 50%}", /cannot reserve "cpu"; only memory/],
  ["qosReserved: {memory: 150%}", /must be from 0% to 100%/],
  ["hairpinMode: x", /hairpinMode/],
  ["maxPods: -1", /maxPods \(--max-pods\): -1 must be 0 or more/],
  ["cpuCFSQuotaPeriod: 2s", /cpuCFSQuotaPeriod \(--cpu-cfs-quota-period\): "2s" must be from 1ms to 1s/],
  ["cpuCFSQuotaPeriod: 0s", /must be from 1ms to 1s/],
  [
    "cpuCFSQuotaPeriod: 10ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: false}",
    /needs feature gate CustomCPUCFSQuotaPeriod/,
  ],
  ["nodeStatusMaxImages: -2", /must be -1 or more/],
  ["maxOpenFiles: -1", /maxOpenFiles/],
  ["kubeAPIQPS: -1", /kubeAPIQPS/],
  ["kubeAPIBurst: -1", /kubeAPIBurst/],
  ["maxParallelImagePulls: 0", /maxParallelImagePulls: 0 must be 1 or more/],
  ["serializeImagePulls: true\nmaxParallelImagePulls: 2", /maxParallelImagePulls: 2 needs serializeImagePulls: false/],
  ["evictionHard: {memory.free: 1Gi}", /evictionHard \(--eviction-hard\): has the unknown signal "memory\.free"/],
  ["evictionHard: {memory.available: lots}", /memory\.available: quantity "lots"/],
  ["evictionHard: {memory.available: 101%}", /"101%" must be from 0% to 100%/],
  ["evictionHard: {memory.available: '-5%'}", /from 0% to 100%/],
  ["evictionHard: {memory.available: '0'}", /"0" must be more than 0/],
  ["evictionSoft: {memory.available: 1Gi}", /evictionSoft .*memory\.available needs a grace period/],
  [
    "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: -1s}",
    /-1s must not be negative/,
  ],
  ["evictionSoftGracePeriod: {memory.available: soon}", /duration "soon"/],
  ["evictionMinimumReclaim: {memory.available: '-1'}", /must be 0 or more/],
  ["evictionMinimumReclaim: {memory.available: 0%}", /must be more than 0%/],
  ["podsPerCore: -1", /podsPerCore/],
  ["iptablesMasqueradeBit: 32", /from 0 to 31/],
  ["iptablesDropBit: -1", /from 0 to 31/],
  ["featureGates: {Nope: true}", /unknown gate "Nope"/],
  [
    "memorySwap: {swapBehavior: Unlimited}",
    /memorySwap\.swapBehavior: "Unlimited" must be NoSwap or LimitedSwap, or be left out/,
  ],
  ["containerLogMaxSize: big", /containerLogMaxSize \(--container-log-max-size\): quantity "big"/],
  ["containerLogMaxFiles: 1", /must be 2 or more/],
  ["containerLogMaxWorkers: 0", /must be 1 or more/],
  ["containerLogMonitorInterval: 2s", /must be at least 3s/],
  ["configMapAndSecretChangeDetectionStrategy: x", /must be Get, Cache or Watch/],
  ["systemReserved: {gpu: '1'}", /systemReserved \(--system-reserved\): cannot reserve "gpu"/],
  ["kubeReserved: {cpu: '-1'}", /cpu=-1 must not be negative/],
  ["kubeReserved: {memory: x}", /memory: quantity "x"/],
  ["reservedSystemCPUs: 0-x", /reservedSystemCPUs \(--reserved-cpus\): "0-x" is no CPU/],
  ["reservedSystemCPUs: 0,5", /has CPUs that are not online: 5/],
  ["reservedSystemCPUs: '0'\nkubeReservedCgroup: /k", /can't be used with systemReservedCgroup/],
  ["showHiddenMetricsForVersion: '1.34'", /"1\.34" must be 1\.35/],
  ["enforceNodeAllocatable: [system-reserved]", /needs systemReservedCgroup .* for system-reserved/],
  ["enforceNodeAllocatable: [kube-reserved-compressible]", /needs kubeReservedCgroup/],
  ["enforceNodeAllocatable: [pods, pods]", /has pods twice/],
  ["enforceNodeAllocatable: [none, pods]", /can have nothing beside none/],
  ["enforceNodeAllocatable: [everything]", /has "everything"; use none, pods/],
  [
    "systemReservedCgroup: /s\nenforceNodeAllocatable: [system-reserved, system-reserved-compressible]",
    /can't have both/,
  ],
  ["allowedUnsafeSysctls: ['kernel.*']", /"kernel\.\*" is not known to be namespaced/],
  ["allowedUnsafeSysctls: ['NET.x']", /is no sysctl or pattern/],
  ["logging: {format: xml}", /"xml" must be text or json/],
  ["logging: {flushFrequency: -1s}", /logging\.flushFrequency \(--log-flush-frequency\): "-1s" must be more than 0/],
  ["logging: {verbosity: 4294967295}", /from 0 to 2147483647/],
  ["logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}", /works with the text format only/],
  ["logging: {vmodule: [{filePattern: '', verbosity: 1}]}", /item 0: pattern "" must not be empty/],
  ["logging: {options: {json: {splitStream: true}}}", /needs feature gate LoggingAlphaOptions/],
  ["logging: {options: {text: {infoBufferSize: 1Mi}}}", /needs feature gate LoggingAlphaOptions/],
  ["enableSystemLogQuery: true\nenableSystemLogHandler: false", /needs enableSystemLogHandler: true/],
  ["shutdownGracePeriod: 10ms", /must be 0 or at least 1s/],
  ["shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 6s", /must be at most shutdownGracePeriod/],
  [
    "shutdownGracePeriod: 5s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]",
    /can't be used with shutdownGracePeriod/,
  ],
  ["crashLoopBackOff: {maxContainerRestartPeriod: 500ms}", /must be from 1s to 300s/],
  ["crashLoopBackOff: {maxContainerRestartPeriod: 301s}", /"5m1s" must be from 1s to 300s/],
  ["reservedMemory: [{numaNode: 0, limits: {disk: 1Gi}}]", /the type must be memory or hugepages-SIZE/],
  ["reservedMemory: [{numaNode: 0, limits: {memory: 0}}]", /must not be 0/],
  ["reservedMemory: [{numaNode: 0, limits: {memory: 1}}, {numaNode: 0, limits: {memory: 1}}]", /is given twice/],
  ["memoryThrottlingFactor: 0", /must be more than 0 and at most 1/],
  ["memoryThrottlingFactor: 1.1", /must be more than 0 and at most 1/],
  ["memoryReservationPolicy: TieredReservation", /needs feature gate MemoryQoS/],
  ["memoryReservationPolicy: x", /must be None or TieredReservation/],
  ["registerWithTaints: [{key: a, effect: Never}]", /taint 0: effect "Never"/],
  ["registerWithTaints: [{key: '-a', effect: NoExecute}]", /taint 0: key "-a"/],
  ["registerWithTaints: [{key: a, effect: NoExecute, timeAdded: '2026-01-01T00:00:00Z'}]", /timeAdded must not be set/],
  ["tracing: {endpoint: 'https://x'}", /must have no scheme or one of dns/],
  ["tracing: {samplingRatePerMillion: 1000001}", /from 0 to 1000000/],
  ["userNamespaces: {idsPerPod: 65537}", /multiple of 65536/],
  ["userNamespaces: {idsPerPod: 4294967296}", /at most 4294967295/],
];
for (const [yaml, message] of refused) {
  Deno.test(`rule: ${yaml.replaceAll("\n", "; ").slice(0, 110)}`, async () => {
    assert.match(await problemsOf({ yaml }), message);
  });
}

const accepted: string[] = [
  "healthzPort: 0",
  "cgroupsPerQOS: false\nenforceNodeAllocatable: [none]",
  "cgroupsPerQOS: false\nenforceNodeAllocatable: []",
  "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ncpuManagerPolicyOptions: {full-pcpus-only: 'true'}",
  "memoryManagerPolicy: Static\nkubeReserved: {memory: 924Mi}\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]",
  "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [registry.k8s.io/pause, 'localhost:5000/*']",
  "allowedUnsafeSysctls: ['net.*', 'kernel.msg*', 'kernel.sem', net/core/somaxconn, 'fs.mqueue.*']",
  "tlsCipherSuites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_RSA_WITH_RC4_128_SHA]\ntlsCurvePreferences: [29, 23]",
  "imageMaximumGCAge: 3m",
  "containerLogMaxSize: '-1'",
  "volumeStatsAggPeriod: -1s",
  "logging: {flushFrequency: 5000000000}",
  "logging: {options: {json: {splitStream: true, infoBufferSize: 1Mi}}}\nfeatureGates: {LoggingAlphaOptions: true}",
  "memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: true}",
  "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 5s",
  "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]",
  "tracing: {endpoint: 'localhost:4317', samplingRatePerMillion: 100}",
  "tracing: {endpoint: 'unix:///run/otel'}",
  "userNamespaces: {idsPerPod: 131072}",
  "showHiddenMetricsForVersion: '1.35'",
  "clusterDNS: [nonsense]",
  "qosReserved: {memory: 50%}",
  "systemReservedCgroup: /s\nkubeReservedCgroup: /k\nenforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]",
  "evictionSoft: {pid.available: 10%}\nevictionSoftGracePeriod: {pid.available: 0s}",
];
for (const yaml of accepted) {
  Deno.test(`allowed: ${yaml.replaceAll("\n", "; ").slice(0, 110)}`, async () => {
    assert.equal(await problemsOf({ yaml }), "");
  });
}

const scenes: [name: string, scene: Scene, message: RegExp][] = [
  ["cgroup v1 is refused", { cgroup: 1 }, /failCgroupV1 \(--fail-cgroupv1\): true forbids this node/],
  ["unless allowed", { cgroup: 1, argv: ["--fail-cgroupv1=false"] }, /^$/],
  ["cgroup v2", { cgroup: 2 }, /^$/],
  [
    "LimitedSwap on v1",
    { cgroup: 1, yaml: "failCgroupV1: false\nmemorySwap: {swapBehavior: LimitedSwap}" },
    /needs cgroup v2/,
  ],
  ["LimitedSwap on v2", { cgroup: 2, yaml: "memorySwap: {swapBehavior: LimitedSwap}" }, /^$/],
  [
    "singleProcessOOMKill on v1",
    { cgroup: 1, yaml: "failCgroupV1: false\nsingleProcessOOMKill: false" },
    /not possible on cgroup v1/,
  ],
  ["singleProcessOOMKill on v2", { cgroup: 2, yaml: "singleProcessOOMKill: false" }, /^$/],
  [
    "standalone with webhook flags",
    { argv: ["--authorization-mode=Webhook", "--authentication-token-webhook"] },
    /2 problems: authentication\.webhook.*authorization\.mode/,
  ],
  [
    "a foreign label of Kubernetes",
    { argv: ["--node-labels=kubernetes.io/role=a"] },
    /--node-labels: "kubernetes\.io\/role" is in a namespace of Kubernetes/,
  ],
  ["a k8s.io label", { argv: ["--node-labels=x.k8s.io/role=a"] }, /in a namespace of Kubernetes/],
  ["allowed labels", {
    argv: [
      "--node-labels=node.kubernetes.io/a=b,x.kubelet.kubernetes.io/c=d,kubernetes.io/os=linux,topology.kubernetes.io/zone=z,own=1",
    ],
  }, /^$/],
  ["a bad label key", { argv: ["--node-labels=a b=c"] }, /must have a name of letters/],
  ["a bad label value", { argv: ["--node-labels=a=b!"] }, /value "b!" must be of letters/],
  [
    "a node name with an underscore",
    { argv: ["--hostname-override=my_node"] },
    /"my_node" cannot be a node's name; give let/,
  ],
  ["a node name of a path", { argv: ["--hostname-override=../x"] }, /--hostname-override: "\.\.\/x" cannot be/],
  ["a node name that is too long", { argv: [`--hostname-override=${"a".repeat(254)}`] }, /253 characters at most/],
  ["a blank node name", { argv: ["--hostname-override= "] }, /" " cannot be a node's name/],
  ["a node name in capitals, lower-cased", { argv: ["--hostname-override=Node-1.Example.COM"] }, /^$/],
  ["a bad node IP", { argv: ["--node-ip=host"] }, /--node-ip: "host" must be an IP address/],
  ["two node IPs of a family", { argv: ["--node-ip=10.0.0.1,10.0.0.2"] }, /one address of each family/],
  ["a dual-stack pair", { argv: ["--node-ip=10.0.0.1,fd00::1"] }, /^$/],
  ["any address", { argv: ["--node-ip=::"] }, /^$/],
  ["a log budget that is none", { argv: ["--denolet-log-budget=1Ki"] }, /--denolet-log-budget: 1024 bytes; give 64Ki/],
  ["a negative log budget", { argv: ["--denolet-log-budget=-1Mi"] }, /--denolet-log-budget: -1048576 bytes/],
  ["a log budget", { argv: ["--denolet-log-budget=100Mi"] }, /^$/],
  ["a cloud provider", { argv: ["--cloud-provider=aws"] }, /must be external or left out/],
  ["contention without a lock", { argv: ["--exit-on-lock-contention"] }, /needs --lock-file/],
  ["everything at once", {
    argv: ["--port=0", "--max-pods=-1", "--node-ip=x", "--feature-gates=Nope=true", "--kube-reserved=x=1"],
  }, /5 problems/],
];
for (const [name, scene, message] of scenes) {
  Deno.test(`start: ${name}`, async () => assert.match(await problemsOf(scene), message));
}
