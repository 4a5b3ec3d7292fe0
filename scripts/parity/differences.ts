import type { Json } from "./plain.ts";

/** A place where two trees differ; undefined where one has nothing. */
export interface Difference {
  /** Such as `pods plain@ready: status.conditions[Ready].reason`. */
  readonly at: string;
  readonly reference: Json | undefined;
  readonly ours: Json | undefined;
}

/** Fields that name the elements of an array, the first that all of them have. */
const keys = ["name", "type", "reason", "mountPath", "ip", "uid", "key"] as const;

/** Where two trees differ, in the order of the paths; what one has nothing of is one difference. */
export function differences(reference: Json, ours: Json, at = ""): Difference[] {
  const [a, b] = [children(reference), children(ours)];
  if (!a || !b || a.array !== b.array) {
    return JSON.stringify(reference) === JSON.stringify(ours) ? [] : [{ at, reference, ours }];
  }
  const found: Difference[] = [];
  for (const key of [...new Set([...a.of.keys(), ...b.of.keys()])].sort()) {
    const path = a.array ? `${at}[${key}]` : at === "" ? key : `${at}.${key}`;
    const [x, y] = [a.of.get(key), b.of.get(key)];
    if (x !== undefined && y !== undefined) found.push(...differences(x, y, path));
    else found.push({ at: path, reference: x, ours: y });
  }
  // an order is worth a line only when both have the same elements: otherwise those that one lacks are told already
  const [x, y] = [[...a.of.keys()], [...b.of.keys()]];
  if (a.named && b.named && x.join() !== y.join() && x.toSorted().join() === y.toSorted().join()) {
    found.push({ at: `${at}#order`, reference: x.join(" "), ours: y.join(" ") });
  }
  return found;
}

interface Children {
  readonly array: boolean;
  /** Whether elements of an array have names. */
  readonly named: boolean;
  readonly of: ReadonlyMap<string, Json>;
}

function children(value: Json): Children | undefined {
  if (value === null || typeof value !== "object") return undefined;
  if (!Array.isArray(value)) return { array: false, named: false, of: new Map(Object.entries(value)) };
  const names = namesOf(value);
  return {
    array: true,
    named: names !== undefined,
    of: new Map(value.map((one, index) => [names?.[index] ?? String(index), one])),
  };
}

function namesOf(elements: readonly Json[]): string[] | undefined {
  const words = elements.filter((one) => typeof one === "string");
  if (words.length === elements.length && new Set(words).size === words.length) return words;
  const name = (one: Json, key: string) => {
    const whole = typeof one === "object" && one !== null && !Array.isArray(one) ? one : {};
    const reference = whole.podRef;
    // the statistics of a pod
    const value = typeof reference === "object" && reference !== null && !Array.isArray(reference)
      ? reference[key]
      : whole[key];
    return typeof value === "string" ? value : undefined;
  };
  for (const key of keys) {
    const names = elements.map((one) => name(one, key));
    const all = names.filter((one) => one !== undefined);
    if (all.length === elements.length && new Set(all).size === all.length) return all;
  }
  return undefined;
}

/** A difference that shall be, with its reason. */
export interface Intended {
  /** As `Difference.at`, with `*` for any text. */
  readonly at: string;
  readonly why: string;
  /** Only when the values match, as they are printed; any when not given. */
  readonly reference?: RegExp;
  readonly ours?: RegExp;
}

/** Sets apart the differences that are on the list; `unused` are the entries that nothing showed. */
export function sorted(found: readonly Difference[], list: readonly Intended[]): {
  readonly open: Difference[];
  readonly intended: { readonly difference: Difference; readonly why: string }[];
  readonly unused: Intended[];
} {
  const patterns = list.map((entry) => ({ entry, at: glob(entry.at), used: false }));
  const open: Difference[] = [];
  const intended: { difference: Difference; why: string }[] = [];
  for (const difference of found) {
    const match = patterns.find(({ entry, at }) =>
      at.test(difference.at) && (entry.reference?.test(shown(difference.reference)) ?? true) &&
      (entry.ours?.test(shown(difference.ours)) ?? true)
    );
    if (match) match.used = true;
    if (match) intended.push({ difference, why: match.entry.why });
    else open.push(difference);
  }
  return { open, intended, unused: patterns.filter(({ used }) => !used).map(({ entry }) => entry) };
}

function glob(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}

/** A value as a line shows it. */
export function shown(value: Json | undefined): string {
  const text = value === undefined ? "(nothing)" : JSON.stringify(value);
  return text.length > 900 ? `${text.slice(0, 900)}… (${text.length})` : text;
}

/** A difference as lines. */
export function told({ at, reference, ours }: Difference): string {
  return `${at}\n    kubelet: ${shown(reference)}\n    ours:    ${shown(ours)}`;
}
