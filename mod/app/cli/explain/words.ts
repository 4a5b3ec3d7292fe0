import { formatDuration } from "../../../base/duration.ts";

/** A stretch of time for people: two units at most, `5s`, `3m10s`, `2h5m`, `4d3h`. @param ms milliseconds */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [d, h, m, s] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const parts: [number, string][] = [[d, "d"], [h, "h"], [m, "m"], [s, "s"]];
  const first = parts.findIndex(([n]) => n > 0);
  if (first < 0) return "0s";
  return parts.slice(first, first + 2).filter(([n]) => n > 0).map(([n, unit]) => `${n}${unit}`).join("");
}

/** How long ago something was. @param at milliseconds since the epoch */
export function ago(at: number, now: number): string {
  return now - at < 1000 ? "just now" : `${span(now - at)} ago`;
}

/** Since when something is so, with a space before it; empty when that is not known, or only just so. */
export function since(at: number | undefined, now: number): string {
  return at === undefined || now - at < 1000 ? "" : ` since ${span(now - at)}`;
}

/** How long an action took, in the figures that matter. */
export function took(ms: number): string {
  return formatDuration(ms >= 1000 ? Math.round(ms / 100) * 100 : Math.round(ms));
}

/** A time of a status in milliseconds; undefined when it is none. */
export function timeOf(text: string | undefined): number | undefined {
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) || at <= 0 ? undefined : at;
}

/**
 * A text on one line, without control characters, of a length that can be read. What is too much is left out of the
 * middle: errors tell at their beginning what was to be done, and at their end why it could not be.
 */
export function line(text: string, most = 400): string {
  // deno-lint-ignore no-control-regex
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
  if (plain.length <= most) return plain;
  const head = Math.floor(most / 3);
  return `${plain.slice(0, head)}…${plain.slice(head - most)}`;
}

/** How a container ended, with what its exit code usually means. */
export function exitText(end: { exitCode: number; reason?: string; signal?: number }): string {
  const code = `exit code ${end.exitCode}`;
  if (end.reason === "OOMKilled") return `${code}, killed by the kernel: it took more memory than its limit`;
  const meaning = exitMeaning(end.exitCode);
  return meaning === "" ? code : `${code}, ${meaning}`;
}

function exitMeaning(code: number): string {
  switch (code) {
    case 126:
      return "its command could not be run";
    case 127:
      return "its command was not found in the image";
    case 137:
      return "killed (SIGKILL)";
    case 139:
      return "it crashed (SIGSEGV)";
    case 143:
      return "ended by SIGTERM";
    default:
      return code > 128 && code < 160 ? `ended by signal ${code - 128}` : "";
  }
}
