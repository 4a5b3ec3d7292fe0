import type { LabelSelector, LabelSelectorRequirement } from "../../mod/kube/types.ts";

/** Whether labels fit a selector. No selector fits nothing, an empty one everything. Throws for an unknown operator. */
export function labelsFit(selector: LabelSelector | undefined, labels: Readonly<Record<string, string>> = {}): boolean {
  if (!selector) return false;
  const valueOf = (key: string) => Object.hasOwn(labels, key) ? labels[key] : undefined;
  return Object.entries(selector.matchLabels ?? {}).every(([key, value]) => valueOf(key) === value) &&
    (selector.matchExpressions ?? []).every((requirement) => fits(requirement, valueOf(requirement.key)));
}

function fits({ operator, values = [] }: LabelSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      throw new Error(
        `while parsing label selector: ${JSON.stringify(operator)} is not a valid label selector operator`,
      );
  }
}
