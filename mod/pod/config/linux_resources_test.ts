import assert from "@assert";
import type { BoundPod, Container, PodSpec } from "../../kube/types.ts";
import { containerResources, type ResourcePolicy, sandboxResources } from "./linux_resources.ts";

const v2: ResourcePolicy = {
  cpuCfsQuota: true,
  cgroupVersion: 2,
  memorySwap: "NoSwap",
  swapAvailable: false,
  nodeMemory: 4_000_000_000,
  nodeSwap: 1_000_000_000,
  hugePageSizes: ["2MB", "1GB"],
};
const v1: ResourcePolicy = { ...v2, cgroupVersion: 1 };
const pages = [{ pageSize: "2MB", limit: 0n }, { pageSize: "1GB", limit: 0n }];
const oomGroup = { unified: { "memory.oom.group": "1" } };

function of(
  policy: ResourcePolicy,
  resources: Container["resources"],
  spec: Partial<PodSpec> = {},
  exclusiveCpus = false,
) {
  const container: Container = { name: "c", ...(resources === undefined ? {} : { resources }) };
  const pod: BoundPod = {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { containers: [container, { name: "other" }], ...spec },
  };
  return containerResources({ pod, container, policy, exclusiveCpus });
}

Deno.test("CPU, memory and huge pages of a container", () => {
  assert.deepEqual(of(v2, undefined), {
    cpuShares: 2n,
    cpuQuota: 0n,
    cpuPeriod: 100_000n,
    oomScoreAdj: 1000n,
    hugepageLimits: pages,
    ...oomGroup,
  });
  const set = {
    requests: { cpu: "250m", memory: "1G" },
    limits: { cpu: "500m", memory: "2G", "hugepages-2Mi": "4Mi" },
  };
  assert.deepEqual(of({ ...v1, cpuPeriodUs: 10_000 }, set), {
    cpuShares: 256n,
    cpuQuota: 5000n,
    cpuPeriod: 10_000n,
    memoryLimitInBytes: 2_000_000_000n,
    oomScoreAdj: 750n,
    hugepageLimits: [{ pageSize: "2MB", limit: 4n << 20n }, { pageSize: "1GB", limit: 0n }],
  });
  const limitOnly = of(v2, { limits: { cpu: "500m" } });
  assert.equal(limitOnly.cpuShares, 512n, "the limit stands in for the request");
  assert.equal(of(v2, { requests: { cpu: "0" }, limits: { cpu: "500m" } }).cpuShares, 2n, "a request of 0 is one");
});

Deno.test("quota can be off, or lifted for owned CPUs", () => {
  const off = of({ ...v2, cpuCfsQuota: false }, { limits: { cpu: "1" } });
  assert.deepEqual([off.cpuQuota, off.cpuPeriod], [undefined, undefined]);
  const owned = of(v2, { limits: { cpu: "1" } }, {}, true);
  assert.deepEqual([owned.cpuQuota, owned.cpuPeriod], [-1n, 100_000n]);
});

Deno.test("the pod's limits stand in for the container's", () => {
  const level = { resources: { limits: { cpu: "2", memory: "1G", "hugepages-2Mi": "2Mi" } } };
  const bare = of(v2, {}, level);
  assert.deepEqual([bare.cpuQuota, bare.memoryLimitInBytes, bare.cpuShares], [200_000n, 1_000_000_000n, 2048n]);
  assert.deepEqual(bare.hugepageLimits?.[0], { pageSize: "2MB", limit: 2n << 20n });
  const own = of(v2, { limits: { cpu: "1", memory: "5M", "hugepages-2Mi": "4Mi" } }, level);
  assert.deepEqual([own.cpuQuota, own.memoryLimitInBytes], [100_000n, 5_000_000n]);
  assert.deepEqual(own.hugepageLimits?.[0], { pageSize: "2MB", limit: 4n << 20n });
});

Deno.test("groups die together on v2 unless told otherwise", () => {
  assert.equal(of({ ...v2, singleProcessOOMKill: true }, {}).unified, undefined);
  assert.equal(of({ ...v1, singleProcessOOMKill: false }, {}).unified, undefined);
});

Deno.test("swap", () => {
  const swap = { ...v2, swapAvailable: true };
  const limited: ResourcePolicy = { ...swap, memorySwap: "LimitedSwap" };
  const burst = { requests: { memory: "1G" }, limits: { memory: "2G" } };
  const cases: [string, ResourcePolicy, Container["resources"], Partial<PodSpec>, string | undefined][] = [
    ["no controller", { ...limited, swapAvailable: false }, burst, {}, undefined],
    ["NoSwap", swap, burst, {}, "0"],
    ["share of the node", limited, burst, {}, "250000000"],
    ["rounded down", { ...limited, nodeMemory: 3_000_000_000 }, burst, {}, "333333333"],
    ["critical", limited, burst, { priority: 2_000_000_000 }, "0"],
    ["no request", limited, { limits: { memory: "1G" } }, {}, "0"],
    ["request = limit", limited, { requests: { memory: "1G" }, limits: { memory: "1G" } }, {}, "0"],
    ["BestEffort", limited, {}, {}, "0"],
    ["more than the node", limited, { requests: { memory: "5G" } }, {}, "0"],
  ];
  for (const [what, policy, resources, spec, want] of cases) {
    assert.equal(of(policy, resources, spec).unified?.["memory.swap.max"], want, what);
  }
  assert.equal(of(swap, burst).unified?.["memory.oom.group"], "1", "both settings stand together");
  const old = of({ ...v1, swapAvailable: true }, burst);
  assert.deepEqual([old.memorySwapLimitInBytes, old.unified], [2_000_000_000n, undefined]);
});

Deno.test("a sandbox knows the pod's sum and its overhead apart", () => {
  const pod: BoundPod = {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: {
      containers: [{ name: "a", resources: { requests: { cpu: "1" }, limits: { cpu: "2", memory: "1G" } } }],
      overhead: { cpu: "250m", memory: "10M" },
    },
  };
  assert.deepEqual(sandboxResources({ pod, policy: v1 }), {
    resources: { cpuShares: 1024n, cpuQuota: 200_000n, cpuPeriod: 100_000n, memoryLimitInBytes: 1_000_000_000n },
    overhead: { cpuShares: 256n, cpuQuota: 25_000n, cpuPeriod: 100_000n, memoryLimitInBytes: 10_000_000n },
  });
  delete pod.spec.overhead;
  assert.deepEqual(sandboxResources({ pod, policy: v2, exclusiveCpus: true }), {
    resources: {
      cpuShares: 1024n,
      cpuQuota: -1n,
      cpuPeriod: 100_000n,
      memoryLimitInBytes: 1_000_000_000n,
      ...oomGroup,
    },
    overhead: {},
  });
});

Deno.test("MemoryQoS: a container's request is kept, beside what else stands in its group's files; v1 has none of it", () => {
  const memoryQos = { throttlingFactor: 0.5, tiered: true, allocatable: 1n << 32n };
  const set = { requests: { memory: "64Mi" }, limits: { memory: "128Mi" } };
  assert.deepEqual(of({ ...v2, memoryQos, swapAvailable: true }, set).unified, {
    ...oomGroup.unified,
    "memory.low": String(64 << 20),
    "memory.high": String(96 << 20),
    "memory.swap.max": "0",
  });
  assert.equal(of({ ...v1, memoryQos }, set).unified, undefined);
  assert.deepEqual(of(v2, set).unified, oomGroup.unified);
});
