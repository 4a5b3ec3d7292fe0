import { setOwn } from "../decode.ts";
import { addQuantities, compareQuantities, formatQuantity, parseQuantity, type Quantity } from "../quantity.ts";
import type { Container, PodSpec, ResourceRequirements } from "../types.ts";

/** Amounts by resource name. */
export type ResourceMap = Record<string, string>;

/** Rounds each amount up to thousandths, as the API does, and puts it into canonical text. Text that is none stays. */
export function roundResources(resources: { limits?: ResourceMap; requests?: ResourceMap } | undefined): void {
  for (const list of [resources?.limits, resources?.requests]) {
    if (list) roundList(list);
  }
}

/** As roundResources, for one list. */
export function roundList(list: ResourceMap): void {
  for (const [name, text] of Object.entries(list)) {
    const quantity = parseQuantity(text, { what: name, code: "BadManifest" });
    const rest = quantity.nano % 1_000_000n;
    if (rest === 0n) {
      setOwn(list, name, formatQuantity(quantity));
      continue;
    }
    const nano = quantity.nano - rest + (quantity.nano > 0n ? 1_000_000n : 0n);
    setOwn(list, name, formatQuantity({ nano, format: quantity.format }));
  }
}

/** Requests that were not stated are those of the limits. */
export function requestsFromLimits(resources: ResourceRequirements | undefined): void {
  if (resources?.limits === undefined) return;
  resources.requests = withMissing(resources.requests ?? {}, resources.limits);
}

/** Adds the entries that `own` lacks. */
function withMissing(own: ResourceMap, other: ResourceMap): ResourceMap {
  for (const [name, amount] of Object.entries(other)) {
    if (!Object.hasOwn(own, name)) setOwn(own, name, amount);
  }
  return own;
}

/** The effective sum over a pod's containers: regular and sidecars added up, other init containers by their maximum. */
export function aggregate(spec: PodSpec, which: "requests" | "limits"): Map<string, Quantity> {
  const read = (container: Container) =>
    Object.entries(container.resources?.[which] ?? {}).map(([name, text]) => [name, parseQuantity(text)] as const);
  const total = new Map<string, Quantity>();
  const add = (to: Map<string, Quantity>, entries: Iterable<readonly [string, Quantity]>) => {
    for (const [name, amount] of entries) {
      const before = to.get(name);
      to.set(name, before ? addQuantities(before, amount) : amount);
    }
  };
  for (const container of spec.containers) add(total, read(container));
  const sidecars = new Map<string, Quantity>();
  const peak = new Map<string, Quantity>();
  for (const container of spec.initContainers ?? []) {
    const now = new Map<string, Quantity>(read(container));
    if (container.restartPolicy === "Always") {
      add(total, now);
      add(sidecars, now);
      now.clear();
    }
    add(now, sidecars);
    for (const [name, amount] of now) {
      const before = peak.get(name);
      if (!before || compareQuantities(before, amount) < 0) peak.set(name, amount);
    }
  }
  for (const [name, amount] of peak) {
    const before = total.get(name);
    if (!before || compareQuantities(before, amount) < 0) total.set(name, amount);
  }
  return total;
}

export const isHugePages = (name: string): boolean => name.startsWith("hugepages-");

/** Resources that a pod as a whole may ask for. */
export const isPodLevel = (name: string): boolean => name === "cpu" || name === "memory" || isHugePages(name);

/** Pod-level defaults: huge page limits from the containers, requests from the containers, then from the limits. */
export function defaultPodResources(spec: PodSpec): void {
  const resources = spec.resources;
  if (!resources) return;
  const stated = (list: ResourceMap | undefined) => Object.keys(list ?? {}).length > 0;
  if (stated(resources.limits) || stated(resources.requests)) {
    const limits = resources.limits ?? {};
    for (const [name, amount] of aggregate(spec, "limits")) {
      if (!isHugePages(name) || Object.hasOwn(resources.requests ?? {}, name)) continue;
      if (!Object.hasOwn(limits, name)) setOwn(limits, name, formatQuantity(amount));
    }
    if (stated(limits)) resources.limits = limits;
  }
  if (!stated(resources.limits)) return;
  const requests = resources.requests ?? {};
  for (const [name, amount] of aggregate(spec, "requests")) {
    const shared = isPodLevel(name) && !isHugePages(name);
    if (shared && !Object.hasOwn(requests, name)) setOwn(requests, name, formatQuantity(amount));
  }
  const podLimits = Object.entries(resources.limits ?? {}).filter(([name]) => isPodLevel(name));
  withMissing(requests, Object.fromEntries(podLimits));
  if (stated(requests)) resources.requests = requests;
}
