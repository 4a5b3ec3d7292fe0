import { patchFields } from "../../gen/patch_fields.ts";
import { schema } from "../../gen/schema.ts";
import { isObject, type JsonObject } from "./json.ts";

/** A patch that the server cannot read; the message is for the client. */
export class PatchError extends Error {
  override readonly name: string = "PatchError";
}

/** A member of a list that lacks what members are told apart by: to a server a fault of its own. */
export class MergeKeyError extends PatchError {
  override readonly name = "MergeKeyError";
}

const orderPrefix = "$setElementOrder/";
const dropPrefix = "$deleteFromPrimitiveList/";
const retainKeys = "$retainKeys";

/**
 * Applies a strategic merge patch to an object of a kind, as an API server does: maps are merged, lists with a merge
 * key by member, other lists replaced; `null` removes. Understands `$patch` (delete, replace, merge), `$retainKeys`,
 * `$setElementOrder/…` and `$deleteFromPrimitiveList/…`. Neither argument is changed.
 * @param type the kind's name among the generated types; a kind that is not there is merged without list keys
 */
export function strategicMerge(type: string | undefined, original: JsonObject, patch: JsonObject): JsonObject {
  if (patch.$patch === "delete") return {};
  if (patch.$patch === "replace") return withoutDirectives(patch) as JsonObject;
  if (patch.$patch !== undefined && patch.$patch !== "merge") {
    throw new PatchError(`Unknown patch type found: ${JSON.stringify(patch.$patch)}`);
  }
  const result = new Map(Object.entries(original));
  const retained = patch[retainKeys];
  if (retained !== undefined) {
    if (!Array.isArray(retained)) throw new PatchError("$retainKeys is not a list");
    for (const key of result.keys()) if (!retained.includes(key)) result.delete(key);
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$")) continue;
    if (value === null) result.delete(key);
    else result.set(key, mergeField(type, key, result.get(key), value, patch));
  }
  for (const key of Object.keys(patch)) {
    // An order, or a removal, without a list of its own is about the list that is there.
    const field = key.startsWith(orderPrefix) || key.startsWith(dropPrefix)
      ? key.slice(key.indexOf("/") + 1)
      : undefined;
    if (field === undefined || patch[field] !== undefined) continue;
    const current = result.get(field);
    if (Array.isArray(current)) result.set(field, mergeField(type, field, current, [], patch));
  }
  return Object.fromEntries(result);
}

function mergeField(
  type: string | undefined,
  key: string,
  current: unknown,
  value: unknown,
  patch: JsonObject,
): unknown {
  const fieldType = typeOfField(type, key);
  if (Array.isArray(value)) {
    const how = type === undefined ? undefined : own(patchFields[type], key);
    if (!how?.strategy.includes("merge")) return value.map(withoutDirectives);
    const list = Array.isArray(current) ? current : [];
    return mergeList(fieldType?.replace("[]", ""), how.key, list, value, {
      order: patch[orderPrefix + key],
      drop: patch[dropPrefix + key],
    });
  }
  if (!isObject(value)) return value;
  // The values of a map have the map's type without its braces; they are merged by their own fields.
  const inner = fieldType?.startsWith("{}") ? undefined : fieldType;
  return isObject(current) ? strategicMerge(inner, current, value) : strategicMerge(inner, {}, value);
}

function mergeList(
  type: string | undefined,
  key: string,
  current: readonly unknown[],
  patch: readonly unknown[],
  how: { order: unknown; drop: unknown },
): unknown[] {
  const id = (item: unknown): unknown => key === "" ? item : isObject(item) ? item[key] : undefined;
  if (patch.some((item) => isObject(item) && item.$patch === "replace")) {
    return patch.filter((item) => !(isObject(item) && item.$patch === "replace")).map(withoutDirectives);
  }
  const result = [...current];
  if (Array.isArray(how.drop)) {
    for (const dropped of how.drop) for (let at; (at = result.indexOf(dropped)) >= 0;) result.splice(at, 1);
  }
  for (const item of patch) {
    if (key === "") {
      if (!result.includes(item)) result.push(item);
      continue;
    }
    if (!isObject(item) || item[key] === undefined) {
      throw new MergeKeyError(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    }
    const at = result.findIndex((other) => id(other) === item[key]);
    if (item.$patch === "delete") {
      if (at >= 0) result.splice(at, 1);
      continue;
    }
    const before = result[at];
    const merged = strategicMerge(type, isObject(before) ? before : {}, item);
    if (at >= 0) result[at] = merged;
    else result.push(merged);
  }
  if (Array.isArray(how.order)) return inOrder(result, how.order, id, key, current);
  // Without an order of its own, the patch's members are it: new ones go before those that the patch does not name.
  const order = patch.filter((item) => !(isObject(item) && item.$patch === "delete"));
  return key === "" ? result : inOrder(result, order, id, key, current);
}

/** The members that the order names, in its order; the others stay before what they stood before on the server. */
function inOrder(
  items: readonly unknown[],
  order: readonly unknown[],
  id: (item: unknown) => unknown,
  key: string,
  current: readonly unknown[],
): unknown[] {
  const wanted = order.map((entry) => key === "" ? entry : isObject(entry) ? entry[key] : undefined);
  const named = wanted.flatMap((one) => items.filter((item) => id(item) === one).slice(0, 1));
  const others = items.filter((item) => !wanted.includes(id(item)));
  const place = (item: unknown) => current.findIndex((other) => id(other) === id(item));
  const result: unknown[] = [];
  for (const item of named) {
    const at = place(item);
    while (others.length > 0 && at >= 0 && place(others[0]) < at) result.push(others.shift());
    result.push(item);
  }
  return [...result, ...others];
}

/** What a patch's value is when nothing is there to merge it with. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !(isObject(item) && item.$patch === "delete")).map(withoutDirectives);
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([key, one]) => !key.startsWith("$") && one !== null)
      .map(([key, one]) => [key, withoutDirectives(one)]),
  );
}

/** The generated schema's type of a field, such as `[]Container` or `PodSpec`. */
function typeOfField(type: string | undefined, field: string): string | undefined {
  return type === undefined ? undefined : own(own(schema, type), field)?.replace("!", "");
}

function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record && Object.hasOwn(record, key) ? record[key] : undefined;
}
