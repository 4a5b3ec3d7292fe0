import type { Node, NodeAddress, NodeCondition } from "../../mod/kube/types.ts";
import { same } from "./compare.ts";

type Patch = Record<string, unknown>;

/**
 * A strategic merge patch for a node's `status` subresource that makes `after` of `before`: labels, annotations and
 * status, only what differs; undefined when nothing does. Conditions are merged by type, and their order is told.
 * Addresses would be merged by type, which two of one type do not survive; so they are replaced as a whole.
 */
export function nodePatch(before: Node, after: Node): Patch | undefined {
  const metadata = {
    ...mapPatch("labels", before.metadata?.labels, after.metadata?.labels),
    ...mapPatch("annotations", before.metadata?.annotations, after.metadata?.annotations),
  };
  const old = before.status ?? {}, next = after.status ?? {};
  const status: Patch = {
    ...mapPatch("capacity", old.capacity, next.capacity),
    ...mapPatch("allocatable", old.allocatable, next.allocatable),
    ...conditionsPatch(old.conditions ?? [], next.conditions ?? []),
    ...addressesPatch(old.addresses ?? [], next.addresses ?? []),
    ...mapPatch("nodeInfo", old.nodeInfo, next.nodeInfo),
    ...mapPatch("features", old.features, next.features),
    ...whole("daemonEndpoints", old.daemonEndpoints, next.daemonEndpoints),
    ...whole("images", old.images, next.images),
    ...whole("volumesInUse", old.volumesInUse, next.volumesInUse),
    ...whole("runtimeHandlers", old.runtimeHandlers, next.runtimeHandlers),
    ...whole("declaredFeatures", old.declaredFeatures, next.declaredFeatures),
  };
  const patch: Patch = {
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(Object.keys(status).length > 0 ? { status } : {}),
  };
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** A map's changed and new keys with their values, its removed keys with null. */
function mapPatch(name: string, before: object | undefined, after: object | undefined): Patch {
  const old = new Map<string, unknown>(Object.entries(before ?? {}));
  const next = new Map<string, unknown>(Object.entries(after ?? {}));
  const changed: [string, unknown][] = [];
  for (const [key, value] of next) {
    if (value !== undefined && !(old.has(key) && same(old.get(key), value))) changed.push([key, value]);
  }
  for (const key of old.keys()) if (next.get(key) === undefined) changed.push([key, null]);
  return changed.length > 0 ? { [name]: Object.fromEntries(changed) } : {};
}

/** A list or a structure that is replaced as a whole. */
function whole(name: string, before: unknown, after: unknown): Patch {
  return same(before, after) ? {} : { [name]: after ?? null };
}

function conditionsPatch(before: readonly NodeCondition[], after: readonly NodeCondition[]): Patch {
  const changed: Patch[] = [];
  for (const condition of after) {
    const old = before.find(({ type }) => type === condition.type);
    if (!old) changed.push({ ...condition });
    else if (!same(old, condition)) {
      const fields = Object.entries(condition).filter(([key, value]) => !same(old[key as keyof NodeCondition], value));
      changed.push({ ...Object.fromEntries(fields), type: condition.type });
    }
  }
  const order = after.map(({ type }) => ({ type }));
  return changed.length > 0 ? { "$setElementOrder/conditions": order, conditions: changed } : {};
}

function addressesPatch(before: readonly NodeAddress[], after: readonly NodeAddress[]): Patch {
  if (same(before, after)) return {};
  // The directive stands only where there is a list already: elsewhere it would become an address.
  return { addresses: before.length > 0 ? [...after, { "$patch": "replace" }] : [...after] };
}
