import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import { RuntimeFeaturesSchema, RuntimeHandlerSchema } from "../../../cri/gen/runtime_pb.ts";
import { FakeRuntime } from "../../../cri/fake/runtime.ts";
import { FakeClock } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger, silent } from "../../base/log.ts";
import { seeded } from "../../base/random.ts";
import { Scope } from "../../base/scope.ts";
import { FakeApi } from "../../kube/api/fake/fake_api.ts";
import { resources } from "../../kube/api/resources.ts";
import type { AgentReadiness } from "../agent_readiness.ts";
import type { ServedAgent } from "../agent_types.ts";
import { loadConfig } from "../config/load.ts";
import type { NodeFacts } from "../node_facts.ts";
import { clusterEvents } from "./events.ts";
import { clusterNode } from "./node.ts";
import type { ClusterContext } from "./types.ts";

const facts: NodeFacts = {
  name: "n1",
  ips: ["10.0.0.9"],
  memory: 8 * 2 ** 30,
  swap: 2 ** 30,
  cpus: 4,
  capacity: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" },
  allocatable: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" },
  hugePageSizes: [],
  arch: "amd64",
  kernelVersion: "6.1.0",
  appArmor: false,
  swapController: false,
};

async function world(argv: string[] = []) {
  const clock = new FakeClock();
  const random = seeded(1);
  const api = new FakeApi({ clock });
  for (const name of ["default", "kube-node-lease"]) api.create(resources.namespaces, { metadata: { name } });
  const host = new FakeHost();
  for (const [path, text] of [["/etc/machine-id", "m\n"], ["/proc/sys/kernel/random/boot_id", "b\n"]] as const) {
    await host.mkdir(path.replace(/\/[^/]*$/, ""));
    await host.write(path, text);
  }
  const { config, flags } = await loadConfig({
    argv: ["--kubeconfig=/k", "--hostname-override=n1", ...argv],
    host,
    log: silent,
  });
  const scope = new Scope("test");
  const log = new RecordingLogger();
  const runtime = new FakeRuntime({ clock, random });
  const client = (name: string) => api.client(name, { node: "n1", timeoutMs: 10_000 });
  const clients = { main: client("main"), heartbeat: client("heartbeat"), events: client("events") };
  const context: ClusterContext = {
    clients,
    config,
    flags,
    facts,
    nodeName: "n1",
    host,
    clock,
    random,
    log,
    events: clusterEvents({
      client: clients.events,
      nodeName: "n1",
      log: { pod: () => {}, node: () => {} },
      logger: log,
      clock,
      random,
      scope,
    }),
    runtime,
    images: runtime,
    runtimeName: "containerd",
    runtimeVersion: "v2.1.4",
    scope,
  };
  const part = clusterNode(context, {
    interfaces: () => [{ name: "eth0", address: "10.0.0.5" }],
    lookup: () => Promise.resolve(["10.0.0.5"]),
  });
  const readiness: AgentReadiness = {
    troubles: [],
    handlers: [create(RuntimeHandlerSchema, { name: "" })],
    features: create(RuntimeFeaturesSchema, { supplementalGroupsPolicy: true }),
  };
  const agent = { readiness, pressure: [] as string[] };
  const others: { troubles: string[]; volumes: string[] | undefined } = { troubles: [], volumes: undefined };
  return {
    clock,
    api,
    part,
    agent,
    runtime,
    others,
    start: () =>
      part.start?.(agent as unknown as ServedAgent, {
        nodeTroubles: () => others.troubles,
        volumesInUse: () => others.volumes,
      }),
    node: () => api.get(resources.nodes, { name: "n1" }),
    lease: () => api.get(resources.leases, { namespace: "kube-node-lease", name: "n1" }),
    reasons: () => api.list(resources.events).map(({ reason }) => reason),
    [Symbol.asyncDispose]: () => scope.close(),
  };
}

Deno.test("a node joins: object, status, lease, events; what the agent takes of it follows the object", async () => {
  await using w = await world(["--node-labels=mine=1", "--register-with-taints=k=v:NoSchedule"]);
  assert.deepEqual([w.part.node?.(), w.part.nodeRead?.(), w.part.hostIPs?.()], [undefined, false, ["10.0.0.9"]]);
  w.start();
  await w.clock.advance(2000);
  const node = w.node();
  assert.equal(node?.metadata?.labels?.mine, "1");
  assert.deepEqual(node?.spec?.taints, [{ key: "k", value: "v", effect: "NoSchedule" }]);
  assert.deepEqual(node?.status?.nodeInfo, {
    machineID: "m",
    systemUUID: "m",
    bootID: "b",
    kernelVersion: "6.1.0",
    osImage: "Linux",
    containerRuntimeVersion: "containerd://" + (await w.runtime.version()).runtimeVersion,
    kubeletVersion: "v1.36.3",
    kubeProxyVersion: "",
    operatingSystem: "linux",
    architecture: "amd64",
    swap: { capacity: 2 ** 30 },
  });
  assert.deepEqual(node?.status?.addresses, [
    { type: "InternalIP", address: "10.0.0.5" },
    { type: "Hostname", address: "n1" },
  ]);
  assert.deepEqual(node?.status?.features, { supplementalGroupsPolicy: true });
  assert.equal(node?.status?.runtimeHandlers?.length, 1);
  assert.equal(w.lease()?.metadata?.ownerReferences?.[0]?.uid, node?.metadata?.uid);
  assert.deepEqual(w.reasons().sort(), [
    "NodeHasNoDiskPressure",
    "NodeHasSufficientMemory",
    "NodeHasSufficientPID",
    "Starting",
  ]);
  assert.equal(w.part.node?.()?.metadata?.uid, node?.metadata?.uid);
  assert.deepEqual(w.part.hostIPs?.(), ["10.0.0.5"]);
  assert.equal(w.part.nodeRead?.(), true);
});

Deno.test("the node's readiness and pressure are the agent's", async () => {
  await using w = await world();
  w.start();
  await w.clock.advance(2000);
  w.agent.pressure.push("MemoryPressure");
  w.agent.readiness = { ...w.agent.readiness, troubles: ["PLEG is not healthy: pleg has yet to be successful"] };
  await w.clock.advance(1000);
  const conditions = w.node()?.status?.conditions?.map(({ type, status }) => [type, status]);
  assert.deepEqual(conditions, [
    ["MemoryPressure", "True"],
    ["DiskPressure", "False"],
    ["PIDPressure", "False"],
    ["Ready", "False"],
  ]);
});

Deno.test("what other parts know of the node is in its status: storage, shutdown, volumes in use", async () => {
  await using w = await world();
  w.start();
  await w.clock.advance(2000);
  w.others.troubles.push("node is shutting down");
  w.others.volumes = ["kubernetes.io/csi/d^v"];
  await w.clock.advance(1000);
  assert.equal(w.node()?.status?.conditions?.at(-1)?.message, "node is shutting down");
  assert.deepEqual(w.node()?.status?.volumesInUse, ["kubernetes.io/csi/d^v"]);
});

Deno.test("--register-node=false: nothing is created; an object that others make is kept", async () => {
  await using w = await world(["--register-node=false"]);
  w.start();
  await w.clock.advance(60_000);
  assert.equal(w.node(), undefined);
  assert.equal(w.lease(), undefined);
  w.api.create(resources.nodes, { metadata: { name: "n1" } });
  await w.clock.advance(12_000);
  assert.equal(w.node()?.status?.conditions?.at(-1)?.type, "Ready");
  assert.equal(w.node()?.metadata?.labels?.["kubernetes.io/hostname"], undefined);
  assert(w.lease());
});

Deno.test("an API server that is away at the start, and again later: the node comes and stays", async () => {
  await using w = await world();
  w.api.reach = "refused";
  w.start();
  await w.clock.advance(30_000);
  w.api.reach = "up";
  await w.clock.advance(20_000);
  assert.equal(w.node()?.status?.conditions?.at(-1)?.status, "True");
  w.api.reach = "silent";
  await w.clock.advance(60_000);
  w.api.reach = "up";
  await w.clock.advance(30_000);
  const age = w.clock.now() - Date.parse(w.lease()?.spec?.renewTime ?? "");
  assert(age <= 12_000, `the lease was renewed ${age} ms ago`);
});

Deno.test("the node's pod range reaches the runtime", async () => {
  await using w = await world();
  w.start();
  await w.clock.advance(2000);
  w.api.merge(resources.nodes, { name: "n1" }, { spec: { podCIDR: "10.9.0.0/24", podCIDRs: ["10.9.0.0/24"] } });
  await w.clock.advance(2000);
  assert.deepEqual(
    w.runtime.calls.filter(({ call }) => call === "UpdateRuntimeConfig").map(({ target }) => target),
    ["10.9.0.0/24"],
  );
});
