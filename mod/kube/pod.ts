import type { PodRef } from "../base/journal.ts";
import type { BoundPod, Container, ContainerKind } from "./types.ts";

/** Annotations of static pods and their mirrors (runtime-contract.md section 1). */
export const configSource = "kubernetes.io/config.source";
export const configHash = "kubernetes.io/config.hash";
export const configSeen = "kubernetes.io/config.seen";
export const configMirror = "kubernetes.io/config.mirror";

/** Priority from which a pod is critical. */
export const criticalPriority = 2_000_000_000;

/** `<name>_<namespace>`, the contract's full name. */
export function podFullName(pod: { metadata: { name: string; namespace: string } }): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}

/** The pod as the journal and log lines name it. */
export function podRef(pod: BoundPod): PodRef {
  return { namespace: pod.metadata.namespace, name: pod.metadata.name, uid: pod.metadata.uid };
}

/** True for a pod that came from a file, URL or standard input, not from the API. */
export function isStatic(pod: BoundPod): boolean {
  const source = pod.metadata.annotations?.[configSource];
  return source !== undefined && source !== "api";
}

/** True for the API's picture of a static pod. */
export function isMirror(pod: BoundPod): boolean {
  return pod.metadata.annotations?.[configMirror] !== undefined;
}

/** Static, mirror or of critical priority (runtime-contract.md section 17). */
export function isCritical(pod: BoundPod): boolean {
  return isStatic(pod) || isMirror(pod) || (pod.spec.priority ?? 0) >= criticalPriority;
}

/** A container of a pod with the list it stands in. Ephemeral containers have the same fields as regular ones. */
export interface PodContainer {
  readonly kind: ContainerKind;
  readonly spec: Container;
}

/** Every container of the pod: init, regular, ephemeral, each in spec order. */
export function podContainers(pod: BoundPod): PodContainer[] {
  return [
    ...(pod.spec.initContainers ?? []).map((spec) => ({ kind: "init" as const, spec })),
    ...pod.spec.containers.map((spec) => ({ kind: "regular" as const, spec })),
    ...(pod.spec.ephemeralContainers ?? []).map((spec) => ({ kind: "ephemeral" as const, spec: spec as Container })),
  ];
}

/** True for an init container that keeps running beside the regular ones. */
export function isSidecar(container: PodContainer): boolean {
  return container.kind === "init" && container.spec.restartPolicy === "Always";
}

/** The field path that events and errors use, such as `spec.initContainers{setup}`. */
export function containerPath(container: PodContainer): string {
  const list = { init: "initContainers", regular: "containers", ephemeral: "ephemeralContainers" }[container.kind];
  return `spec.${list}{${container.spec.name}}`;
}
