import { grpcCode } from "./api.ts";

/** What grpc-js says of a call that could not be sent; the rest is the last connection error. */
const unsent = /^No connection established\. Last error: (?:Error: )?/;

/**
 * The status that a failed call really has: grpc-js calls it Internal when the runtime dies in the middle of a call and
 * the socket breaks on our side; that is Unavailable like any other loss of the runtime.
 */
export function statusOf(status: number, details: string): number {
  const broke = status === grpcCode.Internal &&
    /internal client error: .*\b(EPIPE|ECONNRESET|ENOTCONN)\b/.test(details);
  return broke ? grpcCode.Unavailable : status;
}

/**
 * A failed call's words as an operator should read them: what gRPC or the runtime said, and what can be done about it
 * where the cause is the endpoint itself. `path` is the socket's.
 */
export function explain(status: number, details: string, path: string): string {
  if (status === grpcCode.Unimplemented && /unknown service/.test(details)) {
    return `${path} does not serve CRI v1 (${details}): enable the runtime's CRI plugin ` +
      `(containerd: remove "cri" from disabled_plugins), or update the runtime`;
  }
  if (status !== grpcCode.Unavailable) return details;
  const cause = details.replace(unsent, "");
  if (/\bENOENT\b/.test(cause)) {
    return `the socket ${path} does not exist: start the container runtime, or correct the endpoint`;
  }
  if (/\bEACCES\b|\bEPERM\b/.test(cause)) {
    return `no permission to use the socket ${path}: run as root, or give this user access to it`;
  }
  if (/\bECONNREFUSED\b/.test(cause)) {
    return `nobody listens on the socket ${path}: the container runtime is down; start it`;
  }
  if (/\bENOTSOCK\b|\bEPROTOTYPE\b/.test(cause)) return `${path} is not a stream socket: correct the endpoint`;
  return details;
}
