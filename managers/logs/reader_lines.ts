import { KubeletError } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { Stamp } from "./reader_stamp.ts";
import type { LogOptions } from "./reader_types.ts";

const newline = 0x0a;
const space = 0x20;
const colon = 0x3a;
const letterP = 0x50;
const utf8 = new TextEncoder();
const text = new TextDecoder();
const stdout = utf8.encode("stdout");
const stderr = utf8.encode("stderr");
/** What a Docker line without a time has. */
const noTime = "0001-01-01T00:00:00Z";

/** A line of which the beginning was given out before its end was there. */
interface OpenLine {
  readonly write: boolean;
  readonly partial: boolean;
}

/**
 * Turns the bytes of a log file into what the reader of the log gets: headers off, stamps on, old lines, lines of the
 * other stream and lines that are none left out, limits kept. Knows nothing of files.
 *
 * Formats: CRI (`<time> <stream> <tags> <content>`, where the tag P means that the line goes on in the next) and
 * Docker's JSON lines; the first line decides.
 */
export class LogLines {
  readonly #o: LogOptions;
  readonly #log: Logger;
  readonly #stamp = new Stamp();
  /** Lines that may still be given; a followed log has no such end. */
  #left: number;
  /** Bytes that may still be given. */
  #room: number;
  #format: "cri" | "json" | undefined;
  /** True when the next content begins a line. */
  #newLine = true;
  #open: OpenLine | undefined;
  #complained = false;
  #out = new Uint8Array();
  #filled = 0;

  constructor(options: LogOptions, log: Logger) {
    this.#o = options;
    this.#log = log;
    this.#left = options.tailLines !== undefined && !options.follow ? options.tailLines : Infinity;
    this.#room = options.limitBytes ?? Infinity;
  }

  /** True when a limit was reached: nothing more will be given out. */
  get done(): boolean {
    return this.#left <= 0 || this.#room <= 0;
  }

  /**
   * Takes bytes that follow those taken before; returns how many it took: up to the end of the last whole line, or all
   * with `last`. What it did not take must be given again, with more behind it.
   * @param last no more bytes come: an unfinished line is taken as it is
   */
  take(data: Uint8Array, last: boolean): number {
    this.#reserve(data.length);
    let at = 0;
    while (at < data.length && !this.done) {
      const found = data.indexOf(newline, at);
      if (found < 0 && !last) break;
      const end = found < 0 ? data.length : found + 1;
      this.#line(data, at, end, true);
      at = end;
    }
    return at;
  }

  /**
   * Takes the beginning of a line whose end is not there yet. False when the line can only be read whole: more of it
   * must be collected.
   */
  takeBeginning(data: Uint8Array): boolean {
    if (!this.#open && this.#formatOf(data) === "json") return false;
    this.#reserve(data.length);
    this.#line(data, 0, data.length, false);
    return true;
  }

  /** Leaves out the rest of the line at hand, whose beginning was never taken. */
  skipLine(): void {
    this.#complain("a line is too long to be read", new Uint8Array());
    this.#open = { write: false, partial: false };
  }

  /** What there is to give out; empty when there is nothing. */
  output(): Uint8Array {
    const out = this.#out.subarray(0, this.#filled);
    this.#out = new Uint8Array();
    this.#filled = 0;
    return out;
  }

  #formatOf(data: Uint8Array): "cri" | "json" {
    if (this.#format) return this.#format;
    const end = data.indexOf(newline);
    const line = end < 0 ? data : data.subarray(0, end + 1);
    if (this.#header(line, 0, line.length) >= 0) return this.#format = "cri";
    // Too long for a look at the whole: what begins an object is taken for one.
    if (end < 0 ? line[0] === 0x7b : dockerLine(line) !== undefined) return this.#format = "json";
    throw new KubeletError(
      "Host",
      `failed to get parse function: unsupported log format: ${JSON.stringify(text.decode(line.subarray(0, 200)))}`,
    );
  }

  #stream: "stdout" | "stderr" = "stdout";
  #partial = false;

  /** Reads a CRI header into stamp, stream and partial; returns where the content begins, or -1 when it is none. */
  #header(data: Uint8Array, at: number, end: number): number {
    const first = data.indexOf(space, at);
    if (first < 0 || first >= end || !this.#stamp.read(data, at, first)) return -1;
    if (matches(data, first + 1, end, stdout)) this.#stream = "stdout";
    else if (matches(data, first + 1, end, stderr)) this.#stream = "stderr";
    else return -1;
    const tags = first + 2 + stdout.length;
    if (tags > end || data[tags - 1] !== space) return -1;
    let content = tags;
    while (content < end && data[content] !== space) content++;
    if (content >= end) return -1;
    this.#partial = data[tags] === letterP && (content === tags + 1 || data[tags + 1] === colon);
    return content + 1;
  }

  #line(data: Uint8Array, at: number, end: number, ends: boolean): void {
    if (this.#open) return this.#content(this.#open, data, at, end, ends);
    const format = this.#format ?? this.#formatOf(data.subarray(at));
    if (format === "json") return this.#json(data.subarray(at, end));
    const begin = this.#header(data, at, end);
    if (begin < 0) {
      this.#complain("a line is not in the log's format", data.subarray(at, end));
      // The rest of it belongs to it.
      if (!ends) this.#open = { write: false, partial: false };
      return;
    }
    const write = this.#wanted(this.#stream);
    if (write) this.#prefix();
    this.#content({ write, partial: this.#partial }, data, begin, end, ends);
  }

  #json(line: Uint8Array): void {
    const found = dockerLine(line);
    if (!found) return this.#complain("a line is not in the log's format", line);
    const time = utf8.encode(found.time);
    if (!this.#stamp.read(time, 0, time.length)) return this.#complain("a line's time cannot be read", line);
    const content = utf8.encode(found.log);
    const write = this.#wanted(found.stream);
    if (write) {
      this.#reserve(content.length);
      this.#prefix();
    }
    this.#content({ write, partial: false }, content, 0, content.length, true);
  }

  #wanted(stream: "stdout" | "stderr"): boolean {
    const { since } = this.#o;
    if (this.#o.stream !== undefined && this.#o.stream !== stream) return false;
    return since === undefined || !this.#stamp.before(since);
  }

  #prefix(): void {
    if (!this.#o.timestamps || !this.#newLine) return;
    this.#reserve(Stamp.longest + 1);
    const end = this.#stamp.write(this.#out, this.#filled);
    this.#out[end] = space;
    const length = Math.min(end + 1 - this.#filled, this.#room);
    this.#filled += length;
    this.#room -= length;
  }

  #content(line: OpenLine, data: Uint8Array, at: number, end: number, ends: boolean): void {
    const to = line.partial && end > at && data[end - 1] === newline ? end - 1 : end;
    if (line.write) this.#give(data, at, to);
    // A part that ended with its header has no content, and what is left of an open line may be its newline alone.
    this.#newLine = to > at ? data[to - 1] === newline : !this.#open;
    this.#open = ends ? undefined : line;
    if (ends) this.#left--;
  }

  #give(data: Uint8Array, at: number, end: number): void {
    const to = Math.min(end, at + this.#room);
    const length = to - at;
    if (length <= 0) return;
    this.#reserve(length);
    // Short lines are many, and copying them byte by byte is quicker than making views for it.
    if (length < 48) { for (let i = 0; i < length; i++) this.#out[this.#filled + i] = data[at + i]!; }
    else this.#out.set(data.subarray(at, to), this.#filled);
    this.#filled += length;
    this.#room -= length;
  }

  #reserve(bytes: number): void {
    if (this.#filled + bytes <= this.#out.length) return;
    const grown = new Uint8Array(Math.max(this.#filled + bytes + 256, this.#out.length + (this.#out.length >> 2)));
    grown.set(this.#out.subarray(0, this.#filled));
    this.#out = grown;
  }

  #complain(what: string, line: Uint8Array): void {
    if (this.#complained) return;
    this.#complained = true;
    this.#log.warn(`container log: ${what}; it is left out`, { line: text.decode(line.subarray(0, 200)) });
  }
}

function matches(data: Uint8Array, at: number, end: number, word: Uint8Array): boolean {
  if (at + word.length > end) return false;
  for (let i = 0; i < word.length; i++) if (data[at + i] !== word[i]) return false;
  return true;
}

/** Reads a Docker JSON line; undefined for what is none. */
function dockerLine(line: Uint8Array): { log: string; stream: "stdout" | "stderr"; time: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text.decode(line));
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { log = "", stream, time = noTime } = value as Record<string, unknown>;
  if (typeof log !== "string" || typeof time !== "string") return undefined;
  return stream === "stdout" || stream === "stderr" ? { log, stream, time } : undefined;
}
