import type { ImageService, RuntimeService } from "../../../cri/api.ts";
import type { Devices } from "../../../managers/devices/types.ts";
import type { ServiceAccounts } from "../../../managers/images/credentials/provider.ts";
import type { Keyring } from "../../../managers/images/credentials/types.ts";
import type { PodObjects } from "../../../managers/objects/types.ts";
import type { PodCertificateState } from "../../../managers/pod_certificates/manager.ts";
import type { EnvSource } from "../../../managers/runtime/types.ts";
import type { StatusEntry } from "../../../managers/status/status_manager.ts";
import type { ProjectionSource } from "../../../managers/volumes/projected.ts";
import type { VolumePlugin } from "../../../managers/volumes/plugin.ts";
import type { Clock } from "../../base/clock.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Scope } from "../../base/scope.ts";
import type { ApiClient } from "../../kube/api/types.ts";
import type { EventSink } from "../../kube/events.ts";
import type { Node, Pod } from "../../kube/types.ts";
import type { PodSource } from "../../sources/source.ts";
import type { ServedAgent } from "../agent_types.ts";
import type { KubeletFlags } from "../config/flags.ts";
import type { KubeletConfig } from "../config/kubelet_config.ts";
import type { NodeFacts } from "../node_facts.ts";
import type { OwnPair } from "./identity.ts";

/** The clients of one API server, each with limits of its own (features.md A8). */
export interface ClusterClients {
  /** kubeAPIQPS and kubeAPIBurst. */
  readonly main: ApiClient;
  /** Leases and the node's status: no limit of rate, a short limit of time, connections of its own. */
  readonly heartbeat: ApiClient;
  /** eventRecordQPS and eventBurst. */
  readonly events: ApiClient;
}

/** Told of certificates, for the metrics. */
export interface CertificateMeter {
  /** The node manages one: asked when a page is made how many milliseconds it still holds, Infinity without one. */
  certificateTtl(what: "client" | "serving", ms: () => number): void;
  /** It could not be renewed. */
  renewFailed(what: "client" | "serving"): void;
  /** It was replaced, at that age. */
  rotated(what: "client" | "serving", usedMs: number): void;
  /** Asked when a page is made how many certificates of pods are in which state. */
  podCertificates: (() => readonly PodCertificateState[]) | undefined;
}

/** What the parts of a cluster's member are built from. The agent itself does not exist yet at that time. */
export interface ClusterContext {
  readonly clients: ClusterClients;
  readonly config: KubeletConfig;
  readonly flags: KubeletFlags;
  /** The feature gates; without them each is as its default. */
  readonly gates?: { enabled(name: string): boolean };
  readonly facts: NodeFacts;
  /** Told of the certificate that the agent keeps; absent where the node is known by something else. */
  readonly ownPair?: OwnPair;
  readonly nodeName: string;
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: EventSink;
  /** The devices of plugins; absent without any. */
  readonly devices?: Pick<Devices, "resources"> | undefined;
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly runtimeName: string;
  readonly runtimeVersion: string;
  /** Owns what the parts run; it ends with the agent. */
  readonly scope: Scope;
  /** Told how the node's registration goes, and that it is shown as ready; for the metrics. */
  readonly startup?: { attempted(): void; created(): void; ready(): void };
  /** Told of each pod that the API server shows here, as it is or changes, and of its end; for the metrics. */
  readonly starts?: { seen(pod: Pod): void; gone(uid: string): void };
  /** Told of the node's certificates, and of pods'; for the metrics. */
  readonly certificates?: CertificateMeter;
  /** Told of each status that has arrived at the API server, with the milliseconds since it was new. */
  readonly onStatusWritten?: (ms: number) => void;
}

/**
 * What the agent takes of a cluster. Every field is optional: an agent without an API server has none of them, and
 * behaves as if each were absent. A part may add a field here when the agent learns to take it.
 */
export interface ClusterParts {
  /** Pods from the API server, beside files and URLs. */
  readonly sources?: readonly PodSource[];
  /** Keeps the Secrets and ConfigMaps of the pods that run here. */
  readonly podObjects?: Pick<PodObjects, "register" | "unregister">;
  /** ConfigMaps, Secrets and services for environments, in place of none. */
  readonly environment?: EnvSource;
  /** Service accounts for credential provider plugins. */
  readonly serviceAccounts?: ServiceAccounts;
  /** Credentials for pulling images, in place of none. */
  readonly keyring?: Keyring;
  /** Volume kinds that need the API server. */
  readonly volumePlugins?: readonly VolumePlugin[];
  /** Sources of projected volumes that need the API server. */
  readonly projections?: readonly ProjectionSource[];
  /** Told of each new status of a pod; must not throw and must not wait. */
  readonly onStatus?: (entry: StatusEntry) => void;
  /** The node's addresses as pods' statuses and field references show them, primary first; none known yet: empty. */
  readonly hostIPs?: () => readonly string[];
  /** The node's object as the API server has it; undefined before it was read. For admission. */
  readonly node?: () => Node | undefined;
  /** True once the node's object was asked for, whether or not there is one: pods are looked at from then on. */
  readonly nodeRead?: () => boolean;
  /** What keeps the node from being ready besides runtime and network, such as storage or a shutdown; none: nothing. */
  readonly nodeTroubles?: () => readonly string[];
  /** Names of attached volumes that pods use, for the node's status; undefined while they are not all known. */
  readonly volumesInUse?: () => readonly string[] | undefined;
  /** Reads the node's object from the API server, for a pod that what is known of its labels does not fit. */
  readonly fetchNode?: (signal: AbortSignal) => Promise<Node>;
  /** The runtime's handler that a RuntimeClass names; rejects when there is no such class, or none was heard of yet. */
  readonly runtimeHandler?: (className: string, signal: AbortSignal) => Promise<string>;
  /** Number of mirror pods that the API server has. */
  readonly mirrorPods?: () => number;
  /** Told when a pod is gone for good: nothing more will be told of it. */
  readonly onForgotten?: (uid: string) => void;
}

/** One concern of a cluster's member, built by a file of its own beside this one. */
export interface ClusterPart extends ClusterParts {
  /**
   * Begins the part's work, once the agent is put together and before it runs. Tasks are spawned in the context's
   * scope; an API server that can't be reached is waited for there, never here. `cluster` is what all parts give.
   */
  readonly start?: (agent: ServedAgent, cluster: ClusterParts) => void;
}

/** All parts as one: what the agent takes, and how they begin. */
export interface Cluster extends ClusterParts {
  start(agent: ServedAgent): void;
}
