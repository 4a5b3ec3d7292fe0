import { isObject, type JsonObject, sameJson } from "./json.ts";
import { PatchError } from "./strategic_merge.ts";

/** Applies a JSON merge patch (RFC 7386): maps are merged, `null` removes, all else replaces. */
export function mergePatch(original: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result = new Map(Object.entries(isObject(original) ? original : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, mergePatch(result.get(key), value));
  }
  return Object.fromEntries(result);
}

/** Applies a JSON patch (RFC 6902: add, remove, replace, test). Throws PatchError when an operation does not fit. */
export function jsonPatch(original: JsonObject, operations: unknown): JsonObject {
  if (!Array.isArray(operations)) throw new PatchError("a JSON patch is a list of operations");
  const result = structuredClone(original);
  for (const operation of operations) {
    if (!isObject(operation) || typeof operation.path !== "string") throw new PatchError("an operation has no path");
    const { op, value } = operation;
    const path = operation.path.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = path.pop();
    if (last === undefined) throw new PatchError("the whole object cannot be the path of an operation");
    const parent = walk(result, path, operation.path);
    if (op === "test") {
      if (!sameJson(read(parent, last), value)) throw new PatchError(`testing value ${operation.path} failed`);
    } else if (op === "remove" || op === "replace" || op === "add") {
      edit(parent, last, op, value, operation.path);
    } else throw new PatchError(`operation ${JSON.stringify(op)} is not supported`);
  }
  return result;
}

type Parent = JsonObject | unknown[];

function walk(root: JsonObject, path: readonly string[], whole: string): Parent {
  let at: Parent = root;
  for (const part of path) {
    const next: unknown = read(at, part);
    if (!isObject(next) && !Array.isArray(next)) throw new PatchError(`nothing is at ${whole}`);
    at = next;
  }
  return at;
}

function read(parent: Parent, key: string): unknown {
  if (Array.isArray(parent)) return parent[Number(key)];
  return Object.hasOwn(parent, key) ? parent[key] : undefined;
}

function edit(parent: Parent, key: string, op: "add" | "remove" | "replace", value: unknown, path: string): void {
  if (Array.isArray(parent)) {
    const at = key === "-" ? parent.length : Number(key);
    const within = at >= 0 && (op === "add" ? at <= parent.length : at < parent.length);
    if (!within) throw new PatchError(`index out of bounds: ${path}`);
    parent.splice(at, op === "add" ? 0 : 1, ...(op === "remove" ? [] : [value]));
    return;
  }
  if (op !== "add" && !Object.hasOwn(parent, key)) throw new PatchError(`nothing is at ${path}`);
  if (op === "remove") delete parent[key];
  else Object.defineProperty(parent, key, { value, writable: true, enumerable: true, configurable: true });
}
