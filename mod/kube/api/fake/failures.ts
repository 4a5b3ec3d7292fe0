import { ApiError, type ObjectName, type ResourceType } from "../types.ts";

type Kind = Pick<ResourceType, "group" | "plural">;

/** `pods` of the core group, `leases.coordination.k8s.io` of another, as the server's messages name kinds. */
export function qualified({ group, plural }: Kind): string {
  return group === "" ? plural : `${plural}.${group}`;
}

/** The failures of an API server, in its words. */
export const failures = {
  notFound: (kind: Kind, name: string) =>
    new ApiError(`${qualified(kind)} "${name}" not found`, { status: 404, reason: "NotFound" }),
  alreadyExists: (kind: Kind, name: string) =>
    new ApiError(`${qualified(kind)} "${name}" already exists`, { status: 409, reason: "AlreadyExists" }),
  conflict: (kind: Kind, name: string, why: string) =>
    new ApiError(`Operation cannot be fulfilled on ${qualified(kind)} "${name}": ${why}`, {
      status: 409,
      reason: "Conflict",
    }),
  invalid: (kind: ResourceType, name: string, why: string) =>
    new ApiError(`${kind.kind}${kind.group === "" ? "" : `.${kind.group}`} "${name}" is invalid: ${why}`, {
      status: 422,
      reason: "Invalid",
    }),
  unauthorized: () => new ApiError("Unauthorized", { status: 401, reason: "Unauthorized" }),
  badRequest: (why: string) => new ApiError(why, { status: 400, reason: "BadRequest" }),
  forbidden: (kind: Kind, { name, namespace }: Partial<ObjectName>, user: string, why: string) =>
    new ApiError(
      `${qualified(kind)}${name === undefined ? "" : ` "${name}"`} is forbidden: User "${user}" ${why}${
        namespace === undefined ? "" : ` in the namespace "${namespace}"`
      }`,
      { status: 403, reason: "Forbidden" },
    ),
  expired: (asked: number, oldest: number) =>
    new ApiError(`too old resource version: ${asked} (${oldest})`, { status: 410, reason: "Expired" }),
  tooLarge: (asked: number, newest: number) =>
    new ApiError(`Too large resource version: ${asked}, current: ${newest}`, { status: 504, reason: "Timeout" }),
  tooMany: (retryAfterMs: number) =>
    new ApiError("Too many requests, please try again later.", {
      status: 429,
      reason: "TooManyRequests",
      retryAfterMs,
    }),
  internal: (why: string) => new ApiError(`Internal error occurred: ${why}`, { status: 500, reason: "InternalError" }),
} as const;
