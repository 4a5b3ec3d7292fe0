/** A place of the house (design: which part of the repository may import which). */
export type Layer =
  | "main"
  | "base"
  | "kube"
  | "cri"
  | "pod"
  | "manager"
  | "sources"
  | "sync"
  | "server"
  | "app"
  | "outside";

const below: Record<Exclude<Layer, "outside">, readonly Layer[]> = {
  base: [],
  kube: ["base"],
  cri: ["base"],
  pod: ["base", "kube"], // and the types and generated messages of cri, see `importFault`
  manager: ["base", "kube", "cri", "pod"],
  sources: ["base", "kube"],
  sync: ["base", "kube", "cri", "pod", "manager", "sources"],
  server: ["base", "kube", "cri", "pod", "manager", "sources", "sync"],
  app: ["base", "kube", "cri", "pod", "manager", "sources", "sync", "server"],
  main: ["app"],
};

/** The layer of a path relative to the repository; "outside" for tests, scripts and all else. */
export function layerOf(path: string): Layer {
  if (path === "main.ts") return "main";
  const [first, second] = path.split("/");
  if (first === "cri") return "cri";
  if (first === "managers") return "manager";
  if (
    first === "mod" && second !== undefined && Object.hasOwn(below, second) && second !== "manager" && second !== "main"
  ) {
    return second as Layer;
  }
  return "outside";
}

/** Why `from` may not import `to` (paths relative to the repository), or undefined when it may. */
export function importFault(from: string, to: string, typeOnly: boolean): string | undefined {
  const source = layerOf(from), target = layerOf(to);
  if (source === "outside") return undefined;
  if (target === "outside") return `${place(from)} must not import ${to}: the agent stands without tests and scripts`;
  if (source === "manager" && target === "manager" && place(from) !== place(to)) {
    if (typeOnly && to === `${place(to)}/types.ts`) return undefined;
    return `${
      place(from)
    } must not import ${to}: managers know one another only by \`import type\` of types.ts; hand the interface in`;
  }
  if (source === target || below[source].includes(target)) return undefined;
  if (source === "pod" && target === "cri") {
    if (typeOnly || to.startsWith("cri/gen/")) return undefined;
    return `mod/pod is pure: of ${to} it may import types only`;
  }
  const may = below[source].length === 0 ? "npm packages only" : `only ${below[source].join(", ")}`;
  return `${place(from)} must not import ${to}: it may import ${may}`;
}

function place(path: string): string {
  const parts = path.split("/");
  return parts[0] === "mod" || parts[0] === "managers" ? parts.slice(0, 2).join("/") : parts[0] ?? path;
}

/** The target of a relative import as a path relative to the repository; undefined when it is not relative. */
export function resolveImport(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith("./") && !specifier.startsWith("../")) return undefined;
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return specifier;
    } else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}
