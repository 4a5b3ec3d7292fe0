import { KubeletError } from "../../base/errors.ts";
import type { Json } from "./json.ts";

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** What is wrong with a label or taint key; undefined when nothing is. */
export function badQualifiedName(key: string): string | undefined {
  const parts = key.split("/");
  const name = parts.pop() ?? "";
  const [prefix] = parts;
  if (parts.length > 1) return "has more than one slash";
  if (
    prefix !== undefined &&
    (prefix.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(prefix) || prefix.includes(".."))
  ) {
    return `has the prefix ${JSON.stringify(prefix.slice(0, 80))}, which is not a DNS name`;
  }
  if (name === "" || name.length > 63) return "must have a name of 1 to 63 characters";
  if (!/^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(name)) {
    return "must have a name of letters, digits, '-', '_' and '.' that begins and ends with a letter or digit";
  }
  return undefined;
}

/** What is wrong with a label or taint value; undefined when nothing is. */
export function badLabelValue(value: string): string | undefined {
  if (value.length > 63) return "must be at most 63 characters long";
  if (value !== "" && !/^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(value)) {
    return "must be of letters, digits, '-', '_' and '.' and begin and end with a letter or digit";
  }
  return undefined;
}

/** What is wrong with a taint; undefined when nothing is. */
export function badTaint(taint: { key?: string; value?: string; effect?: string }): string | undefined {
  const key = badQualifiedName(taint.key ?? "");
  if (key !== undefined) return `key ${JSON.stringify((taint.key ?? "").slice(0, 80))} ${key}`;
  const value = badLabelValue(taint.value ?? "");
  if (value !== undefined) return `value ${JSON.stringify((taint.value ?? "").slice(0, 80))} ${value}`;
  if (!effects.includes(taint.effect ?? "")) {
    return `effect ${JSON.stringify((taint.effect ?? "").slice(0, 80))} must be ${effects.join(", ")}`;
  }
  return undefined;
}

/** Reads `key=value:effect,…` as --register-with-taints has it; throws a KubeletError. */
export function parseTaints(text: string): Json[] {
  if (text === "") return [];
  const seen = new Set<string>();
  return text.split(",").map((part) => {
    const match = /^([^=:]*)(?:=([^=:]*))?:([^:]*)$/.exec(part);
    const taint = { key: match?.[1] ?? "", value: match?.[2] ?? "", effect: match?.[3] ?? "" };
    const problem = match === null ? "it is not of the form key=value:effect" : badTaint(taint);
    const id = `${taint.key}:${taint.effect}`;
    if (problem !== undefined || seen.has(id)) {
      throw new KubeletError(
        "BadConfig",
        `has the taint ${JSON.stringify(part.slice(0, 80))}: ${problem ?? "it is given twice"}`,
      );
    }
    seen.add(id);
    return taint.value === "" ? { key: taint.key, effect: taint.effect } : taint;
  });
}
