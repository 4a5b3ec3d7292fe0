import { parseDurationNanos } from "../base/duration.ts";
import { type ErrorCode, KubeletError } from "../base/errors.ts";
import { schema } from "./gen/schema.ts";
import { canonicalQuantity } from "./quantity.ts";
import { parseText, type ParseTextOptions, type Tree, type TreeMap } from "./yaml_tree.ts";

/** A typed object and what was odd about its text. */
export interface Decoded<T> {
  readonly value: T;
  /** Unknown and doubled fields, each with its path; the object is usable. */
  readonly warnings: readonly string[];
}

/** How a decoding reports itself. */
export interface DecodeOptions {
  /** The object in messages, such as the file's path. */
  readonly what: string;
  /** Code of the errors; default BadManifest. */
  readonly code?: ErrorCode;
  /** Unknown fields are errors, not warnings. */
  readonly strict?: boolean;
}

/** Problems listed in one error; the rest is counted. */
const maxProblems = 20;

/**
 * Gives a tree its type, by the schema in gen/schema.ts: every type error with its full path, integers in range,
 * quantities in the API's canonical text, null as absent, fields that Go always has filled with their zero value,
 * unknown fields as warnings (as the kubelet's sources are lenient) with the nearest known name.
 * Throws one KubeletError that lists all problems.
 */
export function decode<T>(type: string, tree: Tree, options: DecodeOptions): Decoded<T> {
  const decoder = new Decoder();
  const value = decoder.struct(type, tree, "");
  const problems = options.strict ? [...decoder.problems, ...decoder.warnings] : decoder.problems;
  if (problems.length > 0) {
    const shown = problems.slice(0, maxProblems).join("; ");
    const more = problems.length > maxProblems ? `; and ${problems.length - maxProblems} more` : "";
    throw new KubeletError(options.code ?? "BadManifest", `${options.what}: ${shown}${more}`);
  }
  // The one place where the schema vouches for the type: both are generated from the same source.
  return { value: value as T, warnings: decoder.warnings };
}

/** Reads the first document of a JSON or YAML text and gives it its type. */
export function decodeText<T>(
  type: string,
  text: string | Uint8Array,
  options: DecodeOptions & ParseTextOptions,
): Decoded<T> {
  const parsed = parseText(text, options);
  const decoded = decode<T>(type, parsed.tree, options);
  return { value: decoded.value, warnings: [...parsed.warnings, ...decoded.warnings] };
}

/** The apiVersion and kind that a tree states; empty texts where it states none. */
export function kindOf(tree: Tree): { apiVersion: string; kind: string } {
  const read = (key: string) => {
    const value = tree instanceof Map ? (tree as TreeMap).get(key) : undefined;
    return typeof value === "string" ? value : "";
  };
  return { apiVersion: read("apiVersion"), kind: read("kind") };
}

/** Splits `[]Container!` into its parts. */
export function readType(type: string): { base: string; required: boolean } {
  return type.endsWith("!") ? { base: type.slice(0, -1), required: true } : { base: type, required: false };
}

/** The value that Go has for a type when nothing was said. */
export function zeroOf(base: string): unknown {
  if (base.startsWith("[]")) return [];
  if (base.startsWith("{}")) return {};
  switch (base) {
    case "string":
    case "bytes":
      return "";
    case "bool":
      return false;
    case "int32":
    case "int64":
    case "uint32":
    case "float":
    case "intorstring":
      return 0;
    case "quantity":
      return "0";
    case "duration":
    case "flush":
      return "0s";
    case "time":
    case "any":
      return undefined;
    default:
      return fillZero(base, {});
  }
}

/** Adds the fields that Go always has. */
function fillZero(type: string, object: Record<string, unknown>): Record<string, unknown> {
  for (const [field, spec] of Object.entries(schema[type] ?? {})) {
    const { base, required } = readType(spec);
    if (!required || object[field] !== undefined) continue;
    const zero = zeroOf(base);
    if (zero !== undefined) object[field] = zero;
  }
  return object;
}

/** Sets any key as an own property, `__proto__` too. */
export function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else object[key] = value;
}

const ranges: Record<string, readonly [bigint, bigint]> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
};

class Decoder {
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  #problem(path: string, want: string, got: Tree, remedy = ""): undefined {
    this.problems.push(`${path === "" ? "the document" : path}: want ${want}, got ${show(got)}${remedy}`);
    return undefined;
  }

  struct(type: string, tree: Tree, path: string): Record<string, unknown> | undefined {
    const fields = schema[type];
    if (fields === undefined) throw new KubeletError("Internal", `no schema for the type ${type}`);
    if (!(tree instanceof Map)) return this.#problem(path, "a map of fields", tree);
    const object: Record<string, unknown> = {};
    for (const [key, node] of tree as TreeMap) {
      const at = path === "" ? key : `${path}.${key}`;
      const spec = Object.hasOwn(fields, key) ? fields[key] : undefined;
      if (spec === undefined) {
        const near = nearest(key, Object.keys(fields));
        this.warnings.push(`${clip(at)}: unknown field, ignored${near ? ` (did you mean "${near}"?)` : ""}`);
        continue;
      }
      const value = this.#value(readType(spec).base, node, at);
      if (value !== undefined) object[key] = value;
    }
    return fillZero(type, object);
  }

  /** The value; undefined when it is absent (null) or wrong (then a problem is noted). */
  #value(base: string, node: Tree, path: string): unknown {
    if (node === null) return undefined;
    if (base.startsWith("[]")) return this.#list(base.slice(2), node, path);
    if (base.startsWith("{}")) return this.#map(base.slice(2), node, path);
    switch (base) {
      case "string":
        if (typeof node === "string") return node;
        return this.#problem(path, "a text", node, typeof node === "object" ? "" : "; put it in quotes");
      case "bool":
        return typeof node === "boolean" ? node : this.#problem(path, "true or false", node);
      case "int32":
      case "int64":
      case "uint32":
        return this.#integer(base, node, path);
      case "float":
        if (typeof node === "bigint" || (typeof node === "number" && Number.isFinite(node))) return Number(node);
        return this.#problem(path, "a number", node);
      case "intorstring":
        return typeof node === "string" ? node : this.#integer("int32", node, path, "an integer or a text");
      case "quantity":
        return this.#quantity(node, path);
      case "time":
        if (typeof node === "string" && isTime(node)) return node;
        return this.#problem(path, "a time such as 2026-01-31T12:00:00Z", node);
      case "duration":
        return this.#duration(node, path);
      case "flush":
        return typeof node === "number" ? this.#integer("int64", node, path) : this.#duration(node, path);
      case "bytes":
        if (typeof node === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(node.replace(/\s+/g, ""))) return node;
        return this.#problem(path, "base64 text", node);
      case "any":
        return plain(node);
      default:
        return this.struct(base, node, path);
    }
  }

  #list(item: string, node: Tree, path: string): unknown {
    if (!Array.isArray(node)) return this.#problem(path, "a list", node);
    return node.map((element: Tree, i) =>
      element === null ? zeroOf(item) ?? null : this.#value(item, element, `${path}[${i}]`)
    );
  }

  #map(item: string, node: Tree, path: string): unknown {
    if (!(node instanceof Map)) return this.#problem(path, "a map", node);
    const object: Record<string, unknown> = {};
    for (const [key, element] of node as TreeMap) {
      const value = element === null ? zeroOf(item) : this.#value(item, element, `${path}[${clip(key)}]`);
      if (value !== undefined) setOwn(object, key, value);
    }
    return object;
  }

  #integer(base: "int32" | "int64" | "uint32", node: Tree, path: string, want = "an integer"): number | undefined {
    if (typeof node !== "bigint" && !(typeof node === "number" && Number.isInteger(node))) {
      return this.#problem(path, want, node);
    }
    const [low, high] = ranges[base] ?? [0n, 0n];
    const value = BigInt(node);
    if (value < low || value > high) return this.#problem(path, `${want} from ${low} to ${high}`, node);
    return Number(value);
  }

  #quantity(node: Tree, path: string): string | undefined {
    if (typeof node !== "string" && typeof node !== "number" && typeof node !== "bigint") {
      return this.#problem(path, "a quantity such as 500m or 64Mi", node);
    }
    try {
      return canonicalQuantity(String(node), { what: path });
    } catch (thrown) {
      if (!(thrown instanceof KubeletError)) throw thrown;
      this.problems.push(thrown.message);
      return undefined;
    }
  }

  #duration(node: Tree, path: string): string | undefined {
    if (typeof node !== "string") return this.#problem(path, "a duration such as 1m30s", node);
    try {
      parseDurationNanos(node, { what: path });
      return node;
    } catch (thrown) {
      if (!(thrown instanceof KubeletError)) throw thrown;
      this.problems.push(thrown.message);
      return undefined;
    }
  }
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text));
}

function plain(node: Tree): unknown {
  if (Array.isArray(node)) return node.map(plain);
  if (!(node instanceof Map)) return typeof node === "bigint" ? Number(node) : node;
  const object: Record<string, unknown> = {};
  for (const [key, value] of node as TreeMap) setOwn(object, key, plain(value));
  return object;
}

function show(node: Tree): string {
  if (Array.isArray(node)) return `a list of ${node.length}`;
  if (node instanceof Map) return "a map";
  return clip(typeof node === "string" ? JSON.stringify(node) : String(node));
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** The known name nearest to one that is unknown; undefined when none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > 64) return undefined;
  const lower = name.toLowerCase();
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const distance = candidate.toLowerCase() === lower ? 0 : editDistance(lower, candidate.toLowerCase());
    if (distance <= Math.min(2, name.length / 3) && distance < (best?.distance ?? 3)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
