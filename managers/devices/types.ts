import type { ResourceStatus } from "../../mod/kube/types.ts";
import type { PodContainer } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { PluginOptions } from "../../mod/pod/config/container.ts";
import type { DeviceResources } from "../node/types.ts";

/** A device as its plugin tells it. */
export interface Device {
  readonly id: string;
  /** `Healthy`, or anything else. */
  readonly health: string;
  /** NUMA nodes; empty when the plugin tells none. */
  readonly nodes: readonly number[];
}

/** Devices of one resource. */
export interface ResourceDevices {
  readonly resource: string;
  readonly devices: readonly Pick<Device, "id" | "nodes">[];
}

/** The agent's pods as devices are given to them. */
export interface DevicePods {
  /** UIDs of the pods that may have devices: those that have not ended, and those on their way out. */
  active(): ReadonlySet<string>;
  /** True once every source has been read; before that nothing is taken from anybody. */
  readonly sourcesReady: boolean;
  /** The pod's status is to be looked at anew. */
  changed(podUid: string): void;
}

/** What device plugins give, as the rest of the agent sees it. */
export interface Devices {
  /** The pods that devices are given to; known once the agent is put together. */
  serve(pods: DevicePods): void;
  /** For the node's status: what plugins have, and the resources whose plugin has been gone for five minutes. */
  resources(): DeviceResources;
  /** True when a container of the pod asks for what device plugins give, or gave. */
  wantedBy(pod: BoundPod): boolean;
  /**
   * Gives each container of a pod its devices; those that it has already it keeps. Rejects with an error in the
   * contract's words when it can't have them, with Aborted.
   */
  allocate(pod: BoundPod, signal: AbortSignal): Promise<void>;
  /** Allocatable amounts in which what is given already counts as there, also when its plugin is away. */
  withGiven(allocatable: Readonly<Record<string, string>>): Record<string, string>;
  /** What a container gets of its devices when it is made; asks plugins that want to know. Undefined: nothing. */
  containerOptions(
    pod: BoundPod,
    container: PodContainer["spec"],
    signal: AbortSignal,
  ): Promise<PluginOptions | undefined>;
  /** The health of a container's devices, for its status; empty when it has none. */
  health(podUid: string, container: string): ResourceStatus[];
  /** The devices of a container. */
  given(podUid: string, container: string): ResourceDevices[];
  /** Every healthy device. */
  allocatable(): ResourceDevices[];
  /** Forgets what pods had that are no more. */
  release(): void;
}
