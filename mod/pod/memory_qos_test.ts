import assert from "@assert";
import type { BoundPod, ResourceRequirements } from "../kube/types.ts";
import { containerMemoryQos, type MemoryQosPolicy, nodeMemoryReserve, podMemoryReserve } from "./memory_qos.ts";

const pod = (resources?: ResourceRequirements): BoundPod => ({
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: { containers: [{ name: "c", ...(resources ? { resources } : {}) }] },
});
const guaranteed = pod({ requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } });
const burstable = pod({ requests: { memory: "128Mi" }, limits: { memory: "256Mi" } });
const bestEffort = pod();
const tiered: MemoryQosPolicy = { throttlingFactor: 0.9, tiered: true, allocatable: 8n << 30n };
const none: MemoryQosPolicy = { ...tiered, tiered: false };
const mi = (n: number) => BigInt(n) << 20n;

Deno.test("a container's protection by its pod's class, and the point from which it is slowed down", () => {
  const zero = { "memory.min": "0", "memory.low": "0" };
  // floor(128Mi + (256Mi - 128Mi) * 0.9, to whole pages)
  const high = { "memory.high": String(Math.floor((134217728 + 134217728 * 0.9) / 4096) * 4096) };
  const rows: [string, BoundPod, bigint, bigint, MemoryQosPolicy, Record<string, string>][] = [
    ["Guaranteed", guaranteed, mi(1024), mi(1024), tiered, { "memory.min": String(mi(1024)) }],
    ["Burstable", burstable, mi(128), mi(256), tiered, { "memory.low": String(mi(128)), ...high }],
    ["no reservation", burstable, mi(128), mi(256), none, { ...zero, ...high }],
    ["Guaranteed without reservation", guaranteed, mi(1024), mi(1024), none, zero],
    ["BestEffort", bestEffort, 0n, 0n, tiered, zero],
    ["no request", burstable, 0n, 4096n * 10n, tiered, { ...zero, "memory.high": String(4096 * 9) }],
    ["less than a page", burstable, 0n, 4096n, tiered, zero],
    ["no limit: the node's allocatable", burstable, mi(128), 0n, { ...tiered, allocatable: mi(256) }, {
      "memory.low": String(mi(128)),
      ...high,
    }],
    ["no limit, and nothing known of the node", burstable, mi(128), 0n, { ...tiered, allocatable: 0n }, {
      "memory.low": String(mi(128)),
    }],
    ["more requested than the node has", burstable, mi(512), 0n, { ...tiered, allocatable: mi(256) }, {
      "memory.low": String(mi(512)),
    }],
  ];
  for (const [what, of, request, limit, policy, expected] of rows) {
    assert.deepEqual(containerMemoryQos(of, { request, limit }, policy), expected, what);
  }
});

Deno.test("what pods' groups and those above them keep", () => {
  assert.deepEqual(podMemoryReserve(guaranteed, tiered), { min: mi(1024) });
  assert.deepEqual(podMemoryReserve(burstable, tiered), { low: mi(128) });
  assert.deepEqual(podMemoryReserve(bestEffort, tiered), {});
  assert.deepEqual(podMemoryReserve(guaranteed, none), {});
  assert.deepEqual(nodeMemoryReserve([guaranteed, burstable, burstable, bestEffort], tiered), {
    kubepods: { min: mi(1280) },
    burstable: { low: mi(256) },
    guaranteedBytes: mi(1024),
  });
  const off = { kubepods: { min: 0n }, burstable: { low: 0n }, guaranteedBytes: 0n };
  assert.deepEqual(nodeMemoryReserve([guaranteed, burstable], none), off, "what was kept before is given back");
});
