import type { Probe } from "../../mod/kube/types.ts";

/** A probe's settings with their defaults (runtime-contract.md section 18), times in milliseconds. */
export interface ProbeSettings {
  readonly initialDelayMs: number;
  readonly timeoutMs: number;
  readonly periodMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** A whole number of at least 1, else the default; what is no number at all is not trusted. */
function atLeastOne(value: number | undefined, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 1 ? Math.floor(value) : otherwise;
}

/** The settings of a probe: period 10 s, timeout 1 s, thresholds 1 and 3, no initial delay. */
export function probeSettings(probe: Probe): ProbeSettings {
  return {
    initialDelayMs: atLeastOne(probe.initialDelaySeconds, 0) * 1000,
    timeoutMs: atLeastOne(probe.timeoutSeconds, 1) * 1000,
    periodMs: atLeastOne(probe.periodSeconds, 10) * 1000,
    successThreshold: atLeastOne(probe.successThreshold, 1),
    failureThreshold: atLeastOne(probe.failureThreshold, 3),
  };
}
