import type { RequestContext } from "./types.ts";

/** Headers of an answer. */
export type Headers = Readonly<Record<string, string>>;

/** Sends a whole answer; nothing must have been sent before. The body is left out for HEAD. */
export function send(
  { response, method }: Pick<RequestContext, "response" | "method">,
  status: number,
  body: string | Uint8Array,
  headers: Headers = {},
): void {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  response.writeHead(status, { "content-length": String(bytes.length), ...headers });
  response.end(method === "HEAD" ? undefined : bytes);
}

/** An error as the API's own handlers give it: the bare text, no newline. */
export function writeError(context: RequestContext, status: number, text: string): void {
  send(context, status, text, { "content-type": "text/plain; charset=utf-8" });
}

/** An error as the plain handlers give it (405 texts, proxy errors): the text, a newline, and no guessing of types. */
export function httpError(context: RequestContext, status: number, text: string, headers: Headers = {}): void {
  send(context, status, `${text}\n`, {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    ...headers,
  });
}

/** A JSON answer from an object or from JSON text. */
export function sendJson(context: RequestContext, value: unknown): void {
  send(context, 200, typeof value === "string" ? value : JSON.stringify(value), { "content-type": "application/json" });
}
