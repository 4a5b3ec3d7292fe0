import { formatQuantity, milliQuantityOf, quantityOf } from "../../kube/quantity.ts";
import type { BoundPod, Container, ResourceRequirements } from "../../kube/types.ts";
import { newest, type ObservedContainer, type ObservedPod } from "../observed.ts";
import { containerAmounts } from "../resources.ts";
import { type PodResourceInfo, resizableContainers, type ResizeGates, sameResources } from "./allocation.ts";

export type ResizedResource = "memory" | "cpu";

/** What counts of a container's resources: bytes and milli-CPU, 0 for none. */
export interface Figures {
  readonly memoryLimit: bigint;
  readonly memoryRequest: bigint;
  readonly cpuLimit: bigint;
  readonly cpuRequest: bigint;
}

/** A running container that gets other resources without a restart. */
export interface ContainerUpdate {
  readonly id: string;
  readonly name: string;
  readonly from: Figures;
  readonly to: Figures;
}

/** What has to be done so that what runs has the resources that the pod was given. */
export interface ResizeAction {
  /** By resource, in the order in which they are to be updated: those that get less come first. */
  readonly memory: readonly ContainerUpdate[];
  readonly cpu: readonly ContainerUpdate[];
  /** The pod's own resources are others than those carried out. */
  readonly podLevel: boolean;
  /** A container is restarted for its new resources, so that the pod's group needs new limits too. */
  readonly restarts: boolean;
}

/** What was carried out, and what may be at all. */
export interface ResizeView {
  readonly gates: ResizeGates;
  /** Undefined for a pod of which nothing was recorded yet. */
  readonly actuated: PodResourceInfo | undefined;
}

/** The figures of a container; the pod's own limits stand in for those that it lacks. Throws BadPod. */
export function figuresOf(
  resources: ResourceRequirements | undefined,
  pod: ResourceRequirements | undefined,
  { podLevel }: ResizeGates,
): Figures {
  const { requests, limits } = containerAmounts(resources, "container");
  const own = podLevel ? containerAmounts({ limits: pod?.limits ?? {} }, "pod").limits : {};
  return {
    memoryLimit: (limits.memory ?? 0n) || (own.memory ?? 0n),
    memoryRequest: requests.memory ?? 0n,
    cpuLimit: (limits.cpu ?? 0n) || (own.cpu ?? 0n),
    cpuRequest: requests.cpu ?? 0n,
  };
}

/** A container's resources with the limits that it has by its pod, as they are recorded once carried out. */
export function effectiveResources(
  { resources = {} }: Container,
  pod: BoundPod,
  gates: ResizeGates,
): ResourceRequirements {
  const own = gates.podLevel ? pod.spec.resources?.limits ?? {} : {};
  const { limits } = containerAmounts(resources, "container");
  const added = (["cpu", "memory"] as const).filter((name) => own[name] !== undefined && !limits[name]);
  if (added.length === 0) return resources;
  return { ...resources, limits: { ...resources.limits, ...Object.fromEntries(added.map((n) => [n, own[n]!])) } };
}

/** The resources with these figures in place of their CPU and memory; a figure of 0 leaves the name out. */
export function withFigures(resources: ResourceRequirements | undefined, figures: Figures): ResourceRequirements {
  const list = (of: Readonly<Record<string, string>> = {}, cpu: bigint, memory: bigint) => {
    const { cpu: _cpu, memory: _memory, ...rest } = of;
    return {
      ...rest,
      ...(cpu > 0n ? { cpu: formatQuantity(milliQuantityOf(cpu)) } : {}),
      ...(memory > 0n ? { memory: formatQuantity(quantityOf(memory, "BinarySI")) } : {}),
    };
  };
  return {
    ...resources,
    limits: list(resources?.limits, figures.cpuLimit, figures.memoryLimit),
    requests: list(resources?.requests, figures.cpuRequest, figures.memoryRequest),
  };
}

/** The figures of an update when `resource` was carried out and the other one was not. */
export function stepFigures({ from, to }: ContainerUpdate, resource: ResizedResource): Figures {
  return resource === "memory"
    ? { ...from, memoryLimit: to.memoryLimit, memoryRequest: to.memoryRequest }
    : { ...from, cpuLimit: to.cpuLimit, cpuRequest: to.cpuRequest };
}

const same = (a: Figures, b: Figures) =>
  a.memoryLimit === b.memoryLimit && a.memoryRequest === b.memoryRequest && a.cpuLimit === b.cpuLimit &&
  a.cpuRequest === b.cpuRequest;

/**
 * How the container's figures have to change, or undefined when they are as they should be. A container of which
 * nothing was recorded is taken as it is: an agent that takes over must not touch what runs.
 */
function changeOf(pod: BoundPod, spec: Container, { actuated, gates }: ResizeView): ContainerUpdate | undefined {
  const recorded = actuated?.containers.get(spec.name);
  if (!recorded) return undefined;
  const to = figuresOf(spec.resources, pod.spec.resources, gates);
  const from = figuresOf(recorded, actuated?.pod, gates);
  return same(from, to) ? undefined : { id: "", name: spec.name, from, to };
}

/** True when the change calls for a restart, by the container's resize policy. */
function restartsFor({ from, to }: ContainerUpdate, { resizePolicy = [] }: Container): boolean {
  const policy = (name: ResizedResource) =>
    resizePolicy.find((p) => p.resourceName === name)?.restartPolicy === "RestartContainer";
  const memory = from.memoryLimit !== to.memoryLimit || from.memoryRequest !== to.memoryRequest;
  const cpu = from.cpuLimit !== to.cpuLimit || from.cpuRequest !== to.cpuRequest;
  return (memory && policy("memory")) || (cpu && policy("cpu"));
}

/** Whether a running container has to be restarted for the resources that it was given. Throws BadPod. */
export function needsRestart(
  pod: BoundPod,
  spec: Container,
  instance: ObservedContainer,
  view: ResizeView | undefined,
): boolean {
  if (!view || instance.state !== "running") return false;
  if (!resizableContainers(pod, view.gates).includes(spec)) return false;
  const change = changeOf(pod, spec, view);
  return change !== undefined && restartsFor(change, spec);
}

function podLevelDiffers(pod: BoundPod, { actuated, gates }: ResizeView): boolean {
  if (!gates.podLevel || actuated === undefined || actuated.containers.size === 0) return false;
  const now = figuresOf(pod.spec.resources, undefined, gates);
  return !same(now, figuresOf(actuated.pod, undefined, gates));
}

/** Those that get less first, the last of them foremost; then those that get more. */
function inOrder(updates: readonly { update: ContainerUpdate; by: bigint }[]): ContainerUpdate[] {
  return [...updates.filter((u) => u.by < 0n).reverse(), ...updates.filter((u) => u.by > 0n)].map((u) => u.update);
}

/**
 * What a resize asks for besides restarts, or undefined when what runs is as it should be.
 * @param leaving ids of containers that are killed now anyway
 */
export function resizeAction(
  pod: BoundPod,
  observed: ObservedPod,
  view: ResizeView,
  { leaving, restarts }: { leaving: ReadonlySet<string>; restarts: boolean },
): ResizeAction | undefined {
  const memory: { update: ContainerUpdate; by: bigint }[] = [];
  const cpu: typeof memory = [];
  for (const spec of resizableContainers(pod, view.gates)) {
    const instance = newest(observed, spec.name);
    if (instance?.state !== "running" || leaving.has(instance.id)) continue;
    const change = changeOf(pod, spec, view);
    if (!change) continue;
    const update = { ...change, id: instance.id };
    const { from, to } = update;
    const byMemory = to.memoryLimit - from.memoryLimit || to.memoryRequest - from.memoryRequest;
    const byCpu = to.cpuLimit - from.cpuLimit || to.cpuRequest - from.cpuRequest;
    if (byMemory !== 0n) memory.push({ update, by: byMemory });
    if (byCpu !== 0n) cpu.push({ update, by: byCpu });
  }
  const podLevel = podLevelDiffers(pod, view);
  if (memory.length === 0 && cpu.length === 0 && !podLevel && !restarts) return undefined;
  return { memory: inOrder(memory), cpu: inOrder(cpu), podLevel, restarts };
}

/** True while a running container, or the pod as a whole, has other resources than it was given. Throws BadPod. */
export function resizeInProgress(pod: BoundPod, observed: ObservedPod, view: ResizeView): boolean {
  const runs = (spec: Container) => newest(observed, spec.name)?.state === "running";
  return podLevelDiffers(pod, view) ||
    resizableContainers(pod, view.gates).some((spec) => runs(spec) && changeOf(pod, spec, view) !== undefined);
}

/** True when the CPU or memory of a container or of the pod differs between two of a pod's definitions. */
export function resizeAsked(before: BoundPod, now: BoundPod): boolean {
  const of = (pod: BoundPod) =>
    new Map([...pod.spec.initContainers ?? [], ...pod.spec.containers].map((c) => [c.name, c.resources]));
  const old = of(before);
  return !sameResources(before.spec.resources, now.spec.resources) ||
    [...of(now)].some(([name, resources]) => !sameResources(old.get(name), resources));
}
