import { formatDurationNanos, parseDurationNanos } from "../../base/duration.ts";
import { messageOf } from "../../base/errors.ts";
import { schema } from "../../kube/gen/schema.ts";
import { canonicalQuantity } from "../../kube/quantity.ts";
import type { Tree } from "../../kube/yaml_tree.ts";
import { type Json, type JsonObject, setKey } from "./json.ts";
import { didYouMean } from "./nearest.ts";

/** A decoded object and what did not fit. */
export interface Decoded {
  readonly value: JsonObject;
  /** Fields that the type does not have, with the nearest names: lenient decoding drops them. */
  readonly unknown: readonly string[];
  /** Values of the wrong type: decoding fails. */
  readonly wrong: readonly string[];
}

const ranges: Readonly<Record<string, readonly [min: number, max: number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
};

/** Turns a tree into an object of a type of the schema; `keepNulls` is for merge patches. */
export function decodeObject(tree: Tree, type: string, options: { keepNulls?: boolean } = {}): Decoded {
  const decoder = new Decoder(options.keepNulls ?? false);
  const value = decoder.value(tree, type, "");
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isMap && decoder.wrong.length === 0) decoder.wrong.push("the text is not an object");
  return { value: isMap ? value : {}, unknown: decoder.unknown, wrong: decoder.wrong };
}

class Decoder {
  readonly unknown: string[] = [];
  readonly wrong: string[] = [];
  constructor(private readonly keepNulls: boolean) {}

  /** Undefined: nothing to keep. */
  value(tree: Tree, typeText: string, path: string): Json | undefined {
    const type = typeText.endsWith("!") ? typeText.slice(0, -1) : typeText;
    if (tree === null) return this.keepNulls ? null : undefined;
    if (type.startsWith("[]")) return this.#list(tree, type.slice(2), path);
    if (type.startsWith("{}")) return this.#map(tree, type.slice(2), path);
    const fields = Object.hasOwn(schema, type) ? schema[type] : undefined;
    return fields === undefined ? this.#scalar(tree, type, path) : this.#object(tree, fields, path);
  }

  #refuse(path: string, wanted: string, tree: Tree): undefined {
    this.wrong.push(`${path === "" ? "the text" : path} must be ${wanted}, not ${describe(tree)}`);
    return undefined;
  }

  #list(tree: Tree, type: string, path: string): Json | undefined {
    if (!Array.isArray(tree)) return this.#refuse(path, "a list", tree);
    const list: Json[] = [];
    tree.forEach((item: Tree, index) => {
      const value = this.value(item, type, `${path}[${index}]`);
      list.push(value === undefined || value === null ? zeroOf(type) : value);
    });
    return list;
  }

  #map(tree: Tree, type: string, path: string): Json | undefined {
    if (!(tree instanceof Map)) return this.#refuse(path, "a map", tree);
    const map: JsonObject = {};
    for (const [key, item] of tree as ReadonlyMap<string, Tree>) {
      const value = this.value(item, type, `${path}[${JSON.stringify(key.slice(0, 80))}]`);
      if (value !== undefined) setKey(map, key, value);
      else if (item === null) setKey(map, key, zeroOf(type));
    }
    return map;
  }

  #object(tree: Tree, fields: Record<string, string>, path: string): Json | undefined {
    if (!(tree instanceof Map)) return this.#refuse(path, "a map of fields", tree);
    const object: JsonObject = {};
    for (const [key, item] of tree as ReadonlyMap<string, Tree>) {
      const at = path === "" ? key.slice(0, 80) : `${path}.${key.slice(0, 80)}`;
      const type = Object.hasOwn(fields, key) ? fields[key] : undefined;
      if (type === undefined) {
        this.unknown.push(`${at}${didYouMean(key, Object.keys(fields), { before: this.unknown.length })}`);
        continue;
      }
      const value = this.value(item, type, at);
      if (value !== undefined) setKey(object, key, value);
    }
    return object;
  }

  #scalar(tree: Tree, type: string, path: string): Json | undefined {
    switch (type) {
      case "bool":
        return typeof tree === "boolean" ? tree : this.#refuse(path, "true or false", tree);
      case "int32":
      case "int64":
      case "uint32": {
        const [min, max] = ranges[type] ?? [0, 0];
        if (typeof tree === "number" && Number.isInteger(tree) && tree >= min && tree <= max) return tree;
        return this.#refuse(path, `a whole number from ${min} to ${max}`, tree);
      }
      case "float":
        return typeof tree === "number" && Number.isFinite(tree) ? tree : this.#refuse(path, "a number", tree);
      case "duration":
        return this.#duration(tree, path);
      case "flush": // a duration or, as older files have it, nanoseconds
        if (typeof tree === "number" && Number.isSafeInteger(tree)) return tree;
        return this.#duration(tree, path);
      case "quantity":
        if (typeof tree !== "string" && typeof tree !== "number") return this.#refuse(path, "a quantity", tree);
        return this.#attempt(() => canonicalQuantity(tree, { what: path }));
      case "time":
        if (typeof tree === "string" && !Number.isNaN(Date.parse(tree))) return tree;
        return this.#refuse(path, "a time such as 2026-01-31T12:00:00Z", tree);
      default:
        return typeof tree === "string" ? tree : this.#refuse(path, "a string (put it in quotes)", tree);
    }
  }

  #duration(tree: Tree, path: string): Json | undefined {
    if (typeof tree !== "string") return this.#refuse(path, "a duration such as 1m30s", tree);
    return this.#attempt(() => formatDurationNanos(parseDurationNanos(tree, { what: path })));
  }

  #attempt(read: () => string): string | undefined {
    try {
      return read();
    } catch (thrown) {
      this.wrong.push(messageOf(thrown));
      return undefined;
    }
  }
}

/** What a null in a list or map stands for. */
function zeroOf(type: string): Json {
  if (type.startsWith("[]")) return [];
  if (type === "string" || type === "duration") return "";
  if (type === "bool") return false;
  return /^(u?int|float)/.test(type) ? 0 : type === "quantity" ? "0" : {};
}

function describe(tree: Tree): string {
  if (tree === null) return "null";
  if (Array.isArray(tree)) return "a list";
  if (tree instanceof Map) return "a map";
  const text = typeof tree === "string" ? JSON.stringify(tree) : String(tree);
  const shown = text.length > 64 ? `${text.slice(0, 64)}…` : text;
  return typeof tree === "string" ? `the string ${shown}` : shown;
}
