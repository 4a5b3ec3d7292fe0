import type { Node } from "../../mod/kube/types.ts";
import { isExtendedResource, isHugePages, sameQuantity } from "./resources.ts";
import { type NextNode, nextNode, withoutStrangeHugePages } from "./status.ts";
import type { NodeProfile, NodeSituation } from "./types.ts";

/** Says that the controllers attach and detach volumes, not the node. */
export const attachDetachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach";

/** Keeps pods away until an external cloud provider has looked at the node. */
const uninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized";

/** Labels that follow this node's at each registration, where it has them; others are the API server's. */
const followedLabels = [
  "kubernetes.io/hostname",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "node.kubernetes.io/instance-type",
  "beta.kubernetes.io/instance-type",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
];

/** The labels that this node registers with (runtime-contract.md section 19). */
export function initialLabels(profile: Pick<NodeProfile, "name" | "arch" | "labels">): Record<string, string> {
  return {
    "kubernetes.io/hostname": profile.name,
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": profile.arch,
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": profile.arch,
    ...profile.labels,
  };
}

/** The node that is created, and the events of its first status. @param now milliseconds since the epoch */
export function initialNode(profile: NodeProfile, situation: NodeSituation, now: number): NextNode {
  const taints = [
    ...profile.taints,
    ...(profile.externalCloud ? [{ key: uninitializedTaint, value: "true", effect: "NoSchedule" }] : []),
  ];
  const bare: Node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: profile.name,
      labels: initialLabels(profile),
      ...(profile.controllerAttachDetach ? { annotations: { [attachDetachAnnotation]: "true" } } : {}),
    },
    spec: {
      ...(taints.length > 0 ? { taints } : {}),
      ...(profile.providerID === "" ? {} : { providerID: profile.providerID }),
    },
  };
  const { node, events } = nextNode(bare, profile, situation, now);
  // A label of --node-labels wins over the default also here; a status later than this one corrects it.
  return { node: { ...node, metadata: { ...node.metadata, labels: initialLabels(profile) } }, events };
}

/**
 * An existing node as registration makes it: labels that follow this node's, the annotation of attach and detach, huge
 * pages, extended resources (runtime-contract.md section 19). Taints and everything else stay. Pure.
 */
export function reconciled(existing: Node, initial: Node, profile: NodeProfile): Node {
  const labels = { ...existing.metadata?.labels };
  for (const name of followedLabels) {
    const wanted = initial.metadata?.labels?.[name];
    if (wanted === undefined) continue;
    if (wanted === "") delete labels[name];
    else labels[name] = wanted;
  }
  const { [attachDetachAnnotation]: _old, ...annotations } = existing.metadata?.annotations ?? {};
  const attach = initial.metadata?.annotations?.[attachDetachAnnotation];
  return {
    ...existing,
    metadata: {
      ...existing.metadata,
      labels,
      annotations: attach === undefined ? annotations : { ...annotations, [attachDetachAnnotation]: attach },
    },
    status: {
      ...existing.status,
      capacity: reconciledResources(existing.status?.capacity, initial.status?.capacity, profile),
      allocatable: reconciledResources(existing.status?.allocatable, initial.status?.allocatable, profile),
    },
  };
}

function reconciledResources(
  existing: Readonly<Record<string, string>> | undefined,
  initial: Readonly<Record<string, string>> = {},
  { resetExtendedResources }: NodeProfile,
): Record<string, string> {
  const result = withoutStrangeHugePages(existing ?? initial, initial);
  for (const [name, text] of Object.entries(initial)) {
    if (isHugePages(name) && !sameQuantity(result[name] ?? "", text)) result[name] = text;
  }
  if (resetExtendedResources) {
    for (const name of Object.keys(result)) {
      if (isExtendedResource(name) && !sameQuantity(result[name] ?? "", "0")) result[name] = "0";
    }
  }
  return result;
}
