import { isIpAddress } from "../flag_value.ts";
import { getPath } from "../json.ts";
import { listOr } from "../nearest.ts";
import type { Context } from "./context.ts";

const MAX_INT32 = 2 ** 31 - 1;
const any = Number.POSITIVE_INFINITY;

/** Numbers and the range each must be in. */
const ranges: Readonly<Record<string, readonly [min: number, max: number]>> = {
  port: [1, 65535],
  readOnlyPort: [0, 65535],
  healthzPort: [0, 65535],
  registryPullQPS: [0, any],
  registryBurst: [0, any],
  maxParallelImagePulls: [1, any],
  eventRecordQPS: [0, any],
  eventBurst: [0, any],
  kubeAPIQPS: [0, any],
  kubeAPIBurst: [0, any],
  oomScoreAdj: [-1000, 1000],
  nodeLeaseDurationSeconds: [1, any],
  imageGCHighThresholdPercent: [0, 100],
  imageGCLowThresholdPercent: [0, 100],
  maxPods: [0, any],
  podsPerCore: [0, any],
  nodeStatusMaxImages: [-1, any],
  maxOpenFiles: [0, any],
  iptablesMasqueradeBit: [0, 31],
  iptablesDropBit: [0, 31],
  containerLogMaxFiles: [2, any],
  containerLogMaxWorkers: [1, any],
  "logging.verbosity": [0, MAX_INT32],
  "tracing.samplingRatePerMillion": [0, 1_000_000],
};

/** Words and what each may be. */
const words: Readonly<Record<string, readonly string[]>> = {
  "authorization.mode": ["AlwaysAllow", "Webhook"],
  tlsMinVersion: ["", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"],
  cgroupDriver: ["cgroupfs", "systemd"],
  cpuManagerPolicy: ["none", "static"],
  memoryManagerPolicy: ["None", "Static"],
  topologyManagerPolicy: ["none", "best-effort", "restricted", "single-numa-node"],
  topologyManagerScope: ["container", "pod"],
  hairpinMode: ["promiscuous-bridge", "hairpin-veth", "none"],
  configMapAndSecretChangeDetectionStrategy: ["Get", "Cache", "Watch"],
  "memorySwap.swapBehavior": ["", "NoSwap", "LimitedSwap"],
  memoryReservationPolicy: ["None", "TieredReservation"],
  "logging.format": ["text", "json"],
  showHiddenMetricsForVersion: ["", "1.35"],
};

function rangeText(min: number, max: number): string {
  if (max === any) return min === -1 ? "-1 or more" : `${min} or more`;
  return `from ${min} to ${max}`;
}

/** Checks each field by itself: ranges, words, addresses. */
export function checkPlain(context: Context): void {
  for (const [path, [min, max]] of Object.entries(ranges)) {
    const value = getPath(context.written, path);
    if (typeof value === "number" && !(value >= min && value <= max)) {
      context.refuse(path, `must be ${rangeText(min, max)}`);
    }
  }
  for (const [path, allowed] of Object.entries(words)) {
    const value = getPath(context.written, path) ?? "";
    if (typeof value !== "string" || allowed.includes(value)) continue;
    const named = allowed.filter((word) => word !== "");
    context.refuse(path, `must be ${listOr(named)}${allowed.includes("") ? ", or be left out" : ""}`);
  }
  for (const path of ["address", "healthzBindAddress"] as const) {
    if (!isIpAddress(context.config[path])) context.refuse(path, "must be an IP address");
  }
  for (const server of context.config.clusterDNS) {
    if (!isIpAddress(server)) {
      context.warnings.push(`clusterDNS (--cluster-dns): ${JSON.stringify(server)} is no IP address; it is skipped`);
    }
  }
}
