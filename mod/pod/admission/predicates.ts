import { isSidecar, isStatic, podContainers } from "../../kube/pod.ts";
import { milliValueBig, parseQuantity, valueBig } from "../../kube/quantity.ts";
import type { BoundPod, Taint, Toleration } from "../../kube/types.ts";
import { type Amounts, podRequests } from "../resources.ts";
import { fitsNodeAffinity } from "./affinity.ts";
import type { NodeFacts } from "./types.ts";

/** A resource of which the node has too little left; `cpu` in milli-CPU. */
export interface Shortage {
  readonly resource: string;
  readonly requested: bigint;
  readonly used: bigint;
  readonly capacity: bigint;
}

/** A predicate that failed for another cause than resources. */
export interface Misfit {
  readonly predicate: "NodeAffinity" | "NodeName" | "NodePorts" | "TaintToleration";
  readonly description: string;
}

/** A resource outside Kubernetes' own names, which a device plugin or the cluster gives. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/") && !name.startsWith("requests.");
}

/** True for resources that are counted on a node at all. */
function isCounted(name: string): boolean {
  return ["cpu", "memory", "ephemeral-storage"].includes(name) || name.startsWith("hugepages-") ||
    name.startsWith("attachable-volumes-") || name.includes("kubernetes.io/") || isExtended(name);
}

function allocatableOf(node: NodeFacts, name: string): bigint {
  const text = Object.hasOwn(node.allocatable, name) ? node.allocatable[name] : undefined;
  if (text === undefined) return 0n;
  const quantity = parseQuantity(text, { what: `allocatable ${name} of node ${node.name}` });
  return name === "cpu" ? milliValueBig(quantity) : valueBig(quantity);
}

const amount = (of: Amounts, name: string) => Object.hasOwn(of, name) ? of[name] ?? 0n : 0n;

/** What one pod takes of a resource; every pod takes one of `pods`. */
export function requestOf(pod: BoundPod, resource: string): bigint {
  return resource === "pods" ? 1n : amount(podRequests(pod), resource);
}

/** The resources of which the node has too little left for the pod: `pods` first, then cpu, memory, storage, others. */
export function shortages(pod: BoundPod, node: NodeFacts, active: readonly BoundPod[]): Shortage[] {
  const found: Shortage[] = [];
  const check = (resource: string, requested: bigint, used: bigint) => {
    const capacity = allocatableOf(node, resource);
    if (requested > 0n && requested > capacity - used) found.push({ resource, requested, used, capacity });
  };
  check("pods", 1n, BigInt(active.length));
  const taken = active.map((p) => podRequests(p));
  const wanted = podRequests(pod);
  const order = ["cpu", "memory", "ephemeral-storage"];
  const rank = (name: string) => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  const names = Object.keys(wanted).filter(isCounted).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  for (const name of names) {
    // Cluster-level resources, of which the node says nothing, are someone else's to count.
    if (isExtended(name) && !Object.hasOwn(node.allocatable, name)) continue;
    check(name, amount(wanted, name), taken.reduce((sum, t) => sum + amount(t, name), 0n));
  }
  return found;
}

interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

function hostPorts(pod: BoundPod): HostPort[] {
  return podContainers(pod).filter((c) => c.kind === "regular" || isSidecar(c)).flatMap((c) =>
    (c.spec.ports ?? []).flatMap(({ hostPort, containerPort, hostIP, protocol }) => {
      const port = hostPort || (pod.spec.hostNetwork ? containerPort : 0);
      return port > 0 ? [{ ip: hostIP || "0.0.0.0", protocol: protocol || "TCP", port }] : [];
    })
  );
}

function portsConflict(pod: BoundPod, active: readonly BoundPod[]): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  const any = "0.0.0.0";
  return active.flatMap(hostPorts).some((have) =>
    wanted.some((w) =>
      w.port === have.port && w.protocol === have.protocol && (w.ip === have.ip || w.ip === any || have.ip === any)
    )
  );
}

function tolerates({ key = "", operator = "Equal", value = "", effect = "" }: Toleration, taint: Taint): boolean {
  if (effect !== "" && effect !== taint.effect) return false;
  if (key !== "" && key !== taint.key) return false;
  if (operator === "Exists") return true;
  return key !== "" && (operator === "" || operator === "Equal") && value === (taint.value ?? "");
}

/** True when one of the pod's tolerations bears the taint. */
export function toleratesTaint(pod: BoundPod, taint: Taint): boolean {
  return pod.spec.tolerations?.some((t) => tolerates(t, taint)) ?? false;
}

/** What of the pod doesn't fit the node, resources aside (runtime-contract.md section 17), in the order of the checks. */
export function misfits(pod: BoundPod, node: NodeFacts, active: readonly BoundPod[]): Misfit[] {
  const found: Misfit[] = [];
  if (!fitsNodeAffinity(pod, node)) {
    found.push({ predicate: "NodeAffinity", description: "node(s) didn't match Pod's node affinity/selector" });
  }
  if (pod.spec.nodeName && pod.spec.nodeName !== node.name) {
    found.push({ predicate: "NodeName", description: "node(s) didn't match the requested node name" });
  }
  if (portsConflict(pod, active)) {
    const description = "node(s) didn't have free ports for the requested pod ports";
    found.push({ predicate: "NodePorts", description });
  }
  const untolerated = (node.taints ?? []).some((t) => t.effect === "NoExecute" && !toleratesTaint(pod, t));
  if (untolerated && !isStatic(pod)) {
    found.push({ predicate: "TaintToleration", description: "node(s) had taints that the pod didn't tolerate" });
  }
  return found;
}
