import { compareQuantities, tryParseQuantity } from "../../mod/kube/quantity.ts";
import type { PodStatus } from "../../mod/kube/types.ts";

/** A strategic merge patch of a pod's status, with the UID of the pod that it is meant for. */
export interface StatusPatch {
  readonly metadata: { readonly uid: string };
  readonly status: Readonly<Record<string, unknown>>;
}

/** Lists of a pod's status whose members are told apart by a field; every other list is replaced whole. */
const keyed = new Map([["conditions", "type"], ["hostIPs", "ip"], ["podIPs", "ip"]]);

type Fields = Readonly<Record<string, unknown>>;

/**
 * The least patch that turns one status into another, or undefined when they are the same. Fields of which `next` says
 * nothing are taken away.
 */
export function statusPatch(uid: string, before: PodStatus, next: PodStatus): StatusPatch | undefined {
  const status = fieldsPatch(before as Fields, next as Fields, keyed);
  return Object.keys(status).length === 0 ? undefined : { metadata: { uid }, status };
}

function fieldsPatch(before: Fields, next: Fields, lists?: ReadonlyMap<string, string>): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(next)) {
    const old = before[field];
    if (value === undefined || same(old, value, quantities.has(field))) continue;
    const key = lists?.get(field);
    if (key !== undefined && Array.isArray(value) && Array.isArray(old ?? [])) {
      Object.assign(patch, listPatch(field, key, (old ?? []) as Fields[], value as Fields[]));
    } else if (isFields(value) && isFields(old)) patch[field] = fieldsPatch(old, value);
    else patch[field] = value;
  }
  for (const [field, old] of Object.entries(before)) {
    if (!isNothing(old) && next[field] === undefined) patch[field] = null;
  }
  return patch;
}

/**
 * The members that changed, each whole, in case somebody has taken it away meanwhile; those to be deleted; and the order
 * of all.
 */
function listPatch(field: string, key: string, before: readonly Fields[], next: readonly Fields[]): Fields {
  const items: Fields[] = [];
  for (const item of next) {
    const old = before.find((b) => b[key] === item[key]);
    if (!old) items.push(item);
    else if (!same(old, item)) items.push({ ...fieldsPatch(old, item), ...item });
  }
  for (const old of before) {
    if (!next.some((item) => item[key] === old[key])) items.push({ $patch: "delete", [key]: old[key] });
  }
  const order = next.map((item) => ({ [key]: item[key] }));
  return { [`$setElementOrder/${field}`]: order, ...(items.length > 0 ? { [field]: items } : {}) };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field that is absent, undefined or null, or an empty list, is one and the same to the API. */
function isNothing(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Fields whose values are quantities, of which the server keeps the canonical text only. */
const quantities = new Set(["requests", "limits", "allocatedResources"]);

function same(a: unknown, b: unknown, areQuantities = false): boolean {
  if (Object.is(a, b) || (isNothing(a) && isNothing(b))) return true;
  if (areQuantities && typeof a === "string" && typeof b === "string") return sameQuantity(a, b);
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (!isFields(a) || !isFields(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .every((key) => same(a[key], b[key], areQuantities || quantities.has(key)));
}

function sameQuantity(a: string, b: string): boolean {
  const left = tryParseQuantity(a), right = tryParseQuantity(b);
  return left !== undefined && right !== undefined && compareQuantities(left, right) === 0;
}
