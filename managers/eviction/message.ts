import { formatQuantity, parseQuantity, zeroQuantity } from "../../mod/kube/quantity.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { hasPodLevelResources } from "../../mod/pod/resources.ts";
import type { ContainerSample, PodSample } from "../stats/types.ts";
import { type MemoryView, usedMemory } from "./observations.ts";
import { isPsi, signalFacts } from "./signals.ts";
import { amountOf } from "./thresholds.ts";
import type { Observations, Resource, Signal, Threshold } from "./types.ts";
import { bytesOf, memoryUsage } from "./usage.ts";

export interface MessageInput extends MemoryView {
  readonly pod: BoundPod;
  readonly stats: PodSample | undefined;
  readonly signal: Signal;
  /** Thresholds that are due, in their order; the first of the resource tells its figures. */
  readonly due: readonly Threshold[];
  readonly observations: Observations;
}

/** Why a pod is evicted, in the contract's words, and the annotations of the event (runtime-contract.md section 20). */
export function evictionMessage(input: MessageInput): { message: string; annotations: Record<string, string> } {
  const { pod, stats, signal } = input;
  const { resource } = signalFacts[signal];
  let message = `The node was low on resource: ${resource}. ${figures(resource, input)}`;
  const annotations: Record<string, string> = {};
  if (!stats) return { message, annotations };
  const was = (what: string, usage: string, request: string) =>
    `${what} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `;
  const ofPod = pod.spec.resources?.requests?.[resource];
  if (resource === "memory" && ofPod !== undefined && stats.sample?.memory && hasPodLevelResources(pod)) {
    const usage = formatQuantity(bytesOf(memoryUsage(stats, input)));
    message += was(`Pod ${pod.metadata.name}`, usage, requestText(ofPod));
    annotations.offending_pod = pod.metadata.name;
    annotations.offending_pod_usage = usage;
  }
  const names: string[] = [], usages: string[] = [];
  const specs = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  for (const container of stats.containers) {
    const spec = specs.find(({ name }) => name === container.name);
    const used = usageOf(container, resource, input);
    if (!spec || used === undefined) continue;
    const usage = bytesOf(used);
    const request = spec.resources?.requests?.[resource];
    if (usage.nano <= (request === undefined ? zeroQuantity : parseQuantity(request)).nano) continue;
    message += was(`Container ${spec.name}`, formatQuantity(usage), requestText(request));
    names.push(spec.name);
    usages.push(formatQuantity(usage));
  }
  annotations.offending_containers = names.join(",");
  annotations.offending_containers_usage = usages.join(",");
  annotations.starved_resource = resource;
  return { message, annotations };
}

function requestText(text: string | undefined): string {
  return text === undefined ? "0" : formatQuantity(parseQuantity(text));
}

function figures(resource: Resource, { due, observations }: MessageInput): string {
  const threshold = due.find(({ signal }) => signalFacts[signal].resource === resource && observations.has(signal));
  const observed = threshold && observations.get(threshold.signal);
  if (!observed) return "";
  const quantity = amountOf(threshold.value, observed.capacity);
  if (!isPsi(threshold.signal)) {
    return `Threshold quantity: ${formatQuantity(quantity)}, available: ${formatQuantity(observed.available)}. `;
  }
  const percent = (left: bigint) => `${(100e9 - Number(left)) / 1e9} %`;
  return `Threshold of ${threshold.signal}: ${percent(quantity.nano)}, time lost: ${
    percent(observed.available.nano)
  }. `;
}

/** Bytes that a container uses of what runs short; undefined where the contract names no containers. */
function usageOf(container: ContainerSample, resource: Resource, view: MemoryView): number | undefined {
  if (resource === "memory") return container.sample?.memory && usedMemory(container.sample.memory, view);
  if (resource !== "ephemeral-storage") return undefined;
  const root = container.rootfs?.used, logs = container.logs?.used;
  return root === undefined || logs === undefined ? undefined : root + logs;
}
