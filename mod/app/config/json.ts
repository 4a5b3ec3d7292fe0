/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** Sets a key whatever its name: `__proto__` becomes an ordinary one. */
export function setKey(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

/** The own value of a key; nothing inherited. */
export function getKey(object: unknown, key: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, key)) return undefined;
  return (object as Record<string, unknown>)[key];
}

/** The value at a dotted path. */
export function getPath(object: unknown, path: string): unknown {
  return path.split(".").reduce(getKey, object);
}

/** Sets the value at a dotted path, making the objects on the way. */
export function setPath(object: object, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() ?? path;
  let parent = object;
  for (const key of keys) {
    const next = getKey(parent, key);
    if (typeof next === "object" && next !== null) {
      parent = next;
    } else {
      const made = {};
      setKey(parent, key, made);
      parent = made;
    }
  }
  setKey(parent, last, value);
}

/** True for a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * JSON merge patch (RFC 7386): maps are merged, null deletes, anything else replaces. Neither argument is changed.
 * Recursion is bounded by the depth of the patch, which decoding bounds.
 */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged: JsonObject = {};
  if (isObject(target)) { for (const [key, value] of Object.entries(target)) setKey(merged, key, value); }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else setKey(merged, key, mergePatch(Object.hasOwn(merged, key) ? merged[key] : undefined, value));
  }
  return merged;
}
