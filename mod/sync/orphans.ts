import type { BoundPod } from "../kube/types.ts";
import { podOfContainer } from "../pod/kill.ts";
import type { ObservedPod } from "../pod/observed.ts";

/**
 * A pod that no source knows, rebuilt from what the runtime tells of it: enough to stop it in order and to remove it
 * (features.md B19).
 */
export function podFromRuntime(observed: ObservedPod): BoundPod {
  const { uid, name, namespace } = observed;
  const names = [...new Set(observed.containers.map((c) => c.name))];
  const newest = names.map((container) => observed.containers.find((c) => c.name === container)!);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, uid },
    spec: {
      containers: newest.flatMap((c) => podOfContainer(c, { uid, name, namespace }).spec.containers),
      terminationGracePeriodSeconds: 1,
      restartPolicy: "Never",
    },
  };
}
