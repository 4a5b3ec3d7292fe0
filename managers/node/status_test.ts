import assert from "@assert";
import type { Node } from "../../mod/kube/types.ts";
import { joinTroubles, nextConditions } from "./conditions.ts";
import { nodeChanged, statusChanged } from "./compare.ts";
import { statusImages } from "./images.ts";
import { machineIds, osName } from "./machine_ids.ts";
import { nodePatch } from "./patch.ts";
import { initialNode, reconciled } from "./registration.ts";
import { nextNode, schedulableEvent } from "./status.ts";
import { testProfile as profile, testSituation as situation } from "./testing.ts";
import type { NodeProfile, NodeSituation } from "./types.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";

const t0 = Date.UTC(2026, 10, 30, 12, 0, 0, 500);
const at = (seconds: number) => new Date(t0 - 500 + seconds * 1000).toISOString().replace(".000Z", "Z");
const next = (before: Node, s: Partial<NodeSituation> = {}, p: Partial<NodeProfile> = {}, seconds = 60) =>
  nextNode(before, { ...profile, ...p }, { ...situation, ...s }, t0 + seconds * 1000);
const fresh = (s: Partial<NodeSituation> = {}, p: Partial<NodeProfile> = {}): Node =>
  initialNode({ ...profile, ...p }, { ...situation, ...s }, t0).node;
const condition = (node: Node, type: string) => node.status?.conditions?.find((c) => c.type === type);

Deno.test("a new node: labels, annotation, facts, conditions in the contract's order and words", () => {
  const { node, events } = initialNode(profile, situation, t0);
  assert.deepEqual(node.metadata, {
    name: "n1",
    labels: {
      "kubernetes.io/hostname": "n1",
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": "amd64",
      "beta.kubernetes.io/os": "linux",
      "beta.kubernetes.io/arch": "amd64",
    },
    annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
  });
  assert.deepEqual(node.spec, {});
  const time = { lastHeartbeatTime: at(0), lastTransitionTime: at(0) };
  assert.deepEqual(node.status?.conditions, [
    {
      type: "MemoryPressure",
      status: "False",
      reason: "KubeletHasSufficientMemory",
      message: "kubelet has sufficient memory available",
      ...time,
    },
    {
      type: "DiskPressure",
      status: "False",
      reason: "KubeletHasNoDiskPressure",
      message: "kubelet has no disk pressure",
      ...time,
    },
    {
      type: "PIDPressure",
      status: "False",
      reason: "KubeletHasSufficientPID",
      message: "kubelet has sufficient PID available",
      ...time,
    },
    {
      type: "Ready",
      status: "True",
      reason: "KubeletReady",
      message: "kubelet is posting ready status",
      ...time,
    },
  ]);
  assert.equal(node.status?.nodeInfo?.containerRuntimeVersion, "containerd://2.1.4");
  assert.equal(node.status?.nodeInfo?.kubeProxyVersion, "");
  assert.deepEqual(node.status?.daemonEndpoints, { kubeletEndpoint: { Port: 10250 } });
  assert.deepEqual(events.map(({ type, reason, message }) => [type, reason, message]), [
    ["Normal", "NodeHasSufficientMemory", "Node n1 status is now: NodeHasSufficientMemory"],
    ["Normal", "NodeHasNoDiskPressure", "Node n1 status is now: NodeHasNoDiskPressure"],
    ["Normal", "NodeHasSufficientPID", "Node n1 status is now: NodeHasSufficientPID"],
  ]);
});

Deno.test("a new node: given labels win, taints, provider, external cloud", () => {
  const node = fresh({}, {
    labels: { "kubernetes.io/hostname": "other", zone: "a" },
    taints: [{ key: "k", value: "v", effect: "NoExecute" }],
    providerID: "cloud://1",
    controllerAttachDetach: false,
    externalCloud: true,
    nodeIPs: ["10.1.0.5", "2001:db8::5"],
  });
  assert.equal(node.metadata?.labels?.["kubernetes.io/hostname"], "other");
  assert.equal(node.metadata?.labels?.zone, "a");
  assert.deepEqual(node.metadata?.annotations, { "alpha.kubernetes.io/provided-node-ip": "10.1.0.5,2001:db8::5" });
  assert.deepEqual(node.spec, {
    taints: [
      { key: "k", value: "v", effect: "NoExecute" },
      { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" },
    ],
    providerID: "cloud://1",
  });
});

Deno.test("Ready: the troubles in their order, each once, alone or in brackets; the time moves with the status", () => {
  const before = fresh();
  const down = next(before, { troubles: ["container runtime is down", "container runtime is down"] });
  assert.deepEqual(condition(down.node, "Ready"), {
    type: "Ready",
    status: "False",
    reason: "KubeletNotReady",
    message: "container runtime is down",
    lastHeartbeatTime: at(60),
    lastTransitionTime: at(60),
  });
  assert.deepEqual(down.events.map(({ reason }) => reason), ["NodeNotReady"]);
  const more = next(down.node, { troubles: ["a", "b"] }, {}, 120);
  assert.equal(condition(more.node, "Ready")?.message, "[a, b]");
  assert.equal(condition(more.node, "Ready")?.lastTransitionTime, at(60));
  assert.equal(condition(more.node, "Ready")?.lastHeartbeatTime, at(120));
  assert.deepEqual(more.events, []);
  const up = next(more.node, { warning: "weak" }, {}, 180);
  assert.equal(condition(up.node, "Ready")?.message, "kubelet is posting ready status. WARNING: weak");
  assert.deepEqual(up.events.map(({ message }) => message), ["Node n1 status is now: NodeReady"]);
});

Deno.test("Ready: capacity that is missing is told", () => {
  const { cpu: _cpu, pods: _pods, ...capacity } = profile.capacity;
  const node = next(fresh(), {}, { capacity }).node;
  assert.equal(condition(node, "Ready")?.message, "missing node capacity for resources: cpu, pods");
});

Deno.test("pressure comes and goes with its words and events; strange conditions stay where they are", () => {
  const network = { type: "NetworkUnavailable", status: "False", lastHeartbeatTime: at(-9), reason: "RouteCreated" };
  const start = nextConditions("n1", [network], { pressure: new Set(), troubles: [], now: t0 }).conditions;
  const pressed = nextConditions("n1", start, {
    pressure: new Set(["DiskPressure", "MemoryPressure", "PIDPressure"]),
    troubles: [],
    now: t0 + 10_000,
  });
  assert.deepEqual(pressed.conditions.map(({ type, status, reason }) => [type, status, reason]), [
    ["NetworkUnavailable", "False", "RouteCreated"],
    ["MemoryPressure", "True", "KubeletHasInsufficientMemory"],
    ["DiskPressure", "True", "KubeletHasDiskPressure"],
    ["PIDPressure", "True", "KubeletHasInsufficientPID"],
    ["Ready", "True", "KubeletReady"],
  ]);
  assert.deepEqual(pressed.conditions[0], network);
  assert.deepEqual(pressed.events.map(({ reason }) => reason), [
    "NodeHasInsufficientMemory",
    "NodeHasDiskPressure",
    "NodeHasInsufficientPID",
  ]);
  const relieved = nextConditions("n1", pressed.conditions, { pressure: new Set(), troubles: [], now: t0 + 20_000 });
  assert.deepEqual(relieved.conditions.slice(1, 4).map((c) => [c.status, c.lastTransitionTime]), [
    ["False", at(20)],
    ["False", at(20)],
    ["False", at(20)],
  ]);
  assert.equal(joinTroubles([]), undefined);
});

Deno.test("resources: others' stay, devices come and go, extended ones that are gone leave allocatable", () => {
  const before = fresh();
  const status = {
    ...before.status,
    capacity: { ...before.status?.capacity, "example.com/own": "5", cpu: "2" },
    allocatable: { ...before.status?.allocatable, "example.com/gone": "3", "attachable-volumes-x": "9" },
  };
  const devices = {
    capacity: { "example.com/gpu": "2" },
    allocatable: { "example.com/gpu": "1" },
    removed: ["example.com/nic"],
  };
  const { node } = next({ ...before, status }, { devices });
  assert.deepEqual(node.status?.capacity, {
    ...profile.capacity,
    "example.com/own": "5",
    "example.com/gpu": "2",
    "example.com/nic": "0",
  });
  assert.deepEqual(node.status?.allocatable, {
    ...profile.allocatable,
    "attachable-volumes-x": "9",
    "example.com/own": "5",
    "example.com/gpu": "1",
    "example.com/nic": "0",
  });
});

Deno.test("a reboot is told with the new boot's id; the same boot is not", () => {
  const rebooted = next(fresh(), {}, { info: { ...profile.info, bootID: "c" } });
  assert.deepEqual(rebooted.events, [
    { type: "Warning", reason: "Rebooted", message: "Node n1 has been rebooted, boot id: c" },
  ]);
  assert.equal(rebooted.node.status?.nodeInfo?.bootID, "c");
  assert.deepEqual(next(fresh()).events, []);
});

Deno.test("what is not known keeps what the object has", () => {
  const before = fresh({ images: [{ names: ["a"], sizeBytes: 1 }], volumesInUse: ["v"] });
  const { node } = next(before, { images: undefined, runtimeVersion: undefined, addresses: undefined });
  for (const key of ["images", "addresses", "nodeInfo", "volumesInUse"] as const) {
    assert.deepEqual(node.status?.[key], before.status?.[key], key);
  }
});

Deno.test("external cloud: its addresses are its own; the annotation goes with the flag", () => {
  const before = fresh({}, { externalCloud: true, nodeIPs: ["10.1.0.5"] });
  const set: Node = {
    ...before,
    status: { ...before.status, addresses: [{ type: "ExternalIP", address: "203.0.113.1" }] },
  };
  const { node } = next(set, {}, { externalCloud: true, nodeIPs: ["10.1.0.5"] });
  assert.deepEqual(node.status?.addresses, [{ type: "ExternalIP", address: "203.0.113.1" }]);
  assert.equal(node.metadata?.annotations?.["alpha.kubernetes.io/provided-node-ip"], "10.1.0.5");
  const plain = next(set).node;
  assert.deepEqual(plain.status?.addresses, situation.addresses);
  assert(!("alpha.kubernetes.io/provided-node-ip" in (plain.metadata?.annotations ?? {})));
});

Deno.test("os and arch labels are put right at each status", () => {
  const before = fresh();
  const wrong: Node = {
    ...before,
    metadata: { ...before.metadata, labels: { "kubernetes.io/os": "plan9", mine: "1" } },
  };
  const { node } = next(wrong);
  assert.deepEqual(node.metadata?.labels, { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", mine: "1" });
  assert(nodeChanged(wrong, node));
});

Deno.test("features and handlers as the runtime tells them", () => {
  const handlers = [{ name: "", features: { recursiveReadOnlyMounts: true, userNamespaces: false } }];
  const { node } = next(fresh(), { handlers, supplementalGroupsPolicy: true }, { declaredFeatures: ["A", "B"] });
  assert.deepEqual(node.status?.runtimeHandlers, handlers);
  assert.deepEqual(node.status?.features, { supplementalGroupsPolicy: true });
  assert.deepEqual(node.status?.declaredFeatures, ["A", "B"]);
});

Deno.test("unchanged but for heartbeats; quantities by value; empty is nothing", () => {
  const before = fresh();
  assert(!nodeChanged(before, next(before).node));
  const memory = { ...before, status: { ...before.status, capacity: { ...profile.capacity, memory: "8388608Ki" } } };
  assert(!nodeChanged(memory, next(memory).node));
  assert(!statusChanged({ images: [], features: {} }, {}));
  assert(statusChanged({ capacity: { a: "0" } }, { capacity: {} }));
  assert(nodeChanged(before, next(before, { images: [{ names: ["a"] }] }).node));
  assert(nodeChanged(before, next(before, { pressure: new Set(["PIDPressure"]) }).node));
});

Deno.test("a patch has only what differs", () => {
  const before = fresh();
  const { node } = next(before);
  const beats = node.status?.conditions?.map(({ type }) => ({ type, lastHeartbeatTime: at(60) }));
  assert.deepEqual(nodePatch(before, node), {
    status: {
      "$setElementOrder/conditions": beats?.map(({ type }) => ({ type })),
      conditions: beats,
    },
  });
  assert.equal(nodePatch(before, before), undefined);
});

Deno.test("a patch: maps by key, lists whole, addresses replaced, nothing of the spec", () => {
  const before = fresh();
  const after: Node = {
    ...before,
    metadata: { ...before.metadata, labels: { a: "1" }, annotations: before.metadata?.annotations ?? {} },
    spec: { unschedulable: true },
    status: {
      ...before.status,
      capacity: { cpu: "8", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" },
      addresses: [{ type: "InternalIP", address: "10.9.9.9" }],
      images: [{ names: ["x"], sizeBytes: 2 }],
    },
  };
  assert.deepEqual(nodePatch(before, after), {
    metadata: {
      labels: {
        a: "1",
        "kubernetes.io/hostname": null,
        "kubernetes.io/os": null,
        "kubernetes.io/arch": null,
        "beta.kubernetes.io/os": null,
        "beta.kubernetes.io/arch": null,
      },
    },
    status: {
      capacity: { cpu: "8" },
      addresses: [{ type: "InternalIP", address: "10.9.9.9" }, { $patch: "replace" }],
      images: [{ names: ["x"], sizeBytes: 2 }],
    },
  });
  const bare: Node = { metadata: { name: "n1" } };
  assert.deepEqual(nodePatch(bare, { ...bare, status: { addresses: [{ type: "Hostname", address: "n1" }] } }), {
    status: { addresses: [{ type: "Hostname", address: "n1" }] },
  });
});

Deno.test("an existing node is reconciled: labels, annotation, huge pages; taints and the rest stay", () => {
  const own = {
    capacity: { ...profile.capacity, "hugepages-2Mi": "1Gi" },
    allocatable: { ...profile.allocatable, "hugepages-2Mi": "512Mi" },
  };
  const initial = fresh({}, { ...own, labels: { "topology.kubernetes.io/zone": "a", mine: "new" } });
  const existing: Node = {
    metadata: {
      name: "n1",
      labels: { "topology.kubernetes.io/zone": "b", mine: "old", "kubernetes.io/hostname": "x", theirs: "1" },
      annotations: { theirs: "1" },
    },
    spec: { taints: [{ key: "t", effect: "NoSchedule" }] },
    status: {
      capacity: { cpu: "1", "hugepages-1Gi": "4Gi", "hugepages-2Mi": "2Gi", "example.com/gpu": "3" },
      allocatable: { cpu: "1", "hugepages-1Gi": "4Gi", "hugepages-2Mi": "512Mi", "example.com/gpu": "2" },
    },
  };
  const got = reconciled(existing, initial, { ...profile, ...own });
  assert.deepEqual(got.metadata?.labels, {
    "topology.kubernetes.io/zone": "a",
    mine: "old",
    "kubernetes.io/hostname": "n1",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
    theirs: "1",
  });
  assert.deepEqual(got.metadata?.annotations, {
    theirs: "1",
    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
  });
  assert.deepEqual(got.spec, existing.spec);
  assert.deepEqual(got.status?.capacity, { cpu: "1", "hugepages-2Mi": "1Gi", "example.com/gpu": "3" });
  assert.deepEqual(got.status?.allocatable, { cpu: "1", "hugepages-2Mi": "512Mi", "example.com/gpu": "2" });
  const reset = reconciled(existing, initial, { ...profile, ...own, resetExtendedResources: true });
  assert.equal(reset.status?.capacity?.["example.com/gpu"], "0");
  assert.equal(reset.status?.allocatable?.["example.com/gpu"], "0");
  assert.equal(nodePatch(got, reconciled(got, initial, { ...profile, ...own })), undefined);
});

Deno.test("attach and detach by the node itself takes the annotation away", () => {
  const initial = fresh({}, { controllerAttachDetach: false });
  const got = reconciled(fresh(), initial, profile);
  assert.deepEqual(got.metadata?.annotations, {});
  assert.deepEqual(nodePatch(fresh(), got)?.metadata, {
    annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": null },
  });
});

Deno.test("cordoning and its end are told", () => {
  assert.equal(schedulableEvent("n1", false, false), undefined);
  assert.equal(schedulableEvent("n1", false, true)?.message, "Node n1 status is now: NodeNotSchedulable");
  assert.equal(schedulableEvent("n1", true, false)?.reason, "NodeSchedulable");
});

Deno.test("images: the largest first, digests before tags, five names, no more than configured", () => {
  const image = (id: string, size: bigint, tags: string[] = [], digests: string[] = []) => ({
    id,
    size,
    repoTags: tags,
    repoDigests: digests,
  });
  const list = [
    image("a", 1n, ["a:1"], ["a@1"]),
    image("b", 3n, ["1", "2", "3", "4", "5"], ["d"]),
    image("c", 3n, ["c:1"]),
  ];
  assert.deepEqual(statusImages(list, -1), [
    { names: ["c:1"], sizeBytes: 3 },
    { names: ["d", "1", "2", "3", "4"], sizeBytes: 3 },
    { names: ["a@1", "a:1"], sizeBytes: 1 },
  ]);
  assert.equal(statusImages(list, 2).length, 2);
  assert.deepEqual(statusImages(list, 0), []);
});

Deno.test("what identifies the machine", async () => {
  const host = new FakeHost({ procRoot: "/proc" });
  await host.mkdir("/etc");
  await host.mkdir("/proc/sys/kernel/random");
  await host.write("/etc/machine-id", "abc\n");
  await host.write("/proc/sys/kernel/random/boot_id", "boot\n");
  await host.write("/etc/os-release", `NAME="Test"\nPRETTY_NAME="Test GNU/Linux 12"\n`);
  const expected = { machineID: "abc", systemUUID: "abc", bootID: "boot", osImage: "Test GNU/Linux 12" };
  assert.deepEqual(await machineIds(host), expected);
  await host.mkdir("/sys/class/dmi/id");
  await host.write("/sys/class/dmi/id/product_uuid", "uuid\n");
  assert.equal((await machineIds(host)).systemUUID, "uuid");
  assert.equal(osName("ID=x\n"), "Linux");
});
