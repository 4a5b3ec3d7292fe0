import { configHash, configMirror } from "../../mod/kube/pod.ts";
import type { BoundPod, Pod } from "../../mod/kube/types.ts";

/** The node that owns a mirror pod. */
export interface MirrorOwner {
  readonly name: string;
  readonly uid: string;
}

/**
 * The API's picture of a static pod (features.md B6): the same pod, marked by the hash of what it mirrors and owned by the
 * node, as the API server demands of a node that creates a pod. The server gives it a UID of its own.
 */
export function mirrorOf(pod: BoundPod, owner: MirrorOwner): Pod {
  const { name, namespace, labels, annotations = {} } = pod.metadata;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(labels ? { labels } : {}),
      annotations: { ...annotations, [configMirror]: annotations[configHash] ?? "" },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: owner.name, uid: owner.uid, controller: true }],
    },
    spec: pod.spec,
  };
}

/** Whether a mirror pod still shows this static pod and is not on its way out. */
export function mirrors(mirror: BoundPod, pod: BoundPod): boolean {
  return mirror.metadata.deletionTimestamp === undefined &&
    mirror.metadata.annotations?.[configMirror] === (pod.metadata.annotations?.[configHash] ?? "");
}
