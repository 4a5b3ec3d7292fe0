import assert from "@assert";
import { formatQuantity, parseQuantity, quantityOf } from "../../mod/kube/quantity.ts";
import { Gi, hard, Mi } from "./testing.ts";
import { amountOf, isMet, psiThresholds, withCopies } from "./thresholds.ts";
import type { DiskLayout, Threshold } from "./types.ts";

const told = (thresholds: readonly Threshold[]) =>
  thresholds.map(({ signal, value, gracePeriodMs }) =>
    `${signal}<${"share" in value ? `${value.share * 100}%` : formatQuantity(value.quantity)}` +
    (gracePeriodMs > 0 ? ` for ${gracePeriodMs}` : "")
  );

Deno.test("thresholds: containerfs is a copy of the node's or the images', never the configuration's; memory comes first", () => {
  const configured = [
    hard("nodefs.available", "10%"),
    hard("imagefs.available", "15%"),
    hard("imagefs.inodesFree", "5%"),
    hard("containerfs.available", "77%"),
    hard("containerfs.inodesFree", "77%"),
    hard("pid.available", "100"),
    hard("memory.available", "100Mi"),
    hard("nodefs.available", "20%", { grace: 60_000 }),
  ];
  const copies: Readonly<Record<DiskLayout, readonly string[]>> = {
    single: ["containerfs.available<10%", "containerfs.available<20% for 60000"],
    split: ["containerfs.available<10%", "containerfs.available<20% for 60000"],
    imagefs: ["containerfs.available<15%", "containerfs.inodesFree<5%"],
  };
  for (const layout of ["single", "imagefs", "split"] as const) {
    assert.deepEqual(told(withCopies(configured, { layout, allocatableEnforced: false })), [
      "memory.available<100Mi",
      "nodefs.available<10%",
      "imagefs.available<15%",
      "imagefs.inodesFree<5%",
      "pid.available<100",
      "nodefs.available<20% for 60000",
      ...copies[layout],
    ], layout);
  }
});

Deno.test("thresholds: the hard one for memory holds for the pods' memory too where pods are enforced, the soft one does not", () => {
  const configured = [
    hard("memory.available", "100Mi", { reclaim: "50Mi" }),
    hard("memory.available", "1Gi", { grace: 1000 }),
  ];
  const found = withCopies(configured, { layout: "single", allocatableEnforced: true });
  assert.deepEqual(told(found), [
    "memory.available<100Mi",
    "memory.available<1Gi for 1000",
    "allocatableMemory.available<100Mi",
  ]);
  assert.ok(found[2]?.minReclaim);
  assert.equal(withCopies(configured, { layout: "single", allocatableEnforced: false }).length, 2);
});

Deno.test("a share is taken in single precision and cut, as the reference prints it", () => {
  // 10 % of 100 GiB in single precision is a little more than 10 GiB.
  assert.equal(formatQuantity(amountOf({ share: 0.1 }, quantityOf(100 * Gi))), "10737418400");
  assert.equal(formatQuantity(amountOf({ share: 0.25 }, quantityOf(100 * Gi))), "25Gi");
  assert.equal(formatQuantity(amountOf({ share: 0.5 }, quantityOf(4096))), "2Ki");
  assert.equal(formatQuantity(amountOf({ quantity: parseQuantity("1024Mi") }, quantityOf(1))), "1Gi");
});

Deno.test("a threshold is met below it, not at it; minimum reclaim is asked for on top", () => {
  const of = (available: number) => ({ available: quantityOf(available), capacity: quantityOf(Gi), at: 1 });
  const threshold = hard("memory.available", "100Mi", { reclaim: "50Mi" });
  for (
    const [available, met, short] of [
      [100 * Mi - 1, true, true],
      [100 * Mi, false, true],
      [150 * Mi - 1, false, true],
      [150 * Mi, false, false],
    ] as const
  ) {
    assert.equal(isMet(threshold, of(available), false), met, `${available}`);
    assert.equal(isMet(threshold, of(available), true), short, `${available} with reclaim`);
  }
  assert.equal(isMet(hard("memory.available", "10%", { reclaim: "10%" }), of(0.15 * Gi), true), true);
  assert.equal(isMet(hard("memory.available", "10%", { reclaim: "10%" }), of(0.15 * Gi), false), false);
});

Deno.test("limits on lost time: percent of one of the kernel's averages, told plainly when bad", () => {
  const [some, full] = psiThresholds({ "memory.some.avg60": "40%", "memory.full.avg10": "12.5" });
  assert.equal(some?.signal, "memory.some.avg60");
  assert.ok(some && "quantity" in some.value && formatQuantity(some.value.quantity) === "60");
  assert.ok(full && "quantity" in full.value && formatQuantity(full.value.quantity) === "87500m");
  for (
    const [limits, message] of [
      [{ "memory.most.avg10": "5" }, /"memory\.most\.avg10" is not known; use memory\.some\.avg10, /],
      [{ __proto__x: "5" }, /"__proto__x" is not known/],
      [{ "memory.full.avg10": "0" }, /is "0"; it must be more than 0 and at most 100/],
      [{ "memory.full.avg10": "101" }, /at most 100/],
      [{ "memory.full.avg10": "NaN" }, /at most 100/],
      [{ "memory.full.avg10": "-3" }, /at most 100/],
      [{ "memory.full.avg10": "" }, /is ""/],
    ] as const
  ) assert.throws(() => psiThresholds(limits), message);
  assert.deepEqual(psiThresholds({}), []);
});
