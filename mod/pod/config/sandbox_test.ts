import assert from "@assert";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  NamespaceMode,
  PodSandboxConfigSchema,
  Protocol,
  SecurityProfile_ProfileType as Type,
  SupplementalGroupsPolicy,
} from "../../../cri/gen/runtime_pb.ts";
import type { BoundPod, PodSpec } from "../../kube/types.ts";
import { sandboxConfig, type SandboxConfigInput, sysctlName } from "./sandbox.ts";

function sandbox(
  spec: Partial<PodSpec> = {},
  more: Partial<SandboxConfigInput> = {},
): ReturnType<typeof sandboxConfig> {
  const pod: BoundPod = {
    metadata: { name: "p", namespace: "ns", uid: "u", labels: { app: "x" }, annotations: { note: "y" } },
    spec: { containers: [{ name: "c" }], ...spec },
  };
  return sandboxConfig({
    pod,
    attempt: 1,
    dns: { servers: ["10.0.0.10"], searches: ["a"], options: ["ndots:5"] },
    clusterDomain: "cluster.local",
    podLogsDir: "/var/log/pods",
    cgroupParent: "/kubepods/besteffort/podu",
    policy: {
      cpuCfsQuota: true,
      cgroupVersion: 1,
      memorySwap: "NoSwap",
      swapAvailable: false,
      nodeMemory: 4_000_000_000,
      nodeSwap: 0,
      hugePageSizes: [],
    },
    ...more,
  });
}

Deno.test("the whole configuration of a plain pod", () => {
  assert.deepEqual(sandbox(), {
    metadata: { name: "p", namespace: "ns", uid: "u", attempt: 1 },
    hostname: "p",
    logDirectory: "/var/log/pods/ns_p_u",
    dnsConfig: { servers: ["10.0.0.10"], searches: ["a"], options: ["ndots:5"] },
    portMappings: [],
    labels: {
      app: "x",
      "io.kubernetes.pod.name": "p",
      "io.kubernetes.pod.namespace": "ns",
      "io.kubernetes.pod.uid": "u",
    },
    annotations: { note: "y" },
    linux: {
      cgroupParent: "/kubepods/besteffort/podu",
      sysctls: {},
      securityContext: { privileged: false, seccomp: { profileType: Type.RuntimeDefault } },
      resources: { cpuShares: 2n, cpuQuota: 0n, cpuPeriod: 100_000n },
      overhead: {},
    },
  });
});

Deno.test("the security context fills in namespaces, user and groups", () => {
  const userns = { mode: NamespaceMode.POD, uids: [{ hostId: 1, containerId: 0, length: 1 }], gids: [] };
  const { linux } = sandbox({
    hostIPC: true,
    containers: [{ name: "c" }],
    initContainers: [{ name: "i", securityContext: { privileged: true } }],
    securityContext: {
      runAsUser: 1,
      runAsGroup: 2,
      fsGroup: 3,
      supplementalGroups: [4],
      supplementalGroupsPolicy: "Strict",
      seLinuxOptions: { level: "s0" },
      seccompProfile: { type: "Unconfined" },
      sysctls: [{ name: "net/ipv4/conf/eth0.1/rp_filter", value: "1" }, { name: "kernel.shmmax", value: "2" }],
    },
  }, { extraGroups: [9], userns });
  assert.deepEqual(linux?.securityContext, {
    privileged: true,
    seccomp: { profileType: Type.RuntimeDefault },
    namespaceOptions: {
      ipc: NamespaceMode.NODE,
      network: NamespaceMode.POD,
      pid: NamespaceMode.CONTAINER,
      usernsOptions: userns,
    },
    runAsUser: { value: 1n },
    runAsGroup: { value: 2n },
    supplementalGroups: [3n, 9n, 4n],
    supplementalGroupsPolicy: SupplementalGroupsPolicy.Strict,
    selinuxOptions: { level: "s0" },
  });
  assert.deepEqual(linux?.sysctls, { "net.ipv4.conf.eth0/1.rp_filter": "1", "kernel.shmmax": "2" });
  const empty = sandbox({ securityContext: {} }).linux?.securityContext;
  assert.deepEqual(empty?.namespaceOptions, {
    ipc: NamespaceMode.POD,
    network: NamespaceMode.POD,
    pid: NamespaceMode.CONTAINER,
  });
});

Deno.test("host names", () => {
  assert.equal("hostname" in sandbox({ hostNetwork: true }), false);
  assert.equal(sandbox({ hostname: "h", subdomain: "s" }).hostname, "h");
  assert.equal(sandbox({ subdomain: "s", setHostnameAsFQDN: true }).hostname, "p.s.ns.svc.cluster.local");
  assert.throws(() => sandbox({ hostname: "x".repeat(64) }), { code: "BadPod" });
});

Deno.test("ports of regular containers, each once", () => {
  const got = sandbox({
    containers: [
      {
        name: "a",
        ports: [
          { containerPort: 80 },
          { containerPort: 80 },
          { containerPort: 80, protocol: "UDP", hostPort: 8080, hostIP: "::1" },
          { name: "dns", containerPort: 53, protocol: "SCTP" },
          { name: "dns", containerPort: 54 },
          { containerPort: 90, protocol: "ODD" },
        ],
      },
      { name: "b", ports: [{ containerPort: 80 }] },
    ],
    initContainers: [{ name: "i", ports: [{ containerPort: 1 }] }],
  }).portMappings;
  const none = { hostPort: 0, hostIp: "" };
  assert.deepEqual(got, [
    { ...none, protocol: Protocol.TCP, containerPort: 80 },
    { protocol: Protocol.UDP, containerPort: 80, hostPort: 8080, hostIp: "::1" },
    { ...none, protocol: Protocol.SCTP, containerPort: 53 },
    { ...none, protocol: Protocol.TCP, containerPort: 90 },
    { ...none, protocol: Protocol.TCP, containerPort: 80 },
  ]);
});

Deno.test("sysctl names are written with dots", () => {
  const cases: [string, string][] = [
    ["kernel/shm_rmid_forced", "kernel.shm_rmid_forced"],
    ["net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"],
    ["net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter"],
    ["plain", "plain"],
    ["", ""],
  ];
  for (const [name, want] of cases) assert.equal(sysctlName(name), want);
});

Deno.test("resources and overhead go apart, and the message is one that protobuf takes", () => {
  const config = sandbox({
    containers: [{ name: "c", resources: { requests: { cpu: "1" } } }],
    overhead: { cpu: "500m" },
  });
  const wire = fromBinary(
    PodSandboxConfigSchema,
    toBinary(PodSandboxConfigSchema, create(PodSandboxConfigSchema, config)),
  );
  assert.equal(wire.linux?.resources?.cpuShares, 1024n);
  assert.equal(wire.linux?.overhead?.cpuShares, 512n);
  assert.equal(wire.hostname, "p");
});
