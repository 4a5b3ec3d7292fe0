/**
 * What a probe found out. A prober that could not find out anything (a bad port name, a runtime that failed) throws
 * instead; such a try is repeated and then discarded (runtime-contract.md section 18).
 */
export interface ProbeOutcome {
  readonly result: "success" | "warning" | "failure";
  /** For people: the reason of a failure or warning. */
  readonly output: string;
}

/** Puts whole seconds the way the kubelet's texts show durations: 1s, 1m30s. */
export function secondsText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${h > 0 ? `${h}h` : ""}${h > 0 || m > 0 ? `${m}m` : ""}${s}s`;
}
