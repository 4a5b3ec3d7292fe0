import type { BoundPod, PodCondition, ResourceRequirements } from "../../mod/kube/types.ts";
import type { ObservedPod } from "../../mod/pod/observed.ts";
import type { PodResourceInfo, ResizeGates } from "../../mod/pod/resize/allocation.ts";
import type { ResizeView } from "../../mod/pod/resize/needs.ts";

/** What made waiting resizes be looked at again; the words are those of the metric. */
export type ResizeTrigger =
  | "pods_added"
  | "pod_updated"
  | "pods_removed"
  | "pod_terminated"
  | "pod_resized"
  | "periodic_retry";

/** The sync loop's side: what pods were given, and resizes that wait for their turn. None of it waits for anything. */
export interface PodAllocations {
  /** The pod with the resources that it was given; the same object when they are those of its spec. */
  allocated(pod: BoundPod): BoundPod;
  /** The pod as it counts against the node while it is resized. */
  counted(pod: BoundPod): BoundPod;
  /** The node has taken a pod, with these resources. */
  admitted(allocated: BoundPod): void;
  /** A pod came whose spec may ask for more than it was given, or whose resize was under way before. */
  added(pod: BoundPod): void;
  /** A pod's definition changed. */
  updated(before: BoundPod, pod: BoundPod): void;
  /** True while a resize waits. */
  readonly waiting: boolean;
  /** Looks at the resizes that wait, in their order; returns the pods that have to be looked at for it, as wanted. */
  retry(trigger: ResizeTrigger, look: ResizeLook): BoundPod[];
  forget(uid: string): void;
}

/** What waiting resizes are judged with. */
export interface ResizeLook {
  /** The pod as it is wanted, if it still is and runs here. */
  readonly get: (uid: string) => BoundPod | undefined;
  /** Whether the node has room for the pod, by the rules of admission. */
  readonly admit: (pod: BoundPod) => { readonly admit: true } | {
    readonly admit: false;
    readonly reason: string;
    readonly message: string;
  };
}

/** The pod worker's side: what was carried out, and what is told of it. */
export interface PodResizes {
  readonly gates: ResizeGates;
  view(uid: string): ResizeView;
  /** The conditions of the pod's resize, as its status has them; none for a pod that has ended. */
  conditions(uid: string): readonly PodCondition[];
  /** Sees whether a resize of the pod is under way or has come to its end. */
  observe(allocated: BoundPod, observed: ObservedPod): void;
  /** The resize could not be carried out this time. */
  failed(allocated: BoundPod, message: string): void;
}

/** The runner's side: keeps what is carried out, on disk before it counts. */
export interface ActuatedResources {
  readonly gates: ResizeGates;
  get(uid: string): PodResourceInfo | undefined;
  /** Resolves when it is on disk, or cannot be put there, which is told. */
  setContainer(pod: BoundPod, name: string, resources: ResourceRequirements): Promise<void>;
  setPod(pod: BoundPod, resources: ResourceRequirements): Promise<void>;
  /** Resolves when what pods were given is on disk. */
  allocationKept(): Promise<void>;
}
