import { parseDurationNanos } from "../../base/duration.ts";
import { resolveGates } from "./feature_gates.ts";
import type { FieldSpec } from "./field_spec.ts";
import { allFields } from "./fields.ts";
import { getPath, isObject, type Json, type JsonObject, setKey, setPath } from "./json.ts";

/** Hard eviction thresholds of a configuration file that sets none (contract config.md section 1). */
export const defaultEvictionHard: Readonly<Record<string, string>> = {
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
};

/** Fields whose default is set only while a gate is on. */
const gatedDefaults: Readonly<Record<string, string>> = {
  "crashLoopBackOff.maxContainerRestartPeriod": "KubeletCrashLoopBackOffMax",
  imagePullCredentialsVerificationPolicy: "KubeletEnsureSecretPulledImages",
};

function isZero(value: unknown, field: FieldSpec): boolean {
  if (field.type === "duration") {
    // flushFrequency may be a number of nanoseconds; other durations were checked when they were decoded.
    return value === 0 || (typeof value === "string" && (value === "" || parseDurationNanos(value) === 0n));
  }
  return value === "" || value === 0 || value === false;
}

function gatesOf(config: JsonObject, flagGates: Json | undefined): (name: string) => boolean {
  const settings: Record<string, boolean> = {};
  for (const gates of [config.featureGates, flagGates]) {
    for (const [name, on] of isObject(gates) ? Object.entries(gates) : []) setKey(settings, name, on === true);
  }
  const { gates } = resolveGates(settings); // problems are reported by validation
  return (name) => gates.enabled(name);
}

/**
 * Sets every field that is unset to its default, in place (contract config.md section 2): a zero duration, and a zero
 * of a field that cannot tell zero from unset, count as unset. Some defaults hang on gates, so those of the command line
 * come along although flags are applied later.
 */
export function setDefaults(config: JsonObject, flagGates?: Json): void {
  const enabled = gatesOf(config, flagGates);
  const updateWasSet = isSet(config, "nodeStatusUpdateFrequency");
  if (!isSet(config, "nodeStatusReportFrequency") && updateWasSet) {
    setPath(config, "nodeStatusReportFrequency", getPath(config, "nodeStatusUpdateFrequency"));
  }
  const limit = getPath(config, "podPidsLimit");
  if (typeof limit === "number" && limit < 0) setPath(config, "podPidsLimit", -1);
  const parallel = getPath(config, "maxParallelImagePulls");
  if (!isSet(config, "serializeImagePulls") && typeof parallel === "number" && parallel >= 2) {
    setPath(config, "serializeImagePulls", false);
  }
  for (const field of allFields) {
    if (field.initial === undefined || isSet(config, field.path)) continue;
    const gate = gatedDefaults[field.path];
    if (gate !== undefined && !enabled(gate)) continue;
    const initial: Json = typeof field.initial === "object" ? [...field.initial] : field.initial;
    setPath(config, field.path, initial);
  }
}

function isSet(config: JsonObject, path: string): boolean {
  const value = getPath(config, path);
  if (value === undefined || value === null) return false;
  const field = byPath.get(path);
  return field === undefined || field.pointer === true || !isZero(value, field);
}

const byPath = new Map(allFields.map((field) => [field.path, field]));

/** What differs without a configuration file, for the sake of old command lines (contract config.md section 1). */
export function setLegacyDefaults(config: JsonObject): void {
  setPath(config, "authentication.anonymous.enabled", true);
  setPath(config, "authentication.webhook.enabled", false);
  setPath(config, "authorization.mode", "AlwaysAllow");
  setPath(config, "readOnlyPort", 10255);
}

/** Sets or completes evictionHard of a configuration read from a file. */
export function setEvictionDefaults(config: JsonObject): void {
  if (!isObject(config.evictionHard)) config.evictionHard = { ...defaultEvictionHard };
  else if (config.mergeDefaultEvictionSettings === true) {
    config.evictionHard = { ...defaultEvictionHard, ...config.evictionHard };
  }
}
