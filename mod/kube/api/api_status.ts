import { ApiError } from "./types.ts";

/** Bytes of a message that is kept. */
const messageLength = 4096;

/** The longest pause that is taken from a server, in seconds: one slip of it must not silence the node for days. */
const longestAsked = 300;

/**
 * What a code means when the server does not say it in a Status. 404 is not among them: a gateway that knows no way, or a
 * server that does not serve a path yet, answers it of objects that are there.
 */
const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Gone",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** What a failure is known by. */
export interface FailedAnswer {
  readonly status: number;
  /** The Retry-After header, in seconds. */
  readonly retryAfter?: string | undefined;
  /** The parsed body when it is JSON. */
  readonly body?: unknown;
  /** The body's text when it is not. */
  readonly text?: string;
  /** Such as `GET pods web`, for a message when the server gives none. */
  readonly what: string;
}

/** The error of an answer that is a failure: what its Status says, or else what its code means. */
export function errorOf({ status, retryAfter, body, text = "", what }: FailedAnswer): ApiError {
  const said = statusOf(body);
  const code = said?.code ?? status;
  const message = said?.message || text.trim() || `${what}: the server answered ${code}`;
  const seconds = said?.retryAfterSeconds ?? secondsOf(retryAfter);
  return new ApiError(message.slice(0, messageLength), {
    status: code,
    reason: said?.reason || reasons[code] || (code >= 500 ? "InternalError" : "Unknown"),
    ...(seconds === undefined ? {} : { retryAfterMs: Math.min(seconds, longestAsked) * 1000 }),
  });
}

interface Said {
  readonly code?: number;
  readonly message: string;
  readonly reason: string;
  readonly retryAfterSeconds?: number;
}

function statusOf(body: unknown): Said | undefined {
  const { kind, code, message, reason, details } = record(body);
  if (kind !== "Status") return undefined;
  const { retryAfterSeconds } = record(details);
  const usable = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value > 0;
  return {
    message: typeof message === "string" ? message : "",
    reason: typeof reason === "string" ? reason : "",
    ...(usable(code) ? { code } : {}),
    ...(usable(retryAfterSeconds) ? { retryAfterSeconds } : {}),
  };
}

/** Seconds of a Retry-After header; a date is not used by API servers, and stands for no wish. */
export function secondsOf(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,7}$/.test(header.trim())) return undefined;
  return Number(header);
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}
