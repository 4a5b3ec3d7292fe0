import { podContainers } from "../../kube/pod.ts";
import { compareQuantities, parseQuantity } from "../../kube/quantity.ts";
import type { BoundPod, Container, ResourceRequirements } from "../../kube/types.ts";
import { computeQosClass, podRequests, qosClass } from "../resources.ts";
import { type PodResourceInfo, resizableContainers, type ResizeGates, sameResources } from "./allocation.ts";
import { figuresOf, withFigures } from "./needs.ts";

/** What of this node's settings bears on resizes. */
export interface ResizePolicy {
  readonly gates: ResizeGates;
  /** The CPU manager's and the memory manager's policy in the words of the configuration. */
  readonly cpuManagerPolicy: string;
  readonly memoryManagerPolicy: string;
  /** InPlacePodVerticalScalingExclusiveCPUs and …ExclusiveMemory. */
  readonly exclusiveCpus: boolean;
  readonly exclusiveMemory: boolean;
  /** Whether the container may use swap. */
  readonly swaps: (pod: BoundPod, container: Container) => boolean;
}

/** Why a resize can never be done here. `detail` is the metric's label. */
export interface Infeasible {
  readonly message: string;
  readonly detail: string;
}

const quantity = (resources: ResourceRequirements | undefined, name: string) =>
  parseQuantity(resources?.requests?.[name] ?? "0", { what: `requests.${name}`, code: "BadPod" });

function requestsDiffer(a: Container | undefined, b: Container | undefined, name: string): boolean {
  return compareQuantities(quantity(a?.resources, name), quantity(b?.resources, name)) !== 0;
}

/**
 * Whether the node can never carry out the resize, by its settings (features.md section 13); undefined when it may.
 * @param allocated the pod with the resources that it has now
 */
export function infeasible(pod: BoundPod, allocated: BoundPod, policy: ResizePolicy): Infeasible | undefined {
  const { gates } = policy;
  const before = new Map(podContainers(allocated).map((c) => [c.spec.name, c.spec]));
  const swapped = [...pod.spec.containers, ...pod.spec.initContainers ?? []].some((container) => {
    const old = before.get(container.name);
    if (!old || !requestsDiffer(old, container, "memory")) return false;
    const restarts = old.resizePolicy?.find((p) => p.resourceName === "memory")?.restartPolicy === "RestartContainer";
    return !restarts && (policy.swaps(pod, container) || policy.swaps(allocated, old));
  });
  if (swapped) {
    return { message: "In-place resize of containers with swap is not supported.", detail: "swap_limitation" };
  }
  if (!gates.podLevel && !sameResources(pod.spec.resources, allocated.spec.resources)) {
    return { message: "InPlacePodLevelResourcesVerticalScaling is disabled", detail: "plr_feature_gate_off" };
  }
  if (qosClass(pod) !== "Guaranteed") return undefined;
  const changes = (name: string) =>
    resizableContainers(pod, gates).some((c) => requestsDiffer(before.get(c.name), c, name));
  const alongside = (manager: string, word: string) =>
    `Resize is infeasible for Guaranteed Pods alongside ${manager} Manager policy "${word}"`;
  if (policy.cpuManagerPolicy === "static" && !policy.exclusiveCpus && changes("cpu")) {
    return { message: alongside("CPU", "static"), detail: "guaranteed_pod_cpu_manager_static_policy" };
  }
  if (policy.memoryManagerPolicy === "Static" && !policy.exclusiveMemory && changes("memory")) {
    return { message: alongside("Memory", "Static"), detail: "guaranteed_pod_memory_manager_static_policy" };
  }
  return undefined;
}

/** A resize that waits, as the order of the queue sees it. */
export interface PendingResize {
  /** As wanted, and with the resources that it has now. */
  readonly pod: BoundPod;
  readonly allocated: BoundPod;
  /** Since when it waits, milliseconds; undefined when it was not put off yet. */
  readonly since: number | undefined;
}

/** True when the pod as a whole would request more CPU or memory than it has. Throws BadPod. */
export function raisesRequests({ pod, allocated }: Pick<PendingResize, "pod" | "allocated">): boolean {
  const [wanted, has] = [podRequests(pod), podRequests(allocated)];
  return (["cpu", "memory"] as const).some((name) => (wanted[name] ?? 0n) > (has[name] ?? 0n));
}

/**
 * The order in which waiting resizes are looked at (features.md section 13): those that raise no request, then by
 * priority, then Guaranteed before Burstable, then the one that has waited longest.
 */
export function compareResizes(a: PendingResize, b: PendingResize): number {
  const [raisesA, raisesB] = [raisesRequests(a), raisesRequests(b)];
  if (raisesA !== raisesB) return raisesA ? 1 : -1;
  const priority = (b.pod.spec.priority ?? 0) - (a.pod.spec.priority ?? 0);
  if (priority !== 0) return priority;
  const guaranteed = ({ pod }: PendingResize) => computeQosClass(pod) === "Guaranteed" ? 0 : 1;
  return guaranteed(a) - guaranteed(b) || (a.since ?? Infinity) - (b.since ?? Infinity) || 0;
}

/**
 * A pod as admission counts it while it is resized: of each request the greater of what it was given and what its
 * containers have, for what shrinks holds its resources until that is carried out. Throws BadPod.
 */
export function countedPod(allocated: BoundPod, actuated: PodResourceInfo | undefined, gates: ResizeGates): BoundPod {
  if (!actuated) return allocated;
  let changed = false;
  const raised = (now: ResourceRequirements | undefined, had: ResourceRequirements | undefined) => {
    if (!had) return now;
    const [to, from] = [figuresOf(now, undefined, gates), figuresOf(had, undefined, gates)];
    if (from.cpuRequest <= to.cpuRequest && from.memoryRequest <= to.memoryRequest) return now;
    changed = true;
    return withFigures(now, {
      ...to,
      cpuRequest: from.cpuRequest > to.cpuRequest ? from.cpuRequest : to.cpuRequest,
      memoryRequest: from.memoryRequest > to.memoryRequest ? from.memoryRequest : to.memoryRequest,
    });
  };
  const each = (list: readonly Container[]) =>
    list.map((c) => {
      const resources = raised(c.resources, actuated.containers.get(c.name));
      return resources && resources !== c.resources ? { ...c, resources } : c;
    });
  const { spec } = allocated;
  const containers = each(spec.containers);
  const initContainers = spec.initContainers && each(spec.initContainers);
  const resources = gates.podLevel && spec.resources ? raised(spec.resources, actuated.pod) : spec.resources;
  if (!changed) return allocated;
  return {
    ...allocated,
    spec: { ...spec, containers, ...(initContainers ? { initContainers } : {}), ...(resources ? { resources } : {}) },
  };
}
