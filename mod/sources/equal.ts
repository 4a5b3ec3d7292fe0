/** True when two plain values mean the same: absent and undefined fields are one, key order doesn't count. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = (object: Record<string, unknown>) => Object.keys(object).filter((key) => object[key] !== undefined);
  const own = keys(left);
  return own.length === keys(right).length &&
    own.every((key) => Object.hasOwn(right, key) && sameValue(left[key], right[key]));
}
