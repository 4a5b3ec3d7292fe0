import { instantOf } from "../../managers/logs/reader_stamp.ts";
import type { Instant, LogOptions } from "../../managers/logs/reader_types.ts";

/** What a request for logs asks, or why it cannot be asked (http.md section 5). */
export type LogQuery =
  | { readonly options: LogOptions; readonly previous: boolean; readonly stream: string | undefined }
  | { readonly status: 400 | 422; readonly text: string };

const undecodable = { status: 400, text: '{"message": "Unable to decode query."}' } as const;
const invalid = { status: 422, text: '{"message": "Invalid request."}' } as const;
/** What a time that is not given stands for. */
const never: Instant = { seconds: -62_135_596_800, nanos: 0 };

function flag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

/** A 64-bit integer; undefined when it is not given, NaN when it is none. */
function integer(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (!/^[+-]?\d+$/.test(text)) return NaN;
  const value = BigInt(text.replace(/^\+/, ""));
  return value >= -(2n ** 63n) && value < 2n ** 63n ? Number(value) : NaN;
}

function instant(text: string | null): Instant | undefined | "undecodable" {
  if (text === null) return undefined;
  if (text === "" || text === "null") return never;
  return instantOf(text) ?? "undecodable";
}

/**
 * Reads the query of /containerLogs. Streams other than All, which need a feature gate that is off, are left for after
 * the pod was looked up, in `stream`.
 * @param now milliseconds since the epoch
 */
export function parseLogQuery(query: URLSearchParams, now: number): LogQuery {
  const tail = query.get("tail");
  const tailLines = integer(tail === null || tail === "" ? query.get("tailLines") : tail === "all" ? null : tail);
  const limitBytes = integer(query.get("limitBytes"));
  const sinceSeconds = integer(query.get("sinceSeconds"));
  const sinceTime = instant(query.get("sinceTime"));
  if ([tailLines, limitBytes, sinceSeconds].some(Number.isNaN) || sinceTime === "undecodable") return undecodable;

  if (tailLines !== undefined && tailLines < 0) return invalid;
  if (limitBytes !== undefined && limitBytes < 1) return invalid;
  if (sinceSeconds !== undefined && (sinceTime !== undefined || sinceSeconds < 1)) return invalid;
  const stream = query.get("stream") ?? undefined;
  if (stream !== undefined && stream !== "All") {
    if (stream !== "Stdout" && stream !== "Stderr") return invalid;
    if (tailLines !== undefined) return invalid;
  }

  const since = sinceSeconds === undefined ? sinceTime : before(now, sinceSeconds);
  return {
    previous: flag(query, "previous"),
    stream: stream === "All" ? undefined : stream,
    options: {
      follow: flag(query, "follow"),
      timestamps: flag(query, "timestamps"),
      ...(tailLines === undefined ? {} : { tailLines }),
      ...(limitBytes === undefined ? {} : { limitBytes }),
      ...(since === undefined ? {} : { since }),
    },
  };
}

function before(now: number, seconds: number): Instant {
  const whole = Math.floor(now / 1000);
  return { seconds: whole - seconds, nanos: Math.floor(now - whole * 1000) * 1_000_000 };
}
