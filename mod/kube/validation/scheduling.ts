import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration } from "../types.ts";
import { checkLabels, checkQualifiedName, isLabelValue, isSubdomain } from "./names.ts";
import type { Problems } from "./problem.ts";

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Checks what says on which node the pod may run, as far as a node acts on it. */
export function checkScheduling(p: Problems, spec: PodSpec): void {
  checkLabels(p, "spec.nodeSelector", spec.nodeSelector);
  spec.tolerations?.forEach((toleration, i) => checkToleration(p, `spec.tolerations[${i}]`, toleration));
  const affinity = spec.affinity?.nodeAffinity;
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required) {
    const at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    if (required.nodeSelectorTerms.length === 0) p.required(at, "give at least one term");
    required.nodeSelectorTerms.forEach((term, i) => checkTerm(p, `${at}[${i}]`, term));
  }
  affinity?.preferredDuringSchedulingIgnoredDuringExecution?.forEach(({ weight, preference }, i) => {
    const at = `spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[${i}]`;
    p.range(`${at}.weight`, weight, 1, 100);
    checkTerm(p, `${at}.preference`, preference);
  });
  spec.readinessGates?.forEach(({ conditionType }, i) =>
    checkQualifiedName(p, `spec.readinessGates[${i}].conditionType`, conditionType)
  );
  if (spec.schedulingGates?.length && spec.nodeName) {
    p.forbidden("spec.schedulingGates", "once the pod has a node, as a static pod always has");
  }
  if (spec.preemptionPolicy !== undefined) {
    p.oneOf("spec.preemptionPolicy", spec.preemptionPolicy, ["PreemptLowerPriority", "Never"]);
  }
}

function checkToleration(p: Problems, path: string, toleration: Toleration): void {
  const { key, operator = "", value = "", effect, tolerationSeconds } = toleration;
  if (key) checkQualifiedName(p, `${path}.key`, key);
  else if (operator !== "Exists") {
    p.add(`${path}.operator`, operator, "needs a key", "name a key, or use Exists to tolerate everything");
  }
  p.oneOf(`${path}.operator`, operator || "Equal", ["Equal", "Exists"]);
  if (operator === "Exists" && value !== "") {
    p.add(`${path}.value`, value, "has no meaning with Exists", "remove it, or use Equal");
  } else if (operator !== "Exists" && !isLabelValue(value)) {
    p.add(`${path}.value`, value, "is no label value", "use at most 63 letters, digits, '-', '_', '.'");
  }
  if (effect) p.oneOf(`${path}.effect`, effect, effects);
  if (tolerationSeconds !== undefined && effect !== "NoExecute") {
    p.add(`${path}.effect`, effect, "has no tolerationSeconds", "use NoExecute, or leave tolerationSeconds out");
  }
}

function checkTerm(p: Problems, path: string, term: NodeSelectorTerm): void {
  term.matchExpressions?.forEach((requirement, i) => {
    const at = `${path}.matchExpressions[${i}]`;
    checkQualifiedName(p, `${at}.key`, requirement.key);
    p.oneOf(`${at}.operator`, requirement.operator, ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    checkValueCount(p, at, requirement);
    requirement.values?.forEach((value, v) => {
      if (!isLabelValue(value)) {
        p.add(`${at}.values[${v}]`, value, "is no label value", "use letters, digits, '-', '_', '.'");
      }
    });
  });
  term.matchFields?.forEach(({ key, operator, values = [] }, i) => {
    const at = `${path}.matchFields[${i}]`;
    p.oneOf(`${at}.key`, key, ["metadata.name"]);
    p.oneOf(`${at}.operator`, operator, ["In", "NotIn"]);
    if (values.length !== 1) p.add(`${at}.values`, values, "is not one value", "give exactly one node name");
    values.forEach((value, v) => {
      if (!isSubdomain(value)) p.add(`${at}.values[${v}]`, value, "is no node name", "use the name of a node");
    });
  });
}

function checkValueCount(p: Problems, at: string, { operator, values = [] }: NodeSelectorRequirement): void {
  const path = `${at}.values`;
  if ((operator === "In" || operator === "NotIn") && values.length === 0) p.required(path, "give at least one value");
  if ((operator === "Exists" || operator === "DoesNotExist") && values.length > 0) {
    p.forbidden(path, `with ${operator}`);
  }
  if ((operator === "Gt" || operator === "Lt") && values.length !== 1) {
    p.add(path, values, "is not one value", "give exactly one number");
  }
}
