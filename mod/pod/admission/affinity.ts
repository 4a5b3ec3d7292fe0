import type { BoundPod, NodeSelectorRequirement, NodeSelectorTerm } from "../../kube/types.ts";
import type { NodeFacts } from "./types.ts";

/** A whole number as Gt and Lt compare it, or undefined. */
function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d{1,19}$/.test(text) ? BigInt(text.replace("+", "")) : undefined;
}

function matches({ operator, values = [] }: NodeSelectorRequirement, have: string | undefined): boolean {
  switch (operator) {
    case "In":
      return have !== undefined && values.includes(have);
    case "NotIn":
      return have === undefined || !values.includes(have);
    case "Exists":
      return have !== undefined;
    case "DoesNotExist":
      return have === undefined;
    case "Gt":
    case "Lt": {
      const [left, right] = [wholeNumber(have), wholeNumber(values[0])];
      if (values.length !== 1 || left === undefined || right === undefined) return false;
      return operator === "Gt" ? left > right : left < right;
    }
    default:
      return false;
  }
}

function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: NodeFacts): boolean {
  // A term that says nothing matches nothing.
  if (matchExpressions.length + matchFields.length === 0) return false;
  const label = (key: string) => Object.hasOwn(node.labels, key) ? node.labels[key] : undefined;
  return matchExpressions.every((r) => matches(r, label(r.key))) &&
    matchFields.every((r) => r.key === "metadata.name" && matches(r, node.name));
}

/** True when the node has the labels of the pod's node selector and of one term of its required node affinity. */
export function fitsNodeAffinity(pod: BoundPod, node: NodeFacts): boolean {
  const selected = Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) =>
    Object.hasOwn(node.labels, key) && node.labels[key] === value
  );
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return selected && (required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node)));
}
