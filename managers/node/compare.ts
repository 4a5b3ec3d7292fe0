import type { Node, NodeCondition, NodeStatus } from "../../mod/kube/types.ts";
import { sameQuantity } from "./resources.ts";

/**
 * Whether a node differs in anything but the conditions' heartbeat: status, labels and annotations. Quantities are
 * compared by value, and what is empty counts as not there, as the API server leaves it away.
 */
export function nodeChanged(before: Node, after: Node): boolean {
  return !same(before.metadata?.labels, after.metadata?.labels) ||
    !same(before.metadata?.annotations, after.metadata?.annotations) ||
    statusChanged(before.status ?? {}, after.status ?? {});
}

/** Whether a status differs in anything but the conditions' heartbeat. */
export function statusChanged(before: NodeStatus, after: NodeStatus): boolean {
  if (!same(quiet(before.conditions), quiet(after.conditions))) return true;
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)] as (keyof NodeStatus)[])) {
    if (key === "conditions") continue;
    const equal = key === "capacity" || key === "allocatable" ? sameResources : same;
    if (!equal(before[key] as Json, after[key] as Json)) return true;
  }
  return false;
}

type Json = unknown;

/** Conditions in the order of their types, without heartbeat. */
function quiet(conditions: readonly NodeCondition[] = []): Json {
  return conditions.map(({ lastHeartbeatTime: _, ...rest }) => rest)
    .sort((a, b) => a.type < b.type ? -1 : a.type > b.type ? 1 : 0);
}

function sameResources(a: Json, b: Json): boolean {
  const left = isRecord(a) ? a : {}, right = isRecord(b) ? b : {};
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  for (const name of names) {
    if (!Object.hasOwn(left, name) || !Object.hasOwn(right, name)) return false;
    if (!sameQuantity(String(left[name]), String(right[name]))) return false;
  }
  return true;
}

function isRecord(value: Json): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmpty(value: Json): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.values(value).every(isEmpty);
}

/** Whether two values are equal as the API server sees them. */
export function same(a: Json, b: Json): boolean {
  if (Object.is(a, b)) return true;
  if (isEmpty(a) && isEmpty(b)) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => same(item, b[index]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) =>
    same(Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined)
  );
}
