import { KubeletError } from "./errors.ts";

/** The statuses of gRPC by number. */
const names = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;

export type GrpcStatus = (typeof names)[number];

/** A status's number on the wire. */
export function statusNumber(status: GrpcStatus): number {
  return names.indexOf(status);
}

/** The status of a number of the wire; unknown ones are Unknown. */
export function statusOfNumber(number: number): GrpcStatus {
  return names[number] ?? "Unknown";
}

/** What a gRPC call failed with, in the words that Go's clients have for it. */
export class GrpcError extends KubeletError {
  override readonly name = "GrpcError";
  constructor(readonly status: GrpcStatus, readonly details: string, options?: { cause?: unknown }) {
    super(
      status === "DeadlineExceeded" ? "Timeout" : "Network",
      `rpc error: code = ${status} desc = ${details}`,
      options,
    );
  }
}
