import { type ErrorCode, KubeletError } from "../base/errors.ts";

/** How a quantity prints: `12M`, `12Mi` or `12e6`. */
export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/** A fixed-point number with nano resolution, as the Kubernetes API defines quantities. */
export interface Quantity {
  /** The value in billionths: exact, of any size. */
  readonly nano: bigint;
  readonly format: QuantityFormat;
  /** The text it was read from, when the API would print exactly that again. */
  readonly text?: string;
}

/** How a failed parse reports itself. */
export interface ParseQuantityOptions {
  /** What the quantity is for, such as `spec.containers[0].resources.limits.cpu`; opens the message. */
  readonly what?: string;
  /** Code of the error; default BadConfig. */
  readonly code?: ErrorCode;
}

const NANO = 1_000_000_000n;
const MAX_INT64 = 2n ** 63n - 1n;
const MIN_INT64 = -(2n ** 63n);
/** Longer texts are no quantities; the limit keeps hostile input cheap. */
const MAX_LENGTH = 128;
/** A quantity of more digits than this before the point is refused; int64, the API's limit, has 19. */
const MAX_EXPONENT = 64;

const decimalSuffixes: ReadonlyMap<string, number> = new Map(
  Object.entries({ n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }),
);
const binarySuffixes: ReadonlyMap<string, number> = new Map(
  Object.entries({ Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }),
);
const decimalByExponent = new Map([...decimalSuffixes].map(([suffix, exponent]) => [exponent, suffix]));
const binaryByExponent = new Map([...binarySuffixes].map(([suffix, exponent]) => [exponent, suffix]));

const shape = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[+-]?\d*)$/;

/** Zero, as the API prints it. */
export const zeroQuantity: Quantity = { nano: 0n, format: "DecimalSI" };

/** Divides rounding away from zero, the way the API rounds quantities "up". */
function divideAway(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  if (value % divisor === 0n) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

function refuse(text: string, reason: string, options: ParseQuantityOptions): never {
  const shown = text.length > 64 ? `${text.slice(0, 64)}…` : text;
  const what = options.what === undefined ? "quantity" : `${options.what}: quantity`;
  throw new KubeletError(
    options.code ?? "BadConfig",
    `${what} ${JSON.stringify(shown)} ${reason}; write a number with an optional suffix ` +
      "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3), for example 500m, 1.5 or 256Mi",
  );
}

/** Keeps the text under the rule by which the API keeps it instead of printing the canonical form. */
function keepsText(digits: string, format: QuantityFormat, exponent: number, fraction: string): boolean {
  const whole = digits.slice(0, digits.length - fraction.length);
  if (format === "BinarySI") {
    const precision = 15 - whole.length - Math.trunc(exponent * 3 / 10) - 1;
    return fraction === "" && precision >= 0 && (BigInt(digits) & 7n) !== 0n;
  }
  const scale = exponent - fraction.length;
  return digits.length <= 18 && scale >= -9 && scale % 3 === 0 && !digits.endsWith("000") && !digits.startsWith("0");
}

/**
 * Reads a quantity: sign, digits, point, then a decimal suffix, a binary suffix or an exponent. A JSON number is taken
 * too. Finer than nano is rounded away from zero; binary quantities stop at the largest int64, as in the API.
 * Throws a KubeletError that quotes the text and says what is allowed.
 */
export function parseQuantity(input: string | number, options: ParseQuantityOptions = {}): Quantity {
  const text = String(input).trim();
  if (text === "") refuse(text, "is empty", options);
  if (text.length > MAX_LENGTH) refuse(text, `is longer than ${MAX_LENGTH} characters`, options);
  const match = shape.exec(text);
  if (match === null) refuse(text, "is not a number with a suffix", options);
  const [, sign = "", leading = "", fraction = "", suffix = ""] = match;
  if (leading === "" && fraction === "") refuse(text, "has no digits", options);
  const whole = leading.replace(/^0+/, "") || "0";
  const digits = whole + fraction;

  let exponent = decimalSuffixes.get(suffix);
  let format: QuantityFormat = "DecimalSI";
  if (exponent === undefined) {
    exponent = binarySuffixes.get(suffix);
    format = "BinarySI";
  }
  if (exponent === undefined && /^[eE][+-]?\d+$/.test(suffix)) {
    exponent = Number(suffix.slice(1));
    format = "DecimalExponent";
  }
  if (exponent === undefined) refuse(text, `has the unknown suffix ${JSON.stringify(suffix)}`, options);

  let magnitude = BigInt(digits);
  if (magnitude === 0n) return { nano: 0n, format };
  if (format === "BinarySI") {
    magnitude = divideAway(magnitude * NANO * 2n ** BigInt(exponent), 10n ** BigInt(fraction.length));
    if (magnitude > MAX_INT64 * NANO) magnitude = MAX_INT64 * NANO;
  } else {
    if (exponent + whole.length > MAX_EXPONENT) refuse(text, "is too large", options);
    const scale = exponent - fraction.length + 9;
    if (scale >= 0) magnitude *= 10n ** BigInt(scale);
    else if (scale < -2 * MAX_LENGTH) magnitude = 1n;
    else magnitude = divideAway(magnitude, 10n ** BigInt(-scale));
  }
  const nano = sign === "-" ? -magnitude : magnitude;
  if (keepsText(digits, format, exponent, fraction)) return { nano, format, text };
  if (format === "BinarySI" && magnitude < NANO) format = "DecimalSI";
  return { nano, format };
}

/** The quantity, or undefined when the text is none. */
export function tryParseQuantity(text: string | number): Quantity | undefined {
  try {
    return parseQuantity(text);
  } catch (thrown) {
    if (thrown instanceof KubeletError) return undefined;
    throw thrown;
  }
}

/** A whole number as a quantity. */
export function quantityOf(value: bigint | number, format: QuantityFormat = "DecimalSI"): Quantity {
  return { nano: BigInt(typeof value === "number" ? Math.ceil(value) : value) * NANO, format };
}

/** Thousandths (milli-CPUs) as a quantity. */
export function milliQuantityOf(value: bigint | number, format: QuantityFormat = "DecimalSI"): Quantity {
  return { nano: BigInt(typeof value === "number" ? Math.ceil(value) : value) * 1_000_000n, format };
}

function saturated(value: bigint): bigint {
  if (value > MAX_INT64) return MAX_INT64;
  return value < MIN_INT64 ? MIN_INT64 : value;
}

/** The whole value rounded up (away from zero), limited to int64, exact. */
export function valueBig(quantity: Quantity): bigint {
  return saturated(divideAway(quantity.nano, NANO));
}

/** Thousandths rounded up (away from zero), limited to int64, exact. */
export function milliValueBig(quantity: Quantity): bigint {
  return saturated(divideAway(quantity.nano, 1_000_000n));
}

/** The whole value (bytes, counts) rounded up; exact up to 2^53, the nearest number above. */
export function value(quantity: Quantity): number {
  return Number(valueBig(quantity));
}

/** Thousandths (milli-CPUs) rounded up; exact up to 2^53, the nearest number above. */
export function milliValue(quantity: Quantity): number {
  return Number(milliValueBig(quantity));
}

/** Negative, zero or positive as `a` is less than, equal to or more than `b`; the format doesn't matter. */
export function compareQuantities(a: Quantity, b: Quantity): -1 | 0 | 1 {
  return a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0;
}

/** The sum, in the format of `a` unless `a` is zero. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nano: a.nano + b.nano, format: a.nano === 0n ? b.format : a.format };
}

/** The difference `a − b`, in the format of `a` unless `a` is zero. */
export function subtractQuantities(a: Quantity, b: Quantity): Quantity {
  return { nano: a.nano - b.nano, format: a.nano === 0n ? b.format : a.format };
}

/** The text as the API prints it: `1024Mi` is `1Gi`, `0.5` is `500m`. */
export function formatQuantity(quantity: Quantity): string {
  if (quantity.text !== undefined) return quantity.text;
  const { nano, format } = quantity;
  if (nano === 0n) return "0";
  const whole = nano / NANO;
  const binary = format === "BinarySI" && nano % NANO === 0n && (whole <= -1024n || whole >= 1024n);
  if (binary) {
    let mantissa = whole;
    let exponent = 0;
    while (exponent < 60 && mantissa % 1024n === 0n) {
      mantissa /= 1024n;
      exponent += 10;
    }
    return `${mantissa}${binaryByExponent.get(exponent) ?? ""}`;
  }
  let mantissa = nano;
  let exponent = -9;
  const top = format === "DecimalExponent" ? Infinity : 18;
  while (exponent + 3 <= top && mantissa % 1000n === 0n) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (format === "DecimalExponent") return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${decimalByExponent.get(exponent) ?? ""}`;
}

/** The canonical text of a quantity's text; throws as parseQuantity does. */
export function canonicalQuantity(text: string | number, options?: ParseQuantityOptions): string {
  return formatQuantity(parseQuantity(text, options));
}
