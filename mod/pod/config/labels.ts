/** Labels and annotations of sandboxes and containers (runtime-contract.md section 1). */
import type { BoundPod, Container } from "../../kube/types.ts";
import { containerHash } from "../hash.ts";

/** Keys that tell which pod and container a runtime object belongs to. */
export const runtimeLabels = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const;

/** Keys of what the agent notes on a container for itself. */
export const containerNotes = {
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
  terminationMessagePath: "io.kubernetes.container.terminationMessagePath",
  terminationMessagePolicy: "io.kubernetes.container.terminationMessagePolicy",
  preStopHandler: "io.kubernetes.container.preStopHandler",
  ports: "io.kubernetes.container.ports",
  deletionGracePeriod: "io.kubernetes.pod.deletionGracePeriod",
  terminationGracePeriod: "io.kubernetes.pod.terminationGracePeriod",
} as const;

function identity(pod: BoundPod): Record<string, string> {
  const { name, namespace, uid } = pod.metadata;
  return {
    [runtimeLabels.podName]: name,
    [runtimeLabels.podNamespace]: namespace,
    [runtimeLabels.podUid]: uid,
  };
}

/** The pod's labels and who it is. */
export function sandboxLabels(pod: BoundPod): Record<string, string> {
  return { ...pod.metadata.labels, ...identity(pod) };
}

/** Who the container is; the pod's labels are not copied. */
export function containerLabels(pod: BoundPod, container: Container): Record<string, string> {
  return { ...identity(pod), [runtimeLabels.containerName]: container.name };
}

/** What the agent notes on a container. @param base annotations of device plugins, over which the agent's own win */
export function containerAnnotations(input: {
  readonly pod: BoundPod;
  readonly container: Container;
  readonly restartCount: number;
  readonly base?: Readonly<Record<string, string>> | undefined;
}): Record<string, string> {
  const { pod, container } = input;
  const { deletionGracePeriodSeconds: deletion } = pod.metadata;
  const { terminationGracePeriodSeconds: termination } = pod.spec;
  const preStop = container.lifecycle?.preStop;
  const ports = container.ports ?? [];
  return {
    ...input.base,
    [containerNotes.hash]: containerHash(container).toString(16),
    [containerNotes.restartCount]: String(input.restartCount),
    [containerNotes.terminationMessagePath]: container.terminationMessagePath ?? "",
    [containerNotes.terminationMessagePolicy]: container.terminationMessagePolicy ?? "",
    ...(deletion === undefined ? {} : { [containerNotes.deletionGracePeriod]: String(deletion) }),
    ...(termination === undefined ? {} : { [containerNotes.terminationGracePeriod]: String(termination) }),
    ...(preStop === undefined ? {} : { [containerNotes.preStopHandler]: JSON.stringify(preStop) }),
    ...(ports.length === 0 ? {} : { [containerNotes.ports]: JSON.stringify(ports) }),
  };
}
