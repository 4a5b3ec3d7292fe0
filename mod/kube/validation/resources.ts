import { aggregate, isHugePages, isPodLevel } from "../defaults/resources.ts";
import { compareQuantities, formatQuantity, type Quantity, tryParseQuantity } from "../quantity.ts";
import type { Container, PodSpec, ResourceRequirements } from "../types.ts";
import { checkLabel, isQualifiedName } from "./names.ts";
import type { Problems } from "./problem.ts";

const containerResources = ["cpu", "memory", "ephemeral-storage"];
const NANO = 1_000_000_000n;

/** True for a resource without a vendor's domain, or in Kubernetes' own. */
function isNative(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

/** True for a resource of which more may be requested than there is. */
function isOvercommittable(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith("requests.") && isQualifiedName(`requests.${name}`);
}

function checkName(p: Problems, path: string, name: string, level: "container" | "pod"): void {
  const known = level === "pod" ? isPodLevel(name) : containerResources.includes(name) || isHugePages(name) ||
    (name.includes("/") && (isNative(name) || isExtended(name)));
  if (isQualifiedName(name) && known) return;
  const remedy = level === "pod"
    ? "use cpu, memory or hugepages-<size>"
    : "use cpu, memory, ephemeral-storage, hugepages-<size> or a name with a vendor's domain, such as example.org/gpu";
  p.add(path, name, "is no resource that a " + level + " can ask for", remedy);
}

function checkAmount(p: Problems, path: string, name: string, text: string): Quantity | undefined {
  const quantity = tryParseQuantity(text);
  if (!quantity) {
    p.add(path, text, "is no quantity", "write a number with an optional suffix, such as 500m or 64Mi");
    return undefined;
  }
  if (quantity.nano < 0n) p.add(path, text, "is negative", "use 0 or more");
  if (isExtended(name) && quantity.nano % NANO !== 0n) p.add(path, text, "is not whole", "use a whole number");
  if (isHugePages(name)) {
    const page = tryParseQuantity(name.slice("hugepages-".length));
    if (!page || page.nano <= 0n || page.nano % NANO !== 0n || quantity.nano % page.nano !== 0n) {
      p.add(path, text, `is no multiple of the page size of ${name}`, "use a whole number of pages");
    }
  }
  return quantity;
}

/** Checks names and amounts of a list; gives the amounts that can be read. */
export function checkAmounts(
  p: Problems,
  path: string,
  list: Record<string, string> | undefined,
  level: "container" | "pod",
): Map<string, Quantity> {
  const amounts = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list ?? {})) {
    checkName(p, `${path}[${name}]`, name, level);
    const amount = checkAmount(p, `${path}[${name}]`, name, text);
    if (amount) amounts.set(name, amount);
  }
  return amounts;
}

/** Checks limits and requests of a container or a pod: names, amounts, requests within limits. */
export function checkResources(
  p: Problems,
  path: string,
  resources: ResourceRequirements | undefined,
  level: "container" | "pod",
): void {
  const limits = checkAmounts(p, `${path}.limits`, resources?.limits, level);
  for (const [name, amount] of checkAmounts(p, `${path}.requests`, resources?.requests, level)) {
    const at = `${path}.requests[${name}]`;
    const text = formatQuantity(amount);
    const limit = limits.get(name);
    if (!limit) {
      if (!isOvercommittable(name)) p.required(`${path}.limits[${name}]`, `set it to ${text}: ${name} is never shared`);
    } else if (!isOvercommittable(name) && compareQuantities(amount, limit) !== 0) {
      p.add(at, text, `is not the limit of ${formatQuantity(limit)}`, "make request and limit the same");
    } else if (compareQuantities(amount, limit) > 0) {
      p.add(at, text, `is more than the limit of ${formatQuantity(limit)}`, "raise the limit or lower the request");
    }
  }
  const names = [...Object.keys(resources?.limits ?? {}), ...Object.keys(resources?.requests ?? {})];
  if (names.some(isHugePages) && !names.includes("cpu") && !names.includes("memory")) {
    p.add(path, undefined, "asks for huge pages alone", "ask for cpu or memory too");
  }
}

/** Checks that the claims of a container are claims of the pod. */
export function checkClaims(p: Problems, path: string, container: Container, podClaims: ReadonlySet<string>): void {
  const seen = new Set<string>();
  container.resources?.claims?.forEach(({ name, request }, i) => {
    const at = `${path}[${i}]`;
    if (!podClaims.has(name)) p.add(at, name, "is no claim of the pod", "add it to spec.resourceClaims");
    if (request) checkLabel(p, `${at}.request`, request);
    const key = `${name}/${request ?? ""}`;
    if (seen.has(key) || seen.has(`${name}/`)) p.add(at, name, "is given twice", "remove one");
    seen.add(key);
  });
}

/** Checks the pod's own resources: against their rules, and against what the containers ask for. */
export function checkPodResources(p: Problems, spec: PodSpec): void {
  const resources = spec.resources;
  if (!resources) return;
  if (resources.claims) p.forbidden("spec.resources.claims", "for a whole pod");
  const before = p.list.length;
  checkResources(p, "spec.resources", resources, "pod");
  const quantities = [...spec.containers, ...(spec.initContainers ?? [])].flatMap(({ resources: own }) => [
    ...Object.values(own?.requests ?? {}),
    ...Object.values(own?.limits ?? {}),
  ]);
  // Amounts that can't be read were reported already and can't be added up.
  if (p.list.length > before || quantities.some((text) => !tryParseQuantity(text))) return;
  compareWithContainers(p, spec, resources);
}

function compareWithContainers(p: Problems, spec: PodSpec, resources: ResourceRequirements): void {
  for (const which of ["requests", "limits"] as const) {
    for (const [name, sum] of aggregate(spec, which)) {
      const own = tryParseQuantity(resources[which]?.[name] ?? "");
      if (!own || (which === "limits" && !isHugePages(name)) || compareQuantities(sum, own) <= 0) continue;
      const problem = `is less than the containers' ${which} of ${formatQuantity(sum)} in all`;
      p.add(`spec.resources.${which}[${name}]`, formatQuantity(own), problem, "raise it or lower the containers'");
    }
  }
  spec.containers.forEach((container, i) => {
    for (const [name, text] of Object.entries(container.resources?.limits ?? {})) {
      const own = tryParseQuantity(resources.limits?.[name] ?? "");
      const limit = tryParseQuantity(text);
      if (!own || !limit || compareQuantities(limit, own) <= 0) continue;
      const at = `spec.containers[${i}].resources.limits[${name}]`;
      p.add(at, text, `is more than the pod's limit of ${formatQuantity(own)}`, "lower it or raise the pod's");
    }
  });
}
