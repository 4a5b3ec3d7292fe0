import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  milliQuantityOf,
  parseQuantity,
  type Quantity,
  quantityOf,
} from "../../kube/quantity.ts";
import type { BoundPod, Container, ContainerStatus, ResourceRequirements } from "../../kube/types.ts";
import type { ObservedContainer } from "../observed.ts";
import { milliOfQuota, milliOfShares } from "../resources.ts";

type List = Record<string, string>;
type Side = "requests" | "limits";

/** At or below these the kernel's figures say nothing of what was asked for (section 5.1). */
const leastRequestMilli = 2;
const leastLimitMilli = 10;

function canonical(list: Readonly<List>, where: string): List {
  return Object.fromEntries(
    Object.entries(list).map((
      [name, text],
    ) => [name, canonicalQuantity(text, { what: `${where}.${name}`, code: "BadPod" })]),
  );
}

function milliOf(text: string | undefined): number {
  return text === undefined ? 0 : Number(parseQuantity(text, { code: "BadPod" }).nano / 1_000_000n);
}

/**
 * The `allocatedResources` and `resources` of a container's status: what the spec has, for a running container with
 * what the runtime really applied, where it tells (sections 5.1 and 15), and else with what was carried out. Throws
 * BadPod on a bad quantity.
 */
export function containerResources(
  container: Container,
  instance: ObservedContainer,
  actuated?: ResourceRequirements,
): Pick<ContainerStatus, "allocatedResources" | "resources"> {
  const spec = container.resources ?? {};
  const where = `container ${container.name} resources`;
  const limits = spec.limits && canonical(spec.limits, `${where}.limits`);
  const requests = spec.requests && canonical(spec.requests, `${where}.requests`);
  const allocatedResources = requests && { ...requests };
  const applied = instance.state === "running" ? instance.resources : undefined;
  if (actuated && instance.state === "running") {
    // No runtime tells of the memory request, and some tell nothing.
    const told = applied ? (["memory"] as const) : (["cpu", "memory"] as const);
    if (requests) fill(requests, actuated.requests, told);
    if (limits && !applied) fill(limits, actuated.limits, told);
  }
  if (applied && limits) {
    const milli = milliOfQuota(applied.cpuQuota, applied.cpuPeriod);
    if (milli > 0 && (milli > leastLimitMilli || milliOf(limits.cpu) > leastLimitMilli)) {
      limits.cpu = formatQuantity(milliQuantityOf(milli));
    }
    if (applied.memoryLimit > 0) limits.memory = formatQuantity(quantityOf(applied.memoryLimit, "BinarySI"));
  }
  if (applied && requests) {
    const milli = milliOfShares(applied.cpuShares);
    if (milli > 0 && (milli > leastRequestMilli || milliOf(requests.cpu) > leastRequestMilli)) {
      requests.cpu = formatQuantity(milliQuantityOf(milli));
    }
  }
  return {
    ...(allocatedResources && Object.keys(allocatedResources).length > 0 ? { allocatedResources } : {}),
    resources: requirements(limits, requests, spec.claims),
  };
}

function fill(list: List, from: Readonly<List> | undefined, names: readonly string[]): void {
  for (const name of names) {
    const text = from && Object.hasOwn(from, name) ? from[name] : undefined;
    if (text !== undefined && parseQuantity(text).nano > 0n) list[name] = canonicalQuantity(text);
  }
}

function requirements(limits?: List, requests?: List, claims?: ResourceRequirements["claims"]): ResourceRequirements {
  const some = (list: List | undefined) => list !== undefined && Object.keys(list).length > 0;
  return {
    ...(limits && some(limits) ? { limits } : {}),
    ...(requests && some(requests) ? { requests } : {}),
    ...(claims && claims.length > 0 ? { claims } : {}),
  };
}

type Sum = Map<string, Quantity>;

function sumOf(list: Readonly<List> | undefined, where: string): Sum {
  return new Map(
    Object.entries(list ?? {}).map(([name, text]) => [
      name,
      parseQuantity(text, { what: `${where}.${name}`, code: "BadPod" }),
    ]),
  );
}

function add(into: Sum, other: Sum): Sum {
  for (const [name, q] of other) {
    const have = into.get(name);
    // Kept as written while there is nothing to add to, so that `64Mi` stays `64Mi`.
    into.set(name, have === undefined ? q : addQuantities(have, q));
  }
  return into;
}

function raise(into: Sum, other: Sum): void {
  for (const [name, q] of other) {
    const have = into.get(name);
    if (have === undefined || compareQuantities(q, have) > 0) into.set(name, q);
  }
}

/**
 * What the pod as a whole asks for or is limited to, in the notation of its spec; the same rule as `podRequests` and
 * `podLimits` of resources.ts, which lose the notation.
 */
function podSide(pod: BoundPod, side: Side): List | undefined {
  const where = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
  const of = (c: Container) => sumOf(c.resources?.[side], `${where} container ${c.name} ${side}`);
  const total: Sum = new Map();
  for (const c of pod.spec.containers) add(total, of(c));
  const sidecars: Sum = new Map();
  const peak: Sum = new Map();
  for (const c of pod.spec.initContainers ?? []) {
    if (c.restartPolicy === "Always") {
      add(total, of(c));
      raise(peak, add(sidecars, of(c)));
    } else raise(peak, add(of(c), sidecars));
  }
  raise(total, peak);
  for (const [name, q] of sumOf(pod.spec.resources?.[side], `${where} ${side}`)) {
    if (name === "cpu" || name === "memory" || name.startsWith("hugepages-")) total.set(name, q);
  }
  const overhead = sumOf(pod.spec.overhead, `${where} overhead`);
  add(total, side === "requests" ? overhead : new Map([...overhead].filter(([name]) => total.has(name))));
  return total.size > 0 ? Object.fromEntries([...total].map(([name, q]) => [name, formatQuantity(q)])) : undefined;
}

/**
 * The pod-level `allocatedResources` and `resources` of the status. Throws BadPod on a bad quantity.
 * @param actual the pod with the resources that are carried out, while these are others
 */
export function podResources(
  pod: BoundPod,
  actual: BoundPod = pod,
): { allocatedResources?: List; resources: ResourceRequirements } {
  const allocated = podSide(pod, "requests");
  return {
    ...(allocated ? { allocatedResources: allocated } : {}),
    resources: requirements(podSide(actual, "limits"), podSide(actual, "requests"), pod.spec.resources?.claims),
  };
}
