import type { BoundPod, Pod } from "../kube/types.ts";

/** A pod from the API server, or why it cannot be used. */
export type ApiPod = { readonly pod: BoundPod } | { readonly problem: string; readonly pod?: BoundPod };

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const uidShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Takes what the API server sent for a pod. The server has checked it and set its defaults, so only that is looked at
 * which could hurt the node if it were otherwise: names that become paths, and the lists that the agent walks through.
 */
export function takeApiPod(sent: Pod, nodeName: string): ApiPod {
  const { name, namespace, uid } = sent.metadata ?? {};
  if (!matches(name, subdomain)) return { problem: `metadata.name: ${shown(name)} is no name of a pod` };
  if (!matches(namespace, label)) return { problem: `metadata.namespace: ${shown(namespace)} is no namespace` };
  if (!matches(uid, uidShape)) return { problem: `metadata.uid: ${shown(uid)} can't name a directory` };
  const { managedFields: _, ...metadata } = sent.metadata ?? {};
  const spec: unknown = sent.spec;
  if (!isObject(spec)) return { problem: "spec: want an object" };
  const pod: BoundPod = {
    ...sent,
    metadata: { ...metadata, name, namespace, uid },
    spec: sent.spec ?? { containers: [] },
  };
  if (spec.nodeName !== nodeName) return { problem: `spec.nodeName: ${shown(spec.nodeName)} is not this node`, pod };
  const problem = listProblem(spec, "containers", true) ?? listProblem(spec, "initContainers") ??
    listProblem(spec, "ephemeralContainers") ?? listProblem(spec, "volumes");
  return problem === undefined ? { pod } : { problem, pod: { ...pod, spec: { containers: [] } } };
}

function listProblem(spec: Record<string, unknown>, field: string, required = false): string | undefined {
  const list = spec[field];
  if (list === undefined || list === null) return required ? `spec.${field}: want at least one` : undefined;
  if (!Array.isArray(list)) return `spec.${field}: want a list`;
  if (required && list.length === 0) return `spec.${field}: want at least one`;
  const names = new Set<string>();
  for (const [i, item] of list.entries()) {
    const name = isObject(item) ? item.name : undefined;
    if (!matches(name, label)) return `spec.${field}[${i}].name: ${shown(name)} is no name`;
    if (names.has(name)) return `spec.${field}[${i}].name: ${shown(name)} is there twice`;
    names.add(name);
  }
  return undefined;
}

function matches(value: unknown, shape: RegExp): value is string {
  return typeof value === "string" && shape.test(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 80);
}
