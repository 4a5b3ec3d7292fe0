import type { LogFields } from "../base/log.ts";

/** One line to be written. */
export interface LogLine {
  readonly severity: "I" | "W" | "E";
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly message: string;
  readonly fields: LogFields;
  /** Verbosity of a detail line; 0 otherwise. */
  readonly verbosity: number;
  readonly pid: number;
  /** The part of the agent that speaks. */
  readonly component: string;
}

const masked = "<masked>";
/** Names of fields whose values never reach a log. */
const secretName =
  /(token|password|passwd|authorization|credentials?|private[-_]?key|client[-_]?secret|api[-_]?key|cookie)$/i;
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
const MAX_TEXT = 16_384;

function clip(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

/**
 * A value as JSON can hold it: secrets masked, errors as their message and causes, cycles and depth cut. Getters that
 * throw, hostile proxies and the like give a note, never an exception.
 */
export function plain(value: unknown, depth = 0): unknown {
  try {
    return plainOf(value, depth);
  } catch {
    return "<unprintable>";
  }
}

function plainOf(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return clip(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "undefined":
      return null;
    case "bigint":
      return value.toString();
    case "symbol":
    case "function":
      return `<${typeof value}>`;
    case "object":
      break;
  }
  if (value === null) return null;
  if (value instanceof Error) {
    const cause = value.cause === undefined || depth >= MAX_DEPTH ? "" : `: ${String(plain(value.cause, depth + 1))}`;
    return clip(`${value.message}${cause}`);
  }
  if (depth >= MAX_DEPTH) return "…";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  if (Array.isArray(value) || value instanceof Set) {
    return [...value].slice(0, MAX_ITEMS).map((item) => plain(item, depth + 1));
  }
  const entries: [string, unknown][] = value instanceof Map
    ? [...value].map(([key, item]) => [String(key), item])
    : Object.entries(value);
  return Object.fromEntries(
    entries.slice(0, MAX_ITEMS).map(([key, item]) => [key, secretName.test(key) ? masked : plain(item, depth + 1)]),
  );
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, "0");
}

/** The value part of a text line: words and numbers bare, everything else as JSON. */
function textValue(value: unknown): string {
  return typeof value === "string" || typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A line as klog heads it: severity, MMDD hh:mm:ss.uuuuuu, process id, component; then the message and key=value. */
export function textLine(line: LogLine): string {
  const at = new Date(line.at);
  const micros = Math.floor(((line.at % 1000) + 1000) % 1000 * 1000);
  const stamp =
    `${pad(at.getMonth() + 1, 2)}${pad(at.getDate(), 2)} ${pad(at.getHours(), 2)}:${pad(at.getMinutes(), 2)}:` +
    `${pad(at.getSeconds(), 2)}.${pad(micros, 6)}`;
  let text = `${line.severity}${stamp} ${String(line.pid).padStart(7)} ${line.component}] ${
    JSON.stringify(clip(line.message))
  }`;
  for (const [key, value] of fieldsOf(line)) text += ` ${key}=${textValue(value)}`;
  return text;
}

/** A line as the reference's JSON format has it: `ts` in milliseconds, `v` on info lines, `err` for errors. */
export function jsonLine(line: LogLine): string {
  const object: Record<string, unknown> = { ts: line.at, caller: line.component, msg: clip(line.message) };
  if (line.severity !== "E") object.v = line.verbosity;
  if (line.severity === "W") object.level = "warning";
  for (const [key, value] of fieldsOf(line)) object[key === "error" ? "err" : key] = value;
  return JSON.stringify(object);
}

function fieldsOf(line: LogLine): [string, unknown][] {
  const fields = plain(line.fields);
  if (typeof fields !== "object" || fields === null) return [["fields", fields]];
  return Object.entries(fields).filter(([key]) => key !== "component");
}
