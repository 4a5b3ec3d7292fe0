import type { Instant } from "./reader_types.ts";

const zero = 0x30;
const plus = 0x2b;
const minus = 0x2d;
const dot = 0x2e;
const comma = 0x2c;
const colon = 0x3a;
const upperT = 0x54;
const upperZ = 0x5a;

/** Days of the months before each month of a common year. */
const daysBefore = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334] as const;
const monthLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/**
 * A time stamp of a log line, read from bytes without making text of it: there are half a million of them a second.
 * One object is used for all lines.
 */
export class Stamp {
  #bytes: Uint8Array = new Uint8Array();
  #at = 0;
  #fraction = 0;
  #digits = 0;
  #zone = 0;
  #end = 0;

  /**
   * Reads the RFC 3339 stamp in bytes `at` to `end`, any number of fractional digits. False for anything else; the
   * object must then not be used.
   */
  read(bytes: Uint8Array, at: number, end: number): boolean {
    // YYYY-MM-DDTHH:MM:SS and a zone of at least one byte.
    if (end - at < 20) return false;
    for (let i = 0; i < 19; i++) {
      const c = bytes[at + i]!;
      if (i === 4 || i === 7) {
        if (c !== minus) return false;
      } else if (i === 10) {
        if (c !== upperT) return false;
      } else if (i === 13 || i === 16) {
        if (c !== colon) return false;
      } else if (!isDigit(c)) return false;
    }
    let i = at + 19;
    const mark = bytes[i];
    this.#fraction = this.#digits = 0;
    if (mark === dot || mark === comma) {
      i++;
      this.#fraction = i;
      while (i < end && isDigit(bytes[i]!)) i++;
      this.#digits = i - this.#fraction;
      if (this.#digits === 0) return false;
    }
    this.#zone = i;
    if (bytes[i] === upperZ ? end !== i + 1 : !isOffset(bytes, i, end)) return false;
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
    return this.#valid();
  }

  #two(at: number): number {
    return (this.#bytes[at]! - zero) * 10 + this.#bytes[at + 1]! - zero;
  }

  #year(): number {
    return this.#two(this.#at) * 100 + this.#two(this.#at + 2);
  }

  #valid(): boolean {
    const at = this.#at;
    const month = this.#two(at + 5);
    const day = this.#two(at + 8);
    if (month < 1 || month > 12 || day < 1) return false;
    const length = month === 2 && isLeap(this.#year()) ? 29 : monthLengths[month - 1]!;
    return day <= length && this.#two(at + 11) < 24 && this.#two(at + 14) < 60 && this.#two(at + 17) < 60;
  }

  /** Seconds of the zone's offset. */
  #offset(): number {
    const zone = this.#zone;
    if (this.#bytes[zone] === upperZ) return 0;
    const seconds = this.#two(zone + 1) * 3600 + this.#two(zone + 4) * 60;
    return this.#bytes[zone] === minus ? -seconds : seconds;
  }

  /** The moment that was read. */
  instant(): Instant {
    const at = this.#at;
    const year = this.#year();
    const month = this.#two(at + 5);
    const past = year - 1;
    const days = past * 365 + Math.floor(past / 4) - Math.floor(past / 100) + Math.floor(past / 400) - 719_162 +
      daysBefore[month - 1]! + (month > 2 && isLeap(year) ? 1 : 0) + this.#two(at + 8) - 1;
    let nanos = 0;
    for (let i = 0; i < 9; i++) {
      nanos = nanos * 10 + (i < this.#digits ? this.#bytes[this.#fraction + i]! - zero : 0);
    }
    const seconds = this.#two(at + 11) * 3600 + this.#two(at + 14) * 60 + this.#two(at + 17) - this.#offset();
    return { seconds: days * 86_400 + seconds, nanos };
  }

  /** True when the moment that was read is before this one. */
  before(other: Instant): boolean {
    const { seconds, nanos } = this.instant();
    return seconds < other.seconds || (seconds === other.seconds && nanos < other.nanos);
  }

  /** Most bytes that `write` takes. */
  static readonly longest = 19 + 10 + 6;

  /** Writes the stamp with nine fractional digits and its own zone, UTC as Z. Returns the place behind it. */
  write(into: Uint8Array, place: number): number {
    const bytes = this.#bytes;
    for (let i = 0; i < 19; i++) into[place + i] = bytes[this.#at + i]!;
    into[place + 19] = dot;
    for (let i = 0; i < 9; i++) into[place + 20 + i] = i < this.#digits ? bytes[this.#fraction + i]! : zero;
    let next = place + 29;
    if (this.#offset() === 0) into[next++] = upperZ;
    else for (let i = this.#zone; i < this.#end; i++) into[next++] = bytes[i]!;
    return next;
  }
}

function isDigit(c: number): boolean {
  return c >= zero && c <= zero + 9;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function isOffset(bytes: Uint8Array, at: number, end: number): boolean {
  const sign = bytes[at];
  if (end !== at + 6 || (sign !== plus && sign !== minus) || bytes[at + 3] !== colon) return false;
  for (const i of [1, 2, 4, 5]) if (!isDigit(bytes[at + i]!)) return false;
  const hours = (bytes[at + 1]! - zero) * 10 + bytes[at + 2]! - zero;
  const minutes = (bytes[at + 4]! - zero) * 10 + bytes[at + 5]! - zero;
  return hours < 24 && minutes < 60;
}

/** The moment that RFC 3339 text tells, or undefined for anything else. */
export function instantOf(text: string): Instant | undefined {
  const bytes = new TextEncoder().encode(text);
  const stamp = new Stamp();
  return stamp.read(bytes, 0, bytes.length) ? stamp.instant() : undefined;
}
