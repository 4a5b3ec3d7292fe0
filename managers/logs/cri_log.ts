import { concatBytes } from "../../mod/base/bytes.ts";
/** The log format of CRI runtimes: one line `<time> <stream> <tags> <content>` for each write, or part of one. */

/** One line of a CRI log. */
export interface CriLine {
  /** RFC 3339 with nanoseconds, as written. */
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** True when the line goes on in the next one of its stream. */
  readonly partial: boolean;
  /** The content; with its line end unless the line is partial. */
  readonly content: Uint8Array;
}

const space = 0x20;
const newline = 0x0a;
const ascii = new TextDecoder("latin1");
/** Bytes that time, stream and tags take at most; what has no content by then is no CRI line. */
const longestHeader = 256;

/** Reads one line, its line end included when it had one. Undefined for what is not in the format. */
export function parseCriLine(line: Uint8Array): CriLine | undefined {
  const head = line.subarray(0, longestHeader);
  const first = head.indexOf(space);
  const second = head.indexOf(space, first + 1);
  const third = head.indexOf(space, second + 1);
  if (first < 0 || second < 0 || third < 0) return undefined;
  const time = ascii.decode(head.subarray(0, first));
  const stream = ascii.decode(head.subarray(first + 1, second));
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(time)) return undefined;
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  const partial = ascii.decode(head.subarray(second + 1, third)).split(":")[0] === "P";
  const end = partial && line.at(-1) === newline ? line.length - 1 : line.length;
  return { time, stream, partial, content: line.subarray(third + 1, end) };
}

/** Cuts text into lines, each with its line end; the last may lack it. */
export function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(newline, at);
    const next = end < 0 ? bytes.length : end + 1;
    lines.push(bytes.subarray(at, next));
    at = next;
  }
  return lines;
}

/**
 * The content of the last `maxLines` lines of a log, cut to its last `maxBytes` bytes. `tail` is the end of the file;
 * `cut` tells that the file begins before it, so that its first line is the end of some line. Lines that are not in
 * the format are left out.
 */
export function lastContent(
  tail: Uint8Array,
  options: { maxLines: number; maxBytes: number; cut: boolean },
): Uint8Array {
  const { maxLines, maxBytes, cut } = options;
  const lines = splitLines(tail);
  const parts: Uint8Array[] = [];
  let size = 0;
  for (let i = lines.length - 1; i >= 0 && lines.length - i <= maxLines && size < maxBytes; i--) {
    const line = lines[i];
    if (!line) continue;
    // Of the cut line only what cannot belong to its header is known to be content.
    const content = cut && i === 0 ? line.subarray(Math.min(line.length, longestHeader)) : parseCriLine(line)?.content;
    if (!content) continue;
    parts.unshift(content);
    size += content.length;
  }
  return concatBytes(parts).subarray(Math.max(0, size - maxBytes));
}
