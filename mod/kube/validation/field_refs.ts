import { formatQuantity, tryParseQuantity } from "../quantity.ts";
import type { ObjectFieldSelector, ResourceFieldSelector } from "../types.ts";
import { checkQualifiedName } from "./names.ts";
import type { Problems } from "./problem.ts";

/** Fields that an environment variable may show. */
export const envFields = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
/** Fields that a downward API file may show. */
export const volumeFields = [
  "metadata.name",
  "metadata.namespace",
  "metadata.labels",
  "metadata.annotations",
  "metadata.uid",
];

const resources = ["cpu", "memory", "ephemeral-storage"].flatMap((r) => [`limits.${r}`, `requests.${r}`]);
const sizeDivisors = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** Splits `metadata.labels['key']`; undefined without a subscript. */
export function splitSubscript(fieldPath: string): { path: string; key: string } | undefined {
  const at = fieldPath.indexOf("['");
  if (at <= 0 || !fieldPath.endsWith("']") || at + 2 > fieldPath.length - 2) return undefined;
  return { path: fieldPath.slice(0, at), key: fieldPath.slice(at + 2, -2) };
}

/** Checks a reference to a field of the pod. */
export function checkFieldRef(p: Problems, path: string, ref: ObjectFieldSelector, fields: readonly string[]): void {
  if (ref.apiVersion !== "v1") {
    p.add(`${path}.apiVersion`, ref.apiVersion, "is not supported", 'use "v1" or leave it out');
    return;
  }
  const subscript = splitSubscript(ref.fieldPath);
  if (!subscript) {
    const field = ref.fieldPath === "spec.host" ? "spec.nodeName" : ref.fieldPath;
    p.oneOf(`${path}.fieldPath`, field, fields);
  } else if (subscript.path === "metadata.labels") checkQualifiedName(p, `${path}.fieldPath`, subscript.key);
  else if (subscript.path === "metadata.annotations") {
    checkQualifiedName(p, `${path}.fieldPath`, subscript.key.toLowerCase());
  } else {
    const remedy = "use a subscript on metadata.labels or metadata.annotations only";
    p.add(`${path}.fieldPath`, ref.fieldPath, "has no subscripts", remedy);
  }
}

/** Checks a reference to a container's resource; a volume must name the container. */
export function checkResourceRef(p: Problems, path: string, ref: ResourceFieldSelector, inVolume: boolean): void {
  if (inVolume && !ref.containerName) p.required(`${path}.containerName`, "name the container");
  const huge = /^(?:limits|requests)\.hugepages-/.test(ref.resource);
  if (!huge) p.oneOf(`${path}.resource`, ref.resource, resources);
  const divisor = tryParseQuantity(ref.divisor ?? "0");
  if (!divisor || divisor.nano === 0n) return;
  const allowed = ref.resource.endsWith(".cpu") ? ["1m", "1"] : sizeDivisors;
  p.oneOf(`${path}.divisor`, formatQuantity(divisor), allowed);
}
