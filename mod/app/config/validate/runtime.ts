import { listOr } from "../nearest.ts";
import type { Context } from "./context.ts";

const policies = ["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"];

/** The runtime, images and container logs. */
export function checkRuntime(context: Context): void {
  const { config, gates } = context;
  if (config.containerRuntimeEndpoint === "") {
    context.refuse(
      "containerRuntimeEndpoint",
      "must not be empty; write for example unix:///run/containerd/containerd.sock",
    );
  }
  if (config.serializeImagePulls && (config.maxParallelImagePulls ?? 1) > 1) {
    context.refuse("maxParallelImagePulls", "needs serializeImagePulls: false (--serialize-image-pulls=false)");
  }
  const { imageMinimumGCAgeMs: minimum, imageMaximumGCAgeMs: maximum } = config;
  if (minimum < 0) context.refuse("imageMinimumGCAge", "must not be negative");
  if (maximum < 0) context.refuse("imageMaximumGCAge", "must not be negative");
  if (maximum > 0 && maximum <= minimum) {
    context.refuse("imageMaximumGCAge", "must be more than imageMinimumGCAge, or 0 to turn it off");
  }
  if (config.imageGCLowThresholdPercent >= config.imageGCHighThresholdPercent) {
    context.refuse(
      "imageGCLowThresholdPercent",
      `must be less than imageGCHighThresholdPercent (--image-gc-high-threshold), ${config.imageGCHighThresholdPercent}`,
    );
  }
  if (config.containerLogMonitorIntervalMs < 3000) context.refuse("containerLogMonitorInterval", "must be at least 3s");
  const policy = config.imagePullCredentialsVerificationPolicy;
  const allowlist = config.preloadedImagesVerificationAllowlist;
  if (!gates.enabled("KubeletEnsureSecretPulledImages")) {
    const remedy = "needs feature gate KubeletEnsureSecretPulledImages; turn it on or remove the field";
    if (policy !== "") context.refuse("imagePullCredentialsVerificationPolicy", remedy);
    if (allowlist.length > 0) context.refuse("preloadedImagesVerificationAllowlist", remedy);
    return;
  }
  if (!policies.includes(policy)) {
    context.refuse("imagePullCredentialsVerificationPolicy", `must be ${listOr(policies)}`);
  }
  if (allowlist.length > 0 && policy !== "NeverVerifyAllowlistedImages") {
    context.refuse(
      "preloadedImagesVerificationAllowlist",
      "needs imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages",
    );
  }
  for (const pattern of allowlist) {
    const problem = badPattern(pattern);
    if (problem !== undefined) {
      context.refuseText("preloadedImagesVerificationAllowlist", `${JSON.stringify(pattern.slice(0, 120))} ${problem}`);
    }
  }
}

function badPattern(pattern: string): string | undefined {
  if (pattern === "" || pattern !== pattern.trim()) return "must not be empty or begin or end with space";
  const wildcard = pattern.endsWith("/*");
  const name = wildcard ? pattern.slice(0, -2) : pattern;
  if (name === "") return "needs at least a registry's name";
  if (name.includes("*")) return "may have a * only as /* at the end";
  if (wildcard) return undefined;
  if (name.includes("@") || /:[^/]*$/.test(name)) return "must have no tag or digest";
  return /^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$/.test(name) ? undefined : "is no image name";
}
