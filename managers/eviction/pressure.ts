import { signalFacts } from "./signals.ts";
import { metNow } from "./thresholds.ts";
import { type Observations, type PressureCondition, pressureConditions, type Threshold } from "./types.ts";

/** What one look leaves for the next. Times are milliseconds since the epoch. */
export interface PressureState {
  /** Since when each threshold has been met. */
  readonly since: ReadonlyMap<Threshold, number>;
  /** When each condition was last seen. */
  readonly seen: ReadonlyMap<PressureCondition, number>;
  /** Thresholds that were met for as long as they ask. */
  readonly met: readonly Threshold[];
  readonly observations: Observations;
}

export const noPressure: PressureState = { since: new Map(), seen: new Map(), met: [], observations: new Map() };

export interface PressureInput {
  readonly thresholds: readonly Threshold[];
  readonly observations: Observations;
  readonly now: number;
  /** How long a condition stays after it was last seen, milliseconds. */
  readonly transitionMs: number;
}

export interface PressureResult {
  readonly state: PressureState;
  /** Conditions that hold, in the node's order. */
  readonly conditions: readonly PressureCondition[];
  /** Thresholds to act upon, those of memory first: met long enough, by a reading that is not the last one. */
  readonly due: readonly Threshold[];
}

/**
 * One look at the node (runtime-contract.md section 20): which thresholds are met, or were and are not yet exceeded by
 * their minimum reclaim; for how long; and which conditions hold, also for a while after they were last seen.
 */
export function lookAt(before: PressureState, input: PressureInput): PressureResult {
  const { thresholds, observations, now, transitionMs } = input;
  const met = new Set(metNow(thresholds, observations, { withReclaim: false }));
  for (const threshold of metNow(before.met, observations, { withReclaim: true })) met.add(threshold);
  const inOrder = thresholds.filter((threshold) => met.has(threshold));

  // What seems to come from the future was noted before the clock was set back.
  const since = new Map(inOrder.map((threshold) => [threshold, Math.min(now, before.since.get(threshold) ?? now)]));
  const seen = new Map([...before.seen].map(([condition, at]) => [condition, Math.min(now, at)]));
  for (const { signal } of inOrder) seen.set(signalFacts[signal].condition, now);
  // Without a time to stay a condition holds as long as its threshold is met.
  const shown = new Set(inOrder.map(({ signal }) => signalFacts[signal].condition));
  const conditions = pressureConditions.filter((condition) => {
    const at = seen.get(condition);
    return shown.has(condition) || (at !== undefined && now - at < transitionMs);
  });

  const long = inOrder.filter((threshold) => now - (since.get(threshold) ?? now) >= threshold.gracePeriodMs);
  const due = long.filter(({ signal }) => {
    const at = observations.get(signal)?.at;
    return at !== undefined && (at === 0 || at !== before.observations.get(signal)?.at);
  });
  return { state: { since, seen, met: long, observations }, conditions, due };
}

/** True when every threshold has as much as it asks for, its minimum reclaim included. */
export function isRelieved(thresholds: readonly Threshold[], observations: Observations): boolean {
  return metNow(thresholds, observations, { withReclaim: true }).length === 0;
}
