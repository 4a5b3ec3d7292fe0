import { schema } from "../../kube/gen/schema.ts";
import type { KubeletConfiguration } from "../../kube/types.ts";
import { allFields } from "./fields.ts";
import { getKey, isObject, type Json, type JsonObject, setKey } from "./json.ts";

export const apiVersion = "kubelet.config.k8s.io/v1beta1";
export const kind = "KubeletConfiguration";

/** Fields that are written even when they are empty: pointers, and those without omitempty. */
const alwaysWritten = new Set([
  ...allFields.filter((field) => field.pointer === true).map((field) => field.path),
  "containerRuntimeEndpoint",
  "logging.verbosity",
]);
/** Objects that are left out when they are absent; the others are written as `{}`. */
const optionalObjects = new Set(["tracing", "userNamespaces"]);

function isEmpty(value: Json): boolean {
  if (value === null || value === "" || value === 0 || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

function write(from: unknown, type: string, path: string): JsonObject {
  const to: JsonObject = {};
  for (const [key, fieldType] of Object.entries(schema[type] ?? {})) {
    const at = path === "" ? key : `${path}.${key}`;
    const plain = fieldType.replace(/!$/, "");
    const value = getKey(from, key) as Json | undefined;
    if (Object.hasOwn(schema, plain)) {
      if (value === undefined && optionalObjects.has(at)) continue;
      setKey(to, key, write(value, plain, at));
    } else if (value !== undefined && (alwaysWritten.has(at) || !isEmpty(value))) {
      setKey(to, key, sorted(value));
    }
  }
  return to;
}

/** Maps print with sorted keys, as the API prints them. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const to: JsonObject = {};
  for (const key of Object.keys(value).sort()) setKey(to, key, sorted(value[key] ?? null));
  return to;
}

/**
 * The configuration in the form and order in which the reference serves it at /configz: empty fields left out,
 * except those that can tell zero from unset.
 */
export function toV1beta1(config: JsonObject): KubeletConfiguration {
  const written = write({ ...config, kind, apiVersion }, kind, "");
  return written as unknown as KubeletConfiguration;
}
