import { grpcCode, RuntimeError } from "../../../cri/api.ts";
import { messageOf } from "../../base/errors.ts";
import { send } from "../respond.ts";
import type { RequestContext } from "../types.ts";

const names = new Map<number, string>([
  ...Object.entries(grpcCode).map(([name, code]): [number, string] => [code, name === "Cancelled" ? "Canceled" : name]),
  [7, "PermissionDenied"],
  [10, "Aborted"],
  [11, "OutOfRange"],
  [15, "DataLoss"],
  [16, "Unauthenticated"],
]);

/** How long the runtime keeps a streaming request that nobody has come for, in seconds. */
const requestLifeSeconds = 60;

/** The text of an error as clients of the streaming endpoints know it. */
export function errorText(thrown: unknown): string {
  if (!(thrown instanceof RuntimeError)) return messageOf(thrown);
  return `rpc error: code = ${names.get(thrown.status) ?? `Code(${thrown.status})`} desc = ${thrown.details}`;
}

/** Answers with an error of a CRI streaming call (http.md section 4, step 2). */
export function writeStreamingError(context: RequestContext, thrown: unknown): void {
  const code = thrown instanceof RuntimeError ? thrown.status : undefined;
  const status = code === grpcCode.NotFound ? 404 : code === grpcCode.ResourceExhausted ? 429 : 500;
  send(context, status, errorText(thrown), {
    "content-type": "text/plain; charset=utf-8",
    ...(status === 429 ? { "retry-after": String(requestLifeSeconds) } : {}),
  });
}
