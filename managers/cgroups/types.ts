import type { BoundPod } from "../../mod/kube/types.ts";
import type { GroupState } from "../../mod/pod/resize/group_plan.ts";
import type { PodCgroupLimits } from "../../mod/pod/resources.ts";

/** Control groups of pods (runtime-contract.md section 6). Errors have code Cgroup and name the group and file. */
export interface CgroupManager {
  readonly version: 1 | 2;
  readonly driver: "cgroupfs" | "systemd";
  /** Makes the node-allocatable and QoS groups and sets their limits; called off between two groups when it aborts. */
  setUpNode(signal?: AbortSignal): Promise<void>;
  /** The pod's cgroup as CRI wants it (cgroupfs form, or the slice path for systemd). */
  parentOf(pod: BoundPod): string;
  /** Makes the pod's group, or brings its limits up to date. */
  ensurePod(pod: BoundPod): Promise<void>;
  /** True when the pod's group exists with every controller. */
  podExists(pod: BoundPod): Promise<boolean>;
  /** Kills what is left inside and removes the pod's groups, whatever QoS they are under; no group is no error. */
  destroyPod(podUid: string): Promise<void>;
  /** UIDs of pods that have a group; called off between two QoS groups when the signal aborts. */
  podsWithGroups(signal?: AbortSignal): Promise<string[]>;
  /** Recomputes the QoS groups' shares from the pods that are active. */
  updateQos(pods: readonly BoundPod[]): Promise<void>;
}

/** What is done to the group of a pod that is gone while its volumes still are set up (runtime-contract.md section 6). */
export interface OrphanGroups {
  /** Gives the pod's groups the least CPU; no group is no error. */
  minimiseCpu(podUid: string): Promise<void>;
}

/** The last means to end what a runtime does not: only groups that are the pod's own, or its container's, are touched. */
export interface GroupKiller {
  /** Processes in the pod's groups, or in one container's; undefined when there is no such group. */
  processesOf(podUid: string, containerId?: string): Promise<number[] | undefined>;
  /**
   * Kills them and all that they begin meanwhile; returns those that were there.
   * @throws KubeletError Cgroup when some survive SIGKILL
   */
  killProcesses(podUid: string, containerId?: string): Promise<number[]>;
}

/** What a resize does to a pod's group while the pod runs (features.md section 13). */
export interface PodGroupLimits {
  /** The limits that the pod's group is to have. */
  wantedLimits(pod: BoundPod): PodCgroupLimits;
  /** The limits that it has. @throws KubeletError Cgroup when they cannot be read */
  readLimits(pod: BoundPod): Promise<GroupState>;
  /** Sets what is given and leaves the rest. */
  setLimits(pod: BoundPod, limits: Partial<PodCgroupLimits>): Promise<void>;
  /** Memory in use by the pod, or by one of its containers, bytes; undefined when it cannot be read. */
  memoryInUse(podUid: string, containerId?: string): Promise<bigint | undefined>;
}
