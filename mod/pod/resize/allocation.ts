import { isSidecar, podContainers } from "../../kube/pod.ts";
import { compareQuantities, tryParseQuantity } from "../../kube/quantity.ts";
import type { BoundPod, Container, ResourceRequirements } from "../../kube/types.ts";

/** Resources of a pod as they were at one moment: what it was given, or what was carried out. */
export interface PodResourceInfo {
  /** By container name; init containers and regular ones, of those whose resources can change. */
  readonly containers: ReadonlyMap<string, ResourceRequirements>;
  /** The pod's own (`spec.resources`), where it has any. */
  readonly pod?: ResourceRequirements;
}

/** What can be resized, by the feature gates. */
export interface ResizeGates {
  /** InPlacePodLevelResourcesVerticalScaling: the pod's own resources too. */
  readonly podLevel: boolean;
  /** InPlacePodVerticalScalingInitContainers: init containers that are no sidecars too. */
  readonly initContainers: boolean;
}

type List = Readonly<Record<string, string>>;

function sameList(a: List = {}, b: List = {}): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const left = Object.hasOwn(a, name) ? a[name] : undefined;
    const right = Object.hasOwn(b, name) ? b[name] : undefined;
    if (left === undefined || right === undefined) return false;
    if (left === right) return true;
    const [had, has] = [tryParseQuantity(left), tryParseQuantity(right)];
    return had !== undefined && has !== undefined && compareQuantities(had, has) === 0;
  });
}

/** Whether two lists of resources mean the same, however they are written. What is no quantity is only the same as itself. */
export function sameResources(a: ResourceRequirements = {}, b: ResourceRequirements = {}): boolean {
  const claims = (of: ResourceRequirements) => (of.claims ?? []).map((c) => `${c.name} ${c.request ?? ""}`).join(",");
  return sameList(a.requests, b.requests) && sameList(a.limits, b.limits) && claims(a) === claims(b);
}

/** The containers whose resources can change while they run (features.md C43, C44), in the order of the spec. */
export function resizableContainers(pod: BoundPod, gates: ResizeGates): Container[] {
  return podContainers(pod)
    .filter((c) => c.kind === "regular" || (c.kind === "init" && (gates.initContainers || isSidecar(c))))
    .map((c) => c.spec);
}

/** The resources that the pod's spec has. */
export function resourcesOf(pod: BoundPod, gates: ResizeGates): PodResourceInfo {
  return {
    containers: new Map(resizableContainers(pod, gates).map((c) => [c.name, c.resources ?? {}])),
    ...(gates.podLevel && pod.spec.resources ? { pod: pod.spec.resources } : {}),
  };
}

/**
 * The pod with the resources that it was given in place of those that its spec has; the very same object when they are
 * the same.
 */
export function withResources(pod: BoundPod, given: PodResourceInfo, gates: ResizeGates): BoundPod {
  let changed = false;
  const replace = (list: readonly Container[]) =>
    list.map((container) => {
      const resources = given.containers.get(container.name);
      if (!resources || sameResources(container.resources, resources)) return container;
      changed = true;
      return { ...container, resources };
    });
  const containers = replace(pod.spec.containers);
  const initContainers = pod.spec.initContainers && replace(pod.spec.initContainers);
  const { resources, ...rest } = pod.spec;
  const own = !gates.podLevel || sameResources(resources, given.pod) ? resources : given.pod;
  if (own !== resources) changed = true;
  if (!changed) return pod;
  return {
    ...pod,
    spec: { ...rest, containers, ...(initContainers ? { initContainers } : {}), ...(own ? { resources: own } : {}) },
  };
}
