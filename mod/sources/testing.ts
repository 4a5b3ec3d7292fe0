import type { BoundPod } from "../kube/types.ts";

/** A manifest's text; for tests. */
export function manifest(name: string, options: { image?: string; uid?: string; namespace?: string } = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, uid: options.uid, namespace: options.namespace },
    spec: { containers: [{ name: "c", image: options.image ?? "busybox:1" }] },
  });
}

/** A bound pod with few facts; for tests. */
export function boundPod(
  name: string,
  uid: string,
  options: { image?: string; namespace?: string; status?: BoundPod["status"]; deletionTimestamp?: string } = {},
): BoundPod {
  const { image = "busybox:1", namespace = "default", status, deletionTimestamp } = options;
  return {
    metadata: { name, namespace, uid, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    spec: { containers: [{ name: "c", image }] },
    ...(status === undefined ? {} : { status }),
  };
}
