import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { ImageError } from "./types.ts";

const names = new Map<number, string>([
  ...Object.entries(grpcCode).map(([name, code]): [number, string] => [code, name]),
  [grpcCode.Cancelled, "Canceled"],
  [7, "PermissionDenied"],
  [10, "Aborted"],
  [11, "OutOfRange"],
  [15, "DataLoss"],
  [16, "Unauthenticated"],
]);

/** A failed call's text as users know it: a status that says nothing (Unknown) is left out. */
export function callText(thrown: unknown): string {
  if (!(thrown instanceof RuntimeError)) return messageOf(thrown);
  if (thrown.status === grpcCode.Unknown) return thrown.details;
  return `rpc error: code = ${names.get(thrown.status) ?? `Code(${thrown.status})`} desc = ${thrown.details}`;
}

const special = [
  ["RegistryUnavailable", "the registry is unavailable"],
  ["SignatureValidationFailed", "the signature validation failed"],
] as const;

/** Maps a failed pull to its waiting reason and message (runtime-contract.md section 15). */
export function pullError(image: string, thrown: unknown): ImageError {
  const details = thrown instanceof RuntimeError ? thrown.details : messageOf(thrown);
  for (const [reason, why] of special) {
    if (details.startsWith(reason)) {
      const rest = details.slice(reason.length);
      return new ImageError(reason, `image pull failed for ${image} because ${why}${rest}`, { cause: thrown });
    }
  }
  return new ImageError("ErrImagePull", callText(thrown), { cause: thrown });
}
