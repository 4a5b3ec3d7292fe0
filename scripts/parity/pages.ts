import type { Json } from "./plain.ts";

/**
 * What a page in the Prometheus text format has: each family's type, and the names of its samples' labels (one line for
 * each set of names). Values and help are left out.
 */
export function families(page: string): Json {
  const types: Record<string, string> = {};
  const labels = new Map<string, Set<string>>();
  for (const line of page.split("\n")) {
    const type = /^# TYPE (\S+) (\S+)/.exec(line);
    if (type?.[1] !== undefined) types[type[1]] = type[2] ?? "";
    const sample = /^([a-zA-Z_:][\w:]*)(\{(.*)\})? /.exec(line);
    if (!sample?.[1]) continue;
    const name = sample[1];
    const family = Object.hasOwn(types, name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    const names = [...(sample[3] ?? "").matchAll(/([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"/g)]
      .map(([, label]) => label ?? "").filter((label) => label !== "le" && label !== "quantile").sort();
    const sets = labels.get(family) ?? new Set();
    labels.set(family, sets.add(names.join(",")));
  }
  const out: { [key: string]: Json } = {};
  for (const [name, type] of Object.entries(types)) {
    out[name] = { type, labels: [...labels.get(name) ?? []].sort().join(" | ") };
  }
  return out;
}
