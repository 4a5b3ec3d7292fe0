import { KubeletError } from "../../base/errors.ts";
import type { ResourceType } from "./types.ts";

/** Parameters of a request; those without a value are left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * The path of a collection, an object or a subresource. Throws with code Internal when a namespaced object has no
 * namespace, or a name is none: names from outside must not lead to other paths.
 */
export function pathOf(
  resource: ResourceType,
  { namespace, name }: { readonly namespace?: string | undefined; readonly name?: string },
  subresource?: string,
): string {
  const { group, version, plural, namespaced, kind } = resource;
  if (namespaced && name !== undefined && !namespace) {
    throw new KubeletError("Internal", `${kind} ${name}: an object of a namespace is asked for without one`);
  }
  const parts = [
    group === "" ? `api/${version}` : `apis/${group}/${version}`,
    ...(namespaced && namespace ? ["namespaces", segment(namespace)] : []),
    plural,
    ...(name === undefined ? [] : [segment(name)]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return `/${parts.join("/")}`;
}

function segment(name: string): string {
  if (name === "" || name === "." || name === ".." || /[/%]/.test(name)) {
    throw new KubeletError("Internal", `${JSON.stringify(name)} is no name of an object`);
  }
  return encodeURIComponent(name);
}

/** The parameters as they stand behind a path, or nothing. */
export function queryText(query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
