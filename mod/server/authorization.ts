import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { User } from "./types.ts";

/** What an authorizer is asked (http.md section 2). */
export interface Attributes {
  readonly user: User;
  /** create, get, update, patch, delete, or "" for any other method. */
  readonly verb: string;
  readonly apiVersion: "v1";
  readonly resource: "nodes";
  readonly subresource: string;
  /** The node's name. */
  readonly name: string;
  readonly path: string;
}

/** Decides what a user may do; a rejection is an authorizer error (500). */
export interface Authorizer {
  authorize(attributes: Attributes, signal: AbortSignal): Promise<"allow" | "deny">;
}

/** authorization.mode AlwaysAllow. */
export const alwaysAllow: Authorizer = { authorize: () => Promise.resolve("allow") };

const verbs: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** Paths with subresources of their own, in the order of http.md section 2; all else is `proxy`. */
const byPath: readonly (readonly [path: string, subresources: readonly string[]])[] = [
  ["/stats", ["stats"]],
  ["/metrics", ["metrics"]],
  ["/logs", ["log"]],
  ["/checkpoint", ["checkpoint"]],
  ["/statusz", ["statusz"]],
  ["/flagz", ["configz"]],
  ["/pods", ["pods", "proxy"]],
  ["/runningpods", ["pods", "proxy"]],
  ["/healthz", ["healthz", "proxy"]],
  ["/configz", ["configz", "proxy"]],
];

/** The subresources of a decoded path, in the order in which they are tried. */
export function subresourcesOf(path: string): readonly string[] {
  return byPath.find(([root]) => path === root || path.startsWith(`${root}/`))?.[1] ?? ["proxy"];
}

/** The API verb of a method. */
export function verbOf(method: string): string {
  return Object.hasOwn(verbs, method) ? verbs[method] ?? "" : "";
}

/** Undefined when allowed, else what to answer (http.md section 2). */
export async function authorize(options: {
  authorizer: Authorizer;
  user: User;
  method: string;
  path: string;
  nodeName: string;
  signal: AbortSignal;
  log: Logger;
}): Promise<{ status: 403 | 500; text: string } | undefined> {
  const { authorizer, user, method, path, nodeName, signal, log } = options;
  const verb = verbOf(method);
  const subresources = subresourcesOf(path);
  for (const subresource of subresources) {
    const attributes = { user, verb, apiVersion: "v1", resource: "nodes", subresource, name: nodeName, path } as const;
    try {
      if (await authorizer.authorize(attributes, signal) === "allow") return undefined;
    } catch (thrown) {
      log.error("authorization failed", { user: user.name, verb, subresource, error: messageOf(thrown) });
      return {
        status: 500,
        text: `Authorization error (user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource})`,
      };
    }
  }
  log.detail(2, "forbidden", { user: user.name, verb, subresources });
  return {
    status: 403,
    text: `Forbidden (user=${user.name}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(" ")}])\n`,
  };
}
