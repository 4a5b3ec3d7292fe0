import { type ErrorCode, KubeletError } from "./errors.ts";

/** How a failed parse reports itself. */
export interface ParseDurationOptions {
  /** What the duration is for, such as `syncFrequency`; opens the message. */
  readonly what?: string;
  /** Code of the error; default BadConfig. */
  readonly code?: ErrorCode;
}

const unitNanos: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n],
  ["us", 1_000n],
  ["µs", 1_000n], // U+00B5, the micro sign
  ["μs", 1_000n], // U+03BC, the Greek letter
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);
const MAX_NANOS = 2n ** 63n - 1n;
const MAX_LENGTH = 256;
const term = /(\d*)(?:\.(\d*))?([^\d.]+)/y;

function refuse(text: string, reason: string, options: ParseDurationOptions): never {
  const shown = text.length > 64 ? `${text.slice(0, 64)}…` : text;
  const what = options.what === undefined ? "duration" : `${options.what}: duration`;
  throw new KubeletError(
    options.code ?? "BadConfig",
    `${what} ${JSON.stringify(shown)} ${reason}; write numbers with units (ns us ms s m h), for example 1m30s or 100ms`,
  );
}

/**
 * Reads a duration in Go's syntax (`1h2m3.5s`, `100ms`, `-1s`, `0`) as nanoseconds, exact.
 * Throws a KubeletError that quotes the text and says what is allowed.
 */
export function parseDurationNanos(text: string, options: ParseDurationOptions = {}): bigint {
  if (text.length > MAX_LENGTH) refuse(text, `is longer than ${MAX_LENGTH} characters`, options);
  const negative = text.startsWith("-");
  const body = negative || text.startsWith("+") ? text.slice(1) : text;
  if (body === "") refuse(text, "is empty", options);
  if (body === "0") return 0n;
  let total = 0n;
  term.lastIndex = 0;
  while (term.lastIndex < body.length) {
    const match = term.exec(body);
    if (match === null) {
      refuse(text, /[\d.]$/.test(body) ? "has a number without a unit" : "is not a list of numbers and units", options);
    }
    const [, whole = "", fraction = "", unit = ""] = match;
    if (whole === "" && fraction === "") refuse(text, "has a unit without a number", options);
    const nanos = unitNanos.get(unit);
    if (nanos === undefined) refuse(text, `has the unknown unit ${JSON.stringify(unit.slice(0, 16))}`, options);
    total += BigInt(whole || "0") * nanos;
    if (fraction !== "") total += (BigInt(fraction) * nanos) / 10n ** BigInt(fraction.length);
    if (total > MAX_NANOS + (negative ? 1n : 0n)) refuse(text, "is too long (the limit is about 292 years)", options);
  }
  return negative ? -total : total;
}

/** As parseDurationNanos, in milliseconds; sub-millisecond parts stay as a fraction. */
export function parseDuration(text: string, options?: ParseDurationOptions): number {
  return Number(parseDurationNanos(text, options)) / 1e6;
}

function withFraction(nanos: bigint, unit: bigint): string {
  const fraction = (nanos % unit).toString().padStart(unit.toString().length - 1, "0").replace(/0+$/, "");
  return fraction === "" ? `${nanos / unit}` : `${nanos / unit}.${fraction}`;
}

/** Nanoseconds as Go prints a duration: `1m0s`, `1.5s`, `100ms`, `0s`. */
export function formatDurationNanos(nanos: bigint): string {
  if (nanos === 0n) return "0s";
  const sign = nanos < 0n ? "-" : "";
  const rest = nanos < 0n ? -nanos : nanos;
  if (rest < 1_000n) return `${sign}${rest}ns`;
  if (rest < 1_000_000n) return `${sign}${withFraction(rest, 1_000n)}µs`;
  if (rest < 1_000_000_000n) return `${sign}${withFraction(rest, 1_000_000n)}ms`;
  const hours = rest / 3_600_000_000_000n;
  const minutes = (rest / 60_000_000_000n) % 60n;
  const seconds = `${withFraction(rest % 60_000_000_000n, 1_000_000_000n)}s`;
  if (hours > 0n) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0n ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** Milliseconds as Go prints a duration. A number that is not finite prints as `0s`. */
export function formatDuration(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? formatDurationNanos(BigInt(Math.round(milliseconds * 1e6))) : "0s";
}
