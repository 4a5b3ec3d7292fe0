import type { BoundPod, Container } from "../../kube/types.ts";
import { containerAmounts } from "../resources.ts";

/** How one figure of a container is asked to change, in the words of the metric. */
export interface ResizeOperation {
  readonly resource: "cpu" | "memory";
  readonly requirement: "requests" | "limits";
  readonly operation: "add" | "remove" | "increase" | "decrease";
}

function operationOf(before: bigint, now: bigint): ResizeOperation["operation"] | undefined {
  if (before === now) return undefined;
  if (before === 0n) return "add";
  if (now === 0n) return "remove";
  return now > before ? "increase" : "decrease";
}

/** What of the containers' CPU and memory differs between two of a pod's definitions. Throws BadPod. */
export function resizeOperations(before: BoundPod, now: BoundPod): ResizeOperation[] {
  const all = ({ spec }: BoundPod): Container[] => [...spec.initContainers ?? [], ...spec.containers];
  const old = new Map(all(before).map((c) => [c.name, c.resources]));
  return all(now).flatMap(({ name, resources }) => {
    const [a, b] = [containerAmounts(old.get(name), name), containerAmounts(resources, name)];
    return (["memory", "cpu"] as const).flatMap((resource) =>
      (["requests", "limits"] as const).flatMap((requirement) => {
        const operation = operationOf(a[requirement][resource] ?? 0n, b[requirement][resource] ?? 0n);
        return operation ? [{ resource, requirement, operation }] : [];
      })
    );
  });
}
