import type { Route, RouteGroup } from "./types.ts";

/** What the router says of a path. */
export type Routed =
  /** `route.handler` answers; both servers authenticate first. */
  | { readonly kind: "route"; readonly route: Route; readonly params: Record<string, string> }
  /** Answered after authentication: the path is known, but not with this method or not this far. */
  | { readonly kind: "refused"; readonly status: 404 | 405; readonly text: string; readonly allow?: string }
  /** Sent to the same path with a slash at its end, before authentication. */
  | { readonly kind: "redirect" }
  /** Nothing of the server is there; said before authentication. */
  | { readonly kind: "unknown" };

interface Compiled {
  readonly route: Route;
  readonly segments: readonly string[];
}

function split(path: string): string[] {
  const inner = path.replace(/^\/+|\/+$/g, "");
  return inner === "" ? [] : inner.split("/");
}

/** The variables of a match, or undefined. `{x:*}` takes one segment or more. */
function match(pattern: readonly string[], path: readonly string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const segment = path[index];
    if (segment === undefined) return undefined;
    if (part.endsWith(":*}")) {
      params[part.slice(1, -3)] = path.slice(index).join("/");
      return params;
    }
    if (part.startsWith("{")) params[part.slice(1, -1)] = segment;
    else if (part !== segment) return undefined;
  }
  return pattern.length === path.length ? params : undefined;
}

/**
 * Finds the route of a request as the reference's server does: an exact path wins over the longest subtree; below the
 * root of a group of routes with methods, what matches none of them gets that group's 404 or 405.
 */
export class Router {
  readonly #exact = new Map<string, Route | readonly Compiled[]>();
  /** By path with its `/` at the end. */
  readonly #subtrees = new Map<string, Route | readonly Compiled[]>();

  constructor(groups: Iterable<RouteGroup>) {
    const services = new Map<string, Compiled[]>();
    for (const group of groups) {
      for (const route of group.routes) {
        if (route.methods === "*") {
          this.#add(route.path.endsWith("/") ? this.#subtrees : this.#exact, route.path, route);
        } else {
          const root = group.root ?? `/${split(route.path)[0] ?? ""}`;
          const list = services.get(root) ?? [];
          list.push({ route, segments: split(route.path) });
          services.set(root, list);
        }
      }
    }
    for (const [root, routes] of services) {
      if (root.endsWith("/")) this.#add(this.#subtrees, root, routes);
      else {
        this.#add(this.#exact, root, routes);
        this.#add(this.#subtrees, `${root}/`, routes);
      }
    }
  }

  #add(map: Map<string, Route | readonly Compiled[]>, path: string, value: Route | readonly Compiled[]): void {
    if (map.has(path)) throw new TypeError(`two handlers for ${path}`);
    map.set(path, value);
  }

  /** Every path that a handler stands at, sorted. */
  paths(): string[] {
    return [...new Set([...this.#exact.keys(), ...this.#subtrees.keys()])].sort();
  }

  /**
   * Handlers are found by the path in which an encoded slash stays one; the routes of a group by the decoded path, so
   * that such a slash separates segments there. Both have the same beginning up to the group's root.
   */
  find(method: string, target: { readonly path: string; readonly segmented: string }): Routed {
    const { path, segmented } = target;
    const found = this.#exact.get(segmented) ?? this.#subtree(segmented);
    if (found === undefined) return { kind: this.#subtrees.has(`${segmented}/`) ? "redirect" : "unknown" };
    if ("handler" in found) return { kind: "route", route: found, params: {} };
    const segments = split(path);
    const allowed = new Set<string>();
    let best: { route: Route; params: Record<string, string>; literals: number } | undefined;
    for (const { route, segments: pattern } of found) {
      const params = match(pattern, segments);
      if (!params) continue;
      for (const each of route.methods) allowed.add(each);
      const literals = pattern.filter((part) => !part.startsWith("{")).length;
      if (route.methods.includes(method) && literals > (best?.literals ?? -1)) best = { route, params, literals };
    }
    if (best) return { kind: "route", route: best.route, params: best.params };
    if (allowed.size === 0) return { kind: "refused", status: 404, text: "404: Page Not Found" };
    return { kind: "refused", status: 405, text: "405: Method Not Allowed", allow: [...allowed].join(", ") };
  }

  #subtree(path: string): Route | readonly Compiled[] | undefined {
    for (let end = path.lastIndexOf("/"); end >= 0; end = path.lastIndexOf("/", end - 1)) {
      const found = this.#subtrees.get(path.slice(0, end + 1));
      if (found) return found;
      if (end === 0) break;
    }
    return undefined;
  }
}
