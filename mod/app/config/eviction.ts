import { formatDuration, parseDuration } from "../../base/duration.ts";
import { KubeletError, messageOf } from "../../base/errors.ts";
import { parseQuantity, type Quantity } from "../../kube/quantity.ts";
import { didYouMean } from "./nearest.ts";

/** What eviction watches (contract config.md section 2). */
export const evictionSignals = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "allocatableMemory.available",
  "pid.available",
] as const;
export type EvictionSignal = (typeof evictionSignals)[number];

/** An amount: fixed, or a share (0 to 1) of the whole. */
export type EvictionAmount = { readonly quantity: Quantity } | { readonly share: number };

/** A threshold: evict when what is available is less. */
export interface EvictionThreshold {
  readonly signal: EvictionSignal;
  readonly value: EvictionAmount;
  /** 0 for hard thresholds. */
  readonly gracePeriodMs: number;
  readonly minReclaim?: EvictionAmount;
}

/** The four maps of the configuration. */
export interface EvictionSettings {
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
}

function isSignal(name: string): name is EvictionSignal {
  return (evictionSignals as readonly string[]).includes(name);
}

function amount(text: string): EvictionAmount {
  if (!text.endsWith("%")) return { quantity: parseQuantity(text) };
  const share = /^\+?(\d+(\.\d*)?|\.\d+)%$/.test(text) ? Number(text.slice(0, -1)) / 100 : NaN;
  if (!(share >= 0 && share <= 1)) {
    throw new KubeletError("BadConfig", `${JSON.stringify(text)} must be from 0% to 100%`);
  }
  return { share };
}

function isPositive(value: EvictionAmount): boolean {
  return "share" in value ? value.share > 0 : value.quantity.nano > 0n;
}

/** Reads the maps; `report` gets each problem with the field it is in. Hard thresholds come first. */
export function readThresholds(
  settings: EvictionSettings,
  report: (field: string, problem: string) => void,
): EvictionThreshold[] {
  const read = <T>(field: keyof EvictionSettings, parse: (text: string) => T | undefined): Map<EvictionSignal, T> => {
    const found = new Map<EvictionSignal, T>();
    for (const [signal, text] of Object.entries(settings[field])) {
      if (!isSignal(signal)) {
        report(
          field,
          `has the unknown signal ${JSON.stringify(signal.slice(0, 80))}${didYouMean(signal, evictionSignals)}; use ${
            evictionSignals.join(", ")
          }`,
        );
        continue;
      }
      try {
        const value = parse(text);
        if (value !== undefined) found.set(signal, value);
      } catch (thrown) {
        report(field, `${signal}: ${messageOf(thrown)}`);
      }
    }
    return found;
  };
  const threshold = (text: string): EvictionAmount | undefined => {
    if (text === "0%" || text === "100%") return undefined; // switches the threshold off
    const value = amount(text);
    if (!isPositive(value)) throw new KubeletError("BadConfig", `${JSON.stringify(text)} must be more than 0`);
    return value;
  };
  const hard = read("evictionHard", threshold);
  const soft = read("evictionSoft", threshold);
  const grace = read("evictionSoftGracePeriod", (text) => {
    const period = parseDuration(text);
    if (period < 0) throw new KubeletError("BadConfig", `${formatDuration(period)} must not be negative`);
    return period;
  });
  const reclaim = read("evictionMinimumReclaim", (text) => {
    const value = amount(text);
    if ("share" in value ? value.share <= 0 : value.quantity.nano < 0n) {
      throw new KubeletError(
        "BadConfig",
        `${JSON.stringify(text)} must be ${"share" in value ? "more than 0%" : "0 or more"}`,
      );
    }
    return value;
  });
  const build = (signal: EvictionSignal, value: EvictionAmount, gracePeriodMs: number): EvictionThreshold => {
    const minReclaim = reclaim.get(signal);
    return { signal, value, gracePeriodMs, ...(minReclaim === undefined ? {} : { minReclaim }) };
  };
  const thresholds = [...hard].map(([signal, value]) => build(signal, value, 0));
  for (const [signal, value] of soft) {
    const period = grace.get(signal);
    if (period === undefined && !Object.hasOwn(settings.evictionSoftGracePeriod, signal)) {
      report(
        "evictionSoft",
        `${signal} needs a grace period; set evictionSoftGracePeriod (--eviction-soft-grace-period) for it`,
      );
    }
    thresholds.push(build(signal, value, period ?? 0));
  }
  return thresholds;
}
