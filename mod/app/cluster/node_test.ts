import assert from "@assert";
import { resources } from "../../kube/api/resources.ts";
import { ApiError } from "../../kube/api/types.ts";
import { nodeWorld } from "./node_testing.ts";

Deno.test("a node joins: object, status, lease, events; what the agent takes of it follows the object", async () => {
  await using w = await nodeWorld(["--node-labels=mine=1", "--register-with-taints=k=v:NoSchedule"]);
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
    containerRuntimeVersion: `containerd://${(await w.runtime.version()).runtimeVersion.replace(/^v/, "")}`,
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
  assert.deepEqual([...new Set(w.startup)], ["attempted", "created", "ready"]);
});

Deno.test("the node's readiness and pressure are the agent's", async () => {
  await using w = await nodeWorld();
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
  await using w = await nodeWorld();
  w.start();
  await w.clock.advance(2000);
  w.others.troubles.push("node is shutting down");
  w.others.volumes = ["kubernetes.io/csi/d^v"];
  await w.clock.advance(1000);
  assert.equal(w.node()?.status?.conditions?.at(-1)?.message, "node is shutting down");
  assert.deepEqual(w.node()?.status?.volumesInUse, ["kubernetes.io/csi/d^v"]);
});

Deno.test("--register-node=false: nothing is created; an object that others make is kept", async () => {
  await using w = await nodeWorld(["--register-node=false"]);
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
  await using w = await nodeWorld();
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
  await using w = await nodeWorld();
  w.start();
  await w.clock.advance(2000);
  w.api.merge(resources.nodes, { name: "n1" }, { spec: { podCIDR: "10.9.0.0/24", podCIDRs: ["10.9.0.0/24"] } });
  await w.clock.advance(2000);
  assert.deepEqual(
    w.runtime.calls.filter(({ call }) => call === "UpdateRuntimeConfig").map(({ target }) => target),
    ["10.9.0.0/24"],
  );
});

const minute = 60_000;

/** An hour of a node whose API server, agent and administrators do what they like; then five quiet minutes. */
async function hardHour(seed: number) {
  await using w = await nodeWorld([], seed);
  const pick = <T>(...choices: T[]): T => choices[Math.floor(w.random() * choices.length)] as T;
  const act = pick<() => unknown>;
  w.start();
  for (const end = w.clock.now() + 60 * minute; w.clock.now() < end;) {
    await w.clock.advance(w.random() * 2 * minute);
    const error = new ApiError(
      "trouble",
      pick(
        { status: 500, reason: "InternalError" },
        { status: 429, reason: "TooManyRequests", retryAfterMs: 1000 },
        { status: 409, reason: "Conflict" },
        { status: 403, reason: "Forbidden" },
      ),
    );
    act(
      () => w.api.reach = pick("up", "refused", "silent"),
      () => w.api.faults.add({ kind: "status", error }, { verb: pick("patch", "get", "update", "create") }, 7),
      () => w.api.faults.add({ kind: "lost" }, { verb: pick("patch", "update", "create") }, 2),
      () => w.api.faults.add({ kind: "slow", ms: 3000 }, {}, 5),
      () => w.api.cutWatches(pick("end", "break")),
      () => w.api.compact(),
      () => w.agent.readiness = { ...w.agent.readiness, troubles: pick([], ["container runtime is down"]) },
      () => w.agent.pressure.splice(0, 3, ...pick([], ["DiskPressure"], ["MemoryPressure", "PIDPressure"])),
      () => w.node() && w.api.merge(resources.nodes, { name: "n1" }, { spec: { unschedulable: pick(true, false) } }),
      () => w.node() && w.api.merge(resources.nodes, { name: "n1" }, { metadata: { annotations: { theirs: "1" } } }),
      () => w.lease() && w.api.remove(resources.leases, { namespace: "kube-node-lease", name: "n1" }),
    )();
  }
  w.api.reach = "up";
  w.api.faults.clear();
  const before = w.api.calls.length;
  await w.clock.advance(5 * minute);
  const age = w.clock.now() - Date.parse(w.lease()?.spec?.renewTime ?? "");
  assert(age <= 11_000, `the lease was renewed ${age} ms ago`);
  const conditions = w.node()?.status?.conditions ?? [];
  assert.deepEqual(
    conditions.filter(({ status }) => status === "True").map(({ type }) => type).sort(),
    [
      ...w.agent.pressure,
      ...(w.agent.readiness.troubles.length === 0 ? ["Ready"] : []),
    ].sort(),
  );
  assert.equal(conditions.length, 4);
  for (const { lastTransitionTime = "", lastHeartbeatTime = "" } of conditions) {
    assert(lastTransitionTime <= lastHeartbeatTime && w.clock.now() - Date.parse(lastHeartbeatTime) <= 9 * minute);
  }
  const quiet = w.api.calls.slice(before + 60).filter(({ resource, verb }) => resource === "nodes" && verb !== "watch");
  assert(quiet.length <= 4, `${quiet.length} requests about a node of which nothing changed`);
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
  Deno.test(`a hard hour with an API server in trouble, seed ${seed}: afterwards all is true, and quiet`, () =>
    hardHour(seed));
}
