import type { BoundPod, Container, LifecycleHandler } from "../kube/types.ts";
import type { ObservedContainer, ObservedPod } from "../pod/observed.ts";

const preStopAnnotation = "io.kubernetes.container.preStopHandler";

function preStopOf(container: ObservedContainer): LifecycleHandler | undefined {
  const text = container.annotations[preStopAnnotation];
  if (text === undefined) return undefined;
  try {
    const handler: unknown = JSON.parse(text);
    return typeof handler === "object" && handler !== null ? handler : undefined;
  } catch {
    // A damaged annotation only costs the hook; the container must still be stopped.
    return undefined;
  }
}

/**
 * A pod that no source knows, rebuilt from what the runtime tells of it: enough to stop it in order and to remove it
 * (features.md B19).
 */
export function podFromRuntime(observed: ObservedPod): BoundPod {
  const names = [...new Set(observed.containers.map((c) => c.name))];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: observed.name, namespace: observed.namespace, uid: observed.uid },
    spec: {
      containers: names.map((name): Container => {
        const newest = observed.containers.find((c) => c.name === name)!;
        const preStop = preStopOf(newest);
        return { name, image: newest.image, resources: {}, ...(preStop ? { lifecycle: { preStop } } : {}) };
      }),
      terminationGracePeriodSeconds: 1,
      restartPolicy: "Never",
    },
  };
}
