import { isIP } from "node:net";
import { formatDurationNanos, parseDurationNanos } from "../../base/duration.ts";
import { KubeletError } from "../../base/errors.ts";
import { canonicalQuantity } from "../../kube/quantity.ts";
import type { FlagKind } from "./field_spec.ts";
import { isObject, type Json, type JsonObject, setKey } from "./json.ts";
import { parseTaints } from "./taints.ts";

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...["1", "t", "T", "TRUE", "true", "True"].map((text) => [text, true] as const),
  ...["0", "f", "F", "FALSE", "false", "False"].map((text) => [text, false] as const),
]);

function fail(message: string): never {
  throw new KubeletError("BadConfig", message);
}

/** A boolean in any of Go's spellings. */
export function parseBool(text: string): boolean {
  return booleans.get(text) ?? fail("must be true or false");
}

/** A whole number in Go's syntax for base 0: `10`, `0x1f`, `0b1`, `0o17`, `017`, `1_000`. */
function parseInteger(text: string, min: bigint, max: bigint): number {
  const match = /^([+-]?)(0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/.exec(text);
  if (match === null) fail("must be a whole number");
  const digits = (match[2] ?? "").replaceAll("_", "").replace(/^0(?=[0-7])/, "0o");
  const value = match[1] === "-" ? -BigInt(digits) : BigInt(digits);
  return value >= min && value <= max ? Number(value) : fail(`must be from ${min} to ${max}`);
}

function parseLevel(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > 2 ** 31 - 1) fail("must be a whole number from 0 to 2147483647");
  return Number(text);
}

/** Comma separated values, quoted ones as in CSV. */
function parseList(text: string): string[] {
  if (text === "") return [];
  if (!text.includes('"')) return text.split(",");
  const list: string[] = [];
  const item = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = item.exec(text);
    if (match === null) fail('has a quote out of place (write "a,b" or "a ""quoted"" word")');
    list.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (match[3] === "") return list;
    if (item.lastIndex === text.length) return [...list, ""];
  }
}

function pairs(text: string, separator: string): [string, string][] {
  return text.split(",").filter((part) => part !== "").map((part) => pair(part, separator));
}

function pair(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  if (at < 0) fail(`has ${JSON.stringify(text.slice(0, 80))}, which is not of the form key${separator}value`);
  return [text.slice(0, at).trim(), text.slice(at + separator.length).trim()];
}

function into(before: Json | undefined, found: [string, Json][]): JsonObject {
  const map: JsonObject = isObject(before) ? before : {};
  for (const [key, value] of found) setKey(map, key, value);
  return map;
}

function parseVmodule(text: string): Json[] {
  return text.split(",").filter((part) => part !== "").map((part) => {
    const [filePattern = "", level = "", ...rest] = part.split("=");
    if (filePattern === "" || level === "" || rest.length > 0) {
      fail(`has ${JSON.stringify(part)}, which is not pattern=N`);
    }
    return { filePattern, verbosity: parseLevel(level) };
  });
}

function parseReservedMemory(text: string): Json[] {
  return text.split(";").map((part) => {
    const match = /^(\d{1,9}):(.+)$/.exec(part);
    if (match === null) {
      fail(`has ${JSON.stringify(part.slice(0, 80))}, which is not node:type=quantity[,type=quantity…]`);
    }
    const limits: JsonObject = {};
    for (const [type, quantity] of pairs(match[2] ?? "", "=")) {
      if (type !== "memory" && !type.startsWith("hugepages-")) {
        fail(`has the type ${type}; it must be memory or hugepages-SIZE`);
      }
      setKey(limits, type, canonicalQuantity(quantity, { what: type }));
    }
    return { numaNode: Number(match[1]), limits };
  });
}

/** An IP address; leading zeros in IPv4 parts are taken as decimal, as the reference does. */
export function isIpAddress(text: string): boolean {
  return isIP(text.replace(/^(\d+\.){3}\d+$/, (v4) => v4.split(".").map((part) => `${Number(part)}`).join("."))) !== 0;
}

const INT32 = [-(2n ** 31n), 2n ** 31n - 1n] as const;
const INT64 = [BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)] as const;

/**
 * Reads one text of a flag in pflag's syntax for its kind, after `before`, the value of the texts that came earlier:
 * lists and maps grow, other kinds are replaced. Throws a KubeletError whose message goes on after the flag's name.
 */
export function parseFlagValue(kind: FlagKind, text: string, before: Json | undefined): Json {
  switch (kind) {
    case "bool":
      return parseBool(text);
    case "int32":
      return parseInteger(text, ...INT32);
    case "int64":
      return parseInteger(text, ...INT64);
    case "level":
      return parseLevel(text);
    case "string":
      return text;
    case "version":
      return text === "raw" || text.startsWith("v") ? text : parseBool(text);
    case "duration":
      return formatDurationNanos(parseDurationNanos(text));
    case "quantity":
      return canonicalQuantity(text);
    case "ip":
      return isIpAddress(text) ? text : fail("must be an IP address");
    case "list":
      return [...(Array.isArray(before) ? before : []), ...parseList(text)];
    case "map":
      return into(before, pairs(text, "="));
    case "mapEntry":
      return into(before, [pair(text, "=")]);
    case "thresholds":
      return into(before, pairs(text, "<"));
    case "gates":
      return into(before, pairs(text, "=").map(([name, on]) => [name, gate(name, on)]));
    case "headers": {
      const map: JsonObject = isObject(before) ? before : {};
      for (const [name, value] of pairs(text, ":")) {
        const values = Object.hasOwn(map, name) ? map[name] : undefined;
        setKey(map, name, [...(Array.isArray(values) ? values : []), value]);
      }
      return map;
    }
    case "vmodule":
      return [...(Array.isArray(before) ? before : []), ...parseVmodule(text)];
    case "taints":
      return parseTaints(text);
    case "reservedMemory":
      return text === "" ? [] : [...(Array.isArray(before) ? before : []), ...parseReservedMemory(text)];
  }
}

function gate(name: string, text: string): boolean {
  return booleans.get(text) ??
    fail(`sets ${name} to ${JSON.stringify(text.slice(0, 40))}, which is neither true nor false`);
}
