import { addQuantities, compareQuantities, type Quantity, quantityOf, value } from "../../mod/kube/quantity.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { psiSignals, signalFacts } from "./signals.ts";
import type { Amount, DiskLayout, Observation, Observations, Signal, Threshold } from "./types.ts";

/** Where the thresholds of the file system of containers are copied from. */
const copied = [
  ["containerfs.available", { nodefs: "nodefs.available", imagefs: "imagefs.available" }],
  ["containerfs.inodesFree", { nodefs: "nodefs.inodesFree", imagefs: "imagefs.inodesFree" }],
] as const satisfies readonly (readonly [Signal, Readonly<Record<string, Signal>>])[];

/**
 * The thresholds that are watched: those configured, the hard one for memory once more for the pods' memory where that
 * is limited, and those of the file system that containers write to, which are never the configuration's but copies of
 * the node's or, where images have a disk of their own with the writable layers on it, of the images'. Memory comes
 * first, then the order is the configuration's.
 */
export function withCopies(
  configured: readonly Threshold[],
  { allocatableEnforced, layout }: { allocatableEnforced: boolean; layout: DiskLayout },
): Threshold[] {
  const own = configured.filter(({ signal }) => !signal.startsWith("containerfs."));
  const all = [...own];
  if (allocatableEnforced) {
    const hard = own.filter(({ signal, gracePeriodMs }) => signal === "memory.available" && gracePeriodMs === 0);
    all.push(...hard.map((threshold): Threshold => ({ ...threshold, signal: "allocatableMemory.available" })));
  }
  for (const [signal, from] of copied) {
    const source = from[layout === "imagefs" ? "imagefs" : "nodefs"];
    all.push(...own.filter((each) => each.signal === source).map((each): Threshold => ({ ...each, signal })));
  }
  return memoryFirst(all);
}

/** Shortage of memory is dealt with before any other; else the order is kept. */
export function memoryFirst(thresholds: readonly Threshold[]): Threshold[] {
  const isMemory = ({ signal }: Threshold) => signalFacts[signal].resource === "memory";
  return [...thresholds.filter(isMemory), ...thresholds.filter((each) => !isMemory(each))];
}

/** An amount in the signal's unit. A share is taken as the reference takes it: in single precision, cut to a whole. */
export function amountOf(amount: Amount, capacity: Quantity): Quantity {
  if ("quantity" in amount) return amount.quantity;
  return quantityOf(Math.trunc(value(capacity) * Math.fround(amount.share)), "BinarySI");
}

/** True when less is available than the threshold asks for. @param withReclaim the minimum reclaim is asked for too */
export function isMet(threshold: Threshold, { available, capacity }: Observation, withReclaim: boolean): boolean {
  let wanted = amountOf(threshold.value, capacity);
  if (withReclaim && threshold.minReclaim) wanted = addQuantities(wanted, amountOf(threshold.minReclaim, capacity));
  return compareQuantities(wanted, available) > 0;
}

/** The thresholds that are met now. One whose signal could not be read is not. */
export function metNow(
  thresholds: readonly Threshold[],
  observations: Observations,
  { withReclaim }: { withReclaim: boolean },
): Threshold[] {
  return thresholds.filter((threshold) => {
    const observed = observations.get(threshold.signal);
    return observed !== undefined && isMet(threshold, observed, withReclaim);
  });
}

/**
 * Reads limits on time lost for want of memory, such as `{"memory.full.avg10": "20"}`: percent, more than 0 and at most
 * 100, a `%` may follow. Throws BadConfig that names the key and what is allowed.
 */
export function psiThresholds(limits: Readonly<Record<string, string>>): Threshold[] {
  return Object.entries(limits).map(([name, text]): Threshold => {
    const psi = psiSignals.find(({ signal }) => signal === name);
    const shown = JSON.stringify(name.slice(0, 80));
    if (!psi) {
      const known = psiSignals.map(({ signal }) => signal).join(", ");
      throw new KubeletError("BadConfig", `the pressure ${shown} is not known; use ${known}`);
    }
    const percent = /^\d{1,3}(\.\d{1,4})?%?$/.test(text) ? Number(text.replace("%", "")) : NaN;
    if (!(percent > 0 && percent <= 100)) {
      const given = JSON.stringify(text.slice(0, 80));
      throw new KubeletError("BadConfig", `the pressure ${shown} is ${given}; it must be more than 0 and at most 100`);
    }
    return { signal: psi.signal, value: { quantity: percentOf(100 - percent) }, gracePeriodMs: 0 };
  });
}

/** A percentage as a quantity; as fine as the kernel tells it. */
export function percentOf(percent: number): Quantity {
  return { nano: BigInt(Math.round(percent * 10_000)) * 100_000n, format: "DecimalSI" };
}
