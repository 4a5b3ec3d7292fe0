import assert from "@assert";
import { parseQuantity as q } from "../../mod/kube/quantity.ts";
import { nodeAllocatable, nodeCapacity } from "./allocatable.ts";

const machine = { memory: 8 * 2 ** 30, cpus: 4, ephemeralStorage: 100 * 2 ** 30 };
const none = { systemReserved: {}, kubeReserved: {}, evictionHard: {}, maxPods: 110, podsPerCore: 0 };

Deno.test("capacity is what the machine has", () => {
  assert.deepEqual(nodeCapacity(machine, none), { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" });
  assert.equal(nodeCapacity(machine, { maxPods: 110, podsPerCore: 10 }).pods, "40");
  assert.equal(nodeCapacity(machine, { maxPods: 30, podsPerCore: 10 }).pods, "30");
});

Deno.test("allocatable is capacity less both reservations and the hard thresholds", () => {
  const got = nodeAllocatable(machine, {
    ...none,
    systemReserved: { cpu: q("500m"), memory: q("1Gi") },
    kubeReserved: { cpu: q("250m"), memory: q("512Mi"), "ephemeral-storage": q("1Gi") },
    evictionHard: {
      "memory.available": { quantity: q("512Mi") },
      "nodefs.available": { share: 0.1 },
      "pid.available": { share: 0.1 },
    },
  });
  assert.deepEqual(got, { cpu: "3250m", memory: "6Gi", "ephemeral-storage": String(89 * 2 ** 30 - 160), pods: "110" });
});

Deno.test("huge pages are resources of their own, and taken from memory", () => {
  const hugePages = [{ size: 2 * 2 ** 20, total: 2 ** 30 }, { size: 2 ** 30, total: 2 ** 30 }];
  const capacity = nodeCapacity({ ...machine, hugePages }, none);
  assert.deepEqual([capacity["hugepages-2Mi"], capacity["hugepages-1Gi"], capacity.memory], ["1Gi", "1Gi", "8Gi"]);
  const got = nodeAllocatable({ ...machine, hugePages }, { ...none, systemReserved: { "hugepages-2Mi": q("256Mi") } });
  assert.deepEqual([got["hugepages-2Mi"], got["hugepages-1Gi"], got.memory], ["768Mi", "1Gi", "6Gi"]);
});

Deno.test("what is reserved beyond the capacity leaves nothing, not less", () => {
  const got = nodeAllocatable(machine, { ...none, systemReserved: { cpu: q("9"), memory: q("9Gi") } });
  assert.deepEqual([got.cpu, got.memory], ["0", "0"]);
});

Deno.test("a share of the disk leaves what the reference leaves, to the byte", () => {
  const got = nodeAllocatable({ ...machine, ephemeralStorage: 264212084 * 1024 }, {
    ...none,
    evictionHard: { "nodefs.available": { share: 0.1 } },
  });
  assert.equal(got["ephemeral-storage"], "243497856212");
});
