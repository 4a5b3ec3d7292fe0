import { readType, zeroOf } from "../kube/decode.ts";
import { schema } from "../kube/gen/schema.ts";

/**
 * A text that is the same for two objects that mean the same: keys in code-unit order, absent fields left out, also
 * empty lists and maps, and zero values of fields that Go always has. It is taken before defaults are set and it
 * knows only the fields that the manifest states, so that an agent with new defaults or new fields dumps an old manifest
 * as before. Static pod UIDs depend on it: a change here changes UIDs, which restarts every static pod of a node.
 */
export function canonicalDump(type: string, value: unknown): string {
  return JSON.stringify(canonical(type, value) ?? null);
}

function canonical(base: string, value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  if (base.startsWith("[]")) {
    if (!Array.isArray(value) || value.length === 0) return undefined;
    return value.map((item) => canonical(base.slice(2), item) ?? null);
  }
  if (typeof value !== "object") return value;
  const object = value as Record<string, unknown>;
  const fields = schema[base];
  const entries: [string, unknown][] = [];
  for (const key of Object.keys(object).sort()) {
    const spec = base.startsWith("{}") ? base.slice(2) : fields === undefined ? "any" : fieldOf(fields, key);
    if (spec === undefined) continue;
    const { base: inner, required } = readType(spec);
    const item = canonical(inner, object[key]);
    if (item === undefined || (required && isZero(inner, item))) continue;
    entries.push([key, item]);
  }
  if (base.startsWith("{}") && entries.length === 0) return undefined;
  // Pairs, not an object: an object would put keys that look like numbers first.
  return entries;
}

function fieldOf(fields: Record<string, string>, key: string): string | undefined {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

function isZero(base: string, item: unknown): boolean {
  return JSON.stringify(item) === JSON.stringify(canonical(base, zeroOf(base)) ?? []);
}
