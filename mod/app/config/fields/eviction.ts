import type { FieldSpec } from "../field_spec.ts";

/** Eviction (contract config.md section 2). */
export const evictionFields: readonly FieldSpec[] = [
  {
    path: "evictionHard",
    type: "map",
    flag: { name: "eviction-hard", kind: "thresholds", deprecated: true },
    rule: "signal and a quantity above 0 or a percentage",
    about:
      "Thresholds that evict at once. With a file that does not set it: memory.available 100Mi, nodefs.available 10%, nodefs.inodesFree 5%, imagefs.available 15%, imagefs.inodesFree 5%.",
  },
  {
    path: "evictionSoft",
    type: "map",
    flag: { name: "eviction-soft", kind: "thresholds", deprecated: true },
    rule: "signal and a quantity above 0 or a percentage; each needs evictionSoftGracePeriod",
    about: "Thresholds that evict after a grace period.",
  },
  {
    path: "evictionSoftGracePeriod",
    type: "map",
    flag: { name: "eviction-soft-grace-period", kind: "map", deprecated: true },
    rule: "signal and a duration of 0 or more",
    about: "Grace periods of evictionSoft.",
  },
  {
    path: "evictionPressureTransitionPeriod",
    type: "duration",
    initial: "5m0s",
    flag: { name: "eviction-pressure-transition-period", kind: "duration", deprecated: true },
    about: "How long a pressure condition stays after the pressure has gone.",
  },
  {
    path: "evictionMaxPodGracePeriod",
    type: "int32",
    flag: { name: "eviction-max-pod-grace-period", kind: "int32", deprecated: true },
    about: "Longest termination grace of softly evicted pods, seconds.",
  },
  {
    path: "evictionMinimumReclaim",
    type: "map",
    flag: { name: "eviction-minimum-reclaim", kind: "map", deprecated: true },
    rule: "signal and a quantity of 0 or more or a percentage above 0",
    about: "How much an eviction must free.",
  },
  {
    path: "mergeDefaultEvictionSettings",
    type: "bool",
    pointer: true,
    initial: false,
    about: "Add the default hard thresholds that evictionHard does not set.",
  },
];
