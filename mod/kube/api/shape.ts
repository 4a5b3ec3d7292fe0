import { readType, setOwn, zeroOf } from "../decode.ts";
import { schema } from "../gen/schema.ts";

/** The types of a kind's fields, with what is cut off a type read once. */
const fieldsOf = new Map<string, ReadonlyMap<string, string>>();

/** Whether there is a schema of a kind. */
export function hasShape(kind: string): boolean {
  return Object.hasOwn(schema, kind);
}

/**
 * Why an object of parsed JSON cannot be of a kind: the first field whose value is of another type, with its path;
 * undefined when all fit. Fields that the schema does not have are not looked at. Null is read as Go does: a field that
 * is null is not there, and is taken away; a member of a list or map that is null is text or number of nothing, and
 * becomes that (a key of a Secret without a byte can come so). Throws nothing.
 */
export function misfit(kind: string, value: unknown, path = ""): string | undefined {
  if (!isMap(value)) return wrong(path, "an object", value);
  const fields = shapeOf(kind);
  for (const key of Object.keys(value)) {
    const base = fields.get(key);
    if (base === undefined) continue;
    const field = value[key];
    if (field === null) {
      delete value[key];
      continue;
    }
    const found = misfitOf(base, field, path === "" ? key : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function shapeOf(kind: string): ReadonlyMap<string, string> {
  let fields = fieldsOf.get(kind);
  if (!fields) {
    fields = new Map(Object.entries(schema[kind] ?? {}).map(([name, type]) => [name, readType(type).base]));
    fieldsOf.set(kind, fields);
  }
  return fields;
}

function misfitOf(base: string, value: unknown, path: string): string | undefined {
  if (base.startsWith("[]")) {
    if (!Array.isArray(value)) return wrong(path, "a list", value);
    for (const [i, item] of value.entries()) {
      if (item === null && isScalar(base.slice(2))) {
        value[i] = zeroOf(base.slice(2));
        continue;
      }
      const found = misfitOf(base.slice(2), item, `${path}[${i}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (base.startsWith("{}")) {
    if (!isMap(value)) return wrong(path, "an object", value);
    for (const key of Object.keys(value)) {
      if (value[key] === null && isScalar(base.slice(2))) {
        setOwn(value, key, zeroOf(base.slice(2)));
        continue;
      }
      const found = misfitOf(base.slice(2), value[key], `${path}[${key.slice(0, 80)}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  switch (base) {
    case "any":
      return undefined;
    case "bool":
      return typeof value === "boolean" ? undefined : wrong(path, "true or false", value);
    case "int32":
    case "int64":
    case "uint32":
      return isInteger(base, value) ? undefined : wrong(path, "an integer", value);
    case "float":
      return typeof value === "number" ? undefined : wrong(path, "a number", value);
    case "intorstring":
      return typeof value === "string" || isInteger("int32", value)
        ? undefined
        : wrong(path, "an integer or a text", value);
    case "quantity":
      return typeof value === "string" || typeof value === "number" ? undefined : wrong(path, "a quantity", value);
    case "time":
      return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? undefined : wrong(path, "a time", value);
    case "flush":
      return typeof value === "string" || typeof value === "number" ? undefined : wrong(path, "a duration", value);
    case "string":
    case "bytes":
    case "duration":
      return typeof value === "string" ? undefined : wrong(path, "a text", value);
    default:
      return misfit(base, value, path);
  }
}

const scalars = new Set(["string", "bytes", "bool", "int32", "int64", "uint32", "float", "intorstring", "quantity"]);

function isScalar(base: string): boolean {
  return scalars.has(base);
}

function isInteger(base: "int32" | "int64" | "uint32", value: unknown): boolean {
  if (typeof value !== "number" || !Number.isInteger(value)) return false;
  const bits = base === "int64" ? 63 : base === "uint32" ? 32 : 31;
  return value <= 2 ** bits && value >= (base === "uint32" ? 0 : -(2 ** bits));
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function wrong(path: string, want: string, got: unknown): string {
  const is = Array.isArray(got) ? "a list" : isMap(got) ? "an object" : (JSON.stringify(got) ?? "nothing").slice(0, 80);
  return `${path === "" ? "the object" : path}: want ${want}, got ${is}`;
}
