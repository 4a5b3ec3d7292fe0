import { compareQuantities, tryParseQuantity } from "../../mod/kube/quantity.ts";

/** True for resources that are neither Kubernetes' own nor a quota's: those of device plugins and administrators. */
export function isExtendedResource(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/") && !name.startsWith("requests.");
}

/** True for huge pages of some size. */
export function isHugePages(name: string): boolean {
  return name.startsWith("hugepages-");
}

/** Whether two texts are the same quantity. What is no quantity is compared as text. */
export function sameQuantity(a: string, b: string): boolean {
  if (a === b) return true;
  const left = tryParseQuantity(a), right = tryParseQuantity(b);
  return left !== undefined && right !== undefined && compareQuantities(left, right) === 0;
}
