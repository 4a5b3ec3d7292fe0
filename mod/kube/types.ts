/** Kubernetes object types (gen/types.ts) and the stricter shapes that the agent works on. */
export type * from "./gen/types.ts";
import type { ObjectMeta, Pod, PodSpec } from "./gen/types.ts";

/** A pod that a source has accepted: it always has a name, a namespace, a UID and a spec with its defaults set. */
export interface BoundPod extends Pod {
  metadata: ObjectMeta & { name: string; namespace: string; uid: string };
  spec: PodSpec;
}

/** The kinds of container a pod has, in the words of the API's field names. */
export type ContainerKind = "init" | "regular" | "ephemeral";
