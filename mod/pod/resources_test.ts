import assert from "@assert";
import type { BoundPod, Container, PodSpec } from "../kube/types.ts";
import {
  cpuQuota,
  cpuShares,
  cpuSharesOfWeight,
  cpuWeightOf,
  hugePageLimits,
  hugePageSizeName,
  milliOfQuota,
  milliOfShares,
  oomScoreAdj,
  podCgroupLimits,
  podLimits,
  podRequests,
  qosClass,
  qosShares,
} from "./resources.ts";

type List = Record<string, string>;

function c(name: string, requests: List = {}, limits: List = {}, more: Partial<Container> = {}): Container {
  return { name, image: "i", resources: { requests, limits }, ...more };
}

function pod(spec: Partial<PodSpec>, more: Partial<BoundPod> = {}): BoundPod {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { containers: [c("a")], ...spec },
    ...more,
  };
}

const both = { cpu: "1", memory: "1Gi" };
const sidecar = { restartPolicy: "Always" };

Deno.test("the QoS class follows CPU and memory of regular and init containers", () => {
  const cases: [string, Partial<PodSpec>, string][] = [
    ["nothing asked", {}, "BestEffort"],
    ["zero is nothing", { containers: [c("a", { cpu: "0" }, { memory: "0" })] }, "BestEffort"],
    ["other resources don't count", { containers: [c("a", { "ephemeral-storage": "1Gi" })] }, "BestEffort"],
    ["equal", { containers: [c("a", both, both)] }, "Guaranteed"],
    ["equal in other words", { containers: [c("a", { cpu: "1000m", memory: "1024Mi" }, both)] }, "Guaranteed"],
    ["no memory limit", { containers: [c("a", { cpu: "1" }, { cpu: "1" })] }, "Burstable"],
    ["request below limit", { containers: [c("a", { cpu: "500m", memory: "1Gi" }, both)] }, "Burstable"],
    ["limits without requests", { containers: [c("a", {}, both)] }, "Burstable"],
    ["one container asks for nothing", { containers: [c("a", both, both), c("b")] }, "Burstable"],
    [
      "an init container asks for nothing",
      { containers: [c("a", both, both)], initContainers: [c("i")] },
      "Burstable",
    ],
    [
      "a sidecar too",
      { containers: [c("a", both, both)], initContainers: [c("i", both, both, sidecar)] },
      "Guaranteed",
    ],
    ["pod level equal", { resources: { requests: both, limits: both } }, "Guaranteed"],
    [
      "pod level wins over containers",
      { resources: { requests: both }, containers: [c("a", both, both)] },
      "Burstable",
    ],
    ["pod level, one limit", { resources: { requests: { cpu: "1" }, limits: { cpu: "1" } } }, "Burstable"],
    ["pod level empty", { resources: {}, containers: [c("a", both, both)] }, "BestEffort"],
  ];
  for (const [what, spec, want] of cases) assert.equal(qosClass(pod(spec)), want, what);
  assert.equal(qosClass(pod({}, { status: { qosClass: "Guaranteed" } })), "Guaranteed", "the API's own word");
});

Deno.test("requests are the greater of what runs together and what initialises", () => {
  const cases: [string, Partial<PodSpec>, Record<string, bigint>][] = [
    ["sum, fractions kept until the end", {
      containers: [c("a", { cpu: "100u", memory: "0.5" }), c("b", { cpu: "100u", memory: "0.5" })],
    }, { cpu: 1n, memory: 1n }],
    ["init peak", {
      containers: [c("a", { cpu: "1", memory: "1Gi" })],
      initContainers: [c("i", { cpu: "3" }), c("j", { memory: "2Gi" })],
    }, { cpu: 3000n, memory: 2n << 30n }],
    ["sidecars add to containers", {
      containers: [c("a", { cpu: "1" })],
      initContainers: [c("s", { cpu: "2" }, {}, sidecar)],
    }, { cpu: 3000n }],
    ["an init container runs with the sidecars before it", {
      containers: [c("a", { cpu: "1" })],
      initContainers: [c("s", { cpu: "2" }, {}, sidecar), c("i", { cpu: "5" }), c("t", { cpu: "1" }, {}, sidecar)],
    }, { cpu: 7000n }],
    ["overhead", { containers: [c("a", { cpu: "1" })], overhead: { cpu: "250m", memory: "64Mi" } }, {
      cpu: 1250n,
      memory: 64n << 20n,
    }],
    ["pod level replaces, except what can't stand there", {
      containers: [c("a", { cpu: "1", memory: "1Gi" })],
      resources: { requests: { cpu: "4", "ephemeral-storage": "1Gi" } },
    }, { cpu: 4000n, memory: 1n << 30n }],
  ];
  for (const [what, spec, want] of cases) assert.deepEqual(podRequests(pod(spec)), want, what);
  assert.deepEqual(podRequests(pod({ overhead: { cpu: "1" } }), { overhead: false }), {});
});

Deno.test("overhead widens a limit but makes none", () => {
  const spec = { containers: [c("a", {}, { cpu: "1", memory: "0" })], overhead: { cpu: "1", memory: "1Gi", x: "1" } };
  assert.deepEqual(podLimits(pod(spec)), { cpu: 2000n, memory: 0n });
  assert.deepEqual(podLimits(pod({ ...spec, resources: { limits: { memory: "2Gi" } } })), {
    cpu: 2000n,
    memory: 3n << 30n,
  });
});

Deno.test("a bad quantity is refused by name; a hostile name is only a name", () => {
  assert.throws(() => podRequests(pod({ containers: [c("web", { cpu: "lots" })] })), {
    code: "BadPod",
    message: /pod ns\/p container web requests\.cpu.*"lots"/,
  });
  const nasty = { resources: { requests: { memory: { a: 1 } } } } as unknown as Partial<Container>;
  assert.throws(() => qosClass(pod({ containers: [c("web", {}, {}, nasty)] })), { code: "BadPod" });
  const proto = JSON.parse('{"__proto__":"5","constructor":"6"}');
  const got = podRequests(pod({ containers: [c("a", proto)] }));
  assert.deepEqual(Object.entries(got), [["__proto__", 5n], ["constructor", 6n]]);
  assert.equal(podRequests(pod({ containers: [c("a", { memory: "9000Ei" })] })).memory, (1n << 63n) - 1n);
});

Deno.test("CPU is converted as the kernel wants it, and back", () => {
  for (
    const [milli, want] of [[0, 2], [1, 2], [2, 2], [3, 3], [100, 102], [1000, 1024], [256_000, 262_144], [
      10 ** 9,
      262_144,
    ]]
  ) assert.equal(cpuShares(milli ?? 0), want, `${milli}m`);
  for (
    const [milli, period, want] of [[0, 100_000, 0], [1, 100_000, 1000], [10, 100_000, 1000], [20, 100_000, 2000], [
      1500,
      100_000,
      150_000,
    ], [1000, 5000, 5000]]
  ) assert.equal(cpuQuota(milli ?? 0, period), want, `${milli}m per ${period}`);
  for (const [shares, weight] of [[0, 0], [2, 1], [102, 4], [1024, 39], [262_144, 10_000], [1e9, 10_000]]) {
    assert.equal(cpuWeightOf(shares ?? 0), weight, `${shares} shares`);
  }
  for (const [weight, shares] of [[1, 2], [2, 28], [39, 998], [10_000, 262_144]]) {
    assert.equal(cpuSharesOfWeight(weight ?? 0), shares, `weight ${weight}`);
  }
  for (const [shares, milli] of [[0, 0], [1, 0], [2, 2], [102, 100], [1024, 1000]]) {
    assert.equal(milliOfShares(shares ?? 0), milli);
  }
  assert.equal(milliOfQuota(150_000, 100_000), 1500);
  assert.equal(milliOfQuota(-1, 100_000), 0);
  assert.equal(milliOfQuota(1000, 0), 0);
});

Deno.test("huge pages carry the kernel's size names", () => {
  assert.equal(hugePageSizeName(2n << 20n), "2MB");
  assert.equal(hugePageSizeName(1n << 30n), "1GB");
  assert.equal(hugePageSizeName(64n << 10n), "64KB");
  assert.equal(hugePageSizeName(0n), undefined);
  assert.equal(hugePageSizeName(1025n), undefined);
  assert.deepEqual(hugePageLimits({ "hugepages-2Mi": 4n, "hugepages-64Ki": 1n, cpu: 1n }, ["2MB", "1GB"]), {
    "2MB": 4n,
    "1GB": 0n,
  });
});

Deno.test("the pod's cgroup follows its class", () => {
  const on = { cpuCfsQuota: true };
  assert.deepEqual(podCgroupLimits(pod({}), { ...on, podPidsLimit: 100, hugePageSizes: ["2MB"] }), {
    cpuShares: 2,
    pidsLimit: 100,
    hugepages: { "2MB": 0n },
  });
  const guaranteed = pod({ containers: [c("a", both, both)] });
  assert.deepEqual(podCgroupLimits(guaranteed, { ...on, podPidsLimit: -1 }), {
    cpuShares: 1024,
    cpuQuota: 100_000,
    cpuPeriod: 100_000,
    memoryLimit: 1n << 30n,
    hugepages: {},
  });
  assert.equal(podCgroupLimits(guaranteed, { cpuCfsQuota: false }).cpuQuota, -1);
  const half = pod({ containers: [c("a", { cpu: "100m" }, { cpu: "1", memory: "1Gi" }), c("b", {}, { cpu: "1" })] });
  assert.deepEqual(podCgroupLimits(half, { ...on, cpuPeriodUs: 50_000 }), {
    cpuShares: 102,
    cpuQuota: 100_000,
    cpuPeriod: 50_000,
    hugepages: {},
  });
  const init = pod({ containers: [c("a", {}, both)], initContainers: [c("i")] });
  assert.equal(podCgroupLimits(init, on).cpuQuota, undefined, "an init container without a limit leaves it open");
  const level = pod({ containers: [c("a", { cpu: "1" })], resources: { limits: { memory: "2Gi" } } });
  assert.deepEqual(podCgroupLimits(level, on), { cpuShares: 1024, memoryLimit: 2n << 30n, hugepages: {} });
});

Deno.test("QoS groups share by the Burstable pods' requests", () => {
  const burst = pod({ containers: [c("a", { cpu: "500m" })] });
  assert.deepEqual(qosShares([burst, burst, pod({}), pod({ containers: [c("a", both, both)] })]), {
    burstable: 1024,
    besteffort: 2,
  });
  assert.deepEqual(qosShares([]), { burstable: 2, besteffort: 2 });
});

Deno.test("the OOM score adjustment follows class, request and role", () => {
  const node = 4_000_000_000;
  const of = (spec: Partial<PodSpec>, index = 0, more: Partial<BoundPod> = {}) => {
    const p = pod(spec, more);
    return oomScoreAdj(p, [...p.spec.containers, ...p.spec.initContainers ?? []][index] ?? c("none"), node);
  };
  assert.equal(of({}), 1000);
  assert.equal(of({ containers: [c("a", both, both)] }), -997);
  const critical = { priority: 2_000_001_000, priorityClassName: "system-node-critical" };
  assert.equal(of(critical), -997);
  assert.equal(of({ priority: 2_000_000_000, priorityClassName: "system-cluster-critical" }), 1000);
  assert.equal(of({ containers: [c("a", { memory: "1G" })] }), 750);
  assert.equal(of({ containers: [c("a", { cpu: "1" })] }), 999);
  assert.equal(of({ containers: [c("a", { memory: "1" })] }), 999, "1000 is for BestEffort");
  assert.equal(of({ containers: [c("a", { memory: "4G" })] }), 3);
  assert.equal(of({ containers: [c("a", { memory: "90G" })] }), 3);
  const served = {
    containers: [c("a", { memory: "2G" }), c("b", { memory: "1G" })],
    initContainers: [c("s", { memory: "100M" }, {}, sidecar), c("i", { memory: "100M" })],
  };
  assert.equal(of(served, 2), 750, "a sidecar is as safe as the least of what it serves");
  assert.equal(of(served, 3), 975);
  const level = { containers: [c("a", { memory: "1G" }), c("b")], resources: { requests: { memory: "3G" } } };
  assert.equal(of(level, 0), 500, "1G of its own and half of the 2G left");
  assert.equal(of(level, 1), 750);
  assert.throws(() => oomScoreAdj(pod({ containers: [c("a", { memory: "1G" })] }), c("a"), 0), { code: "Internal" });
});
