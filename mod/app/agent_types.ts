import type { ImageService, RuntimeService } from "../../cri/api.ts";
import type { Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import type { PressureCondition } from "../../managers/eviction/types.ts";
import type { Devices } from "../../managers/devices/types.ts";
import type { ImageGC } from "../../managers/gc/image_gc.ts";
import type { Dialers } from "../../managers/probes/prober.ts";
import type { StatsSource } from "../../managers/stats/collector.ts";
import type { StatusEntry } from "../../managers/status/status_manager.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Journal } from "../base/journal.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { EventSink } from "../kube/events.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import type { HealthCheck } from "../server/healthz.ts";
import type { ServerBackend } from "../server/types.ts";
import type { SourcesOptions } from "../sources/sources.ts";
import type { ClusterParts } from "./cluster/types.ts";
import type { CredentialProviders } from "./credential_providers.ts";
import type { AgentMeter } from "./agent_meter.ts";
import type { AgentReadiness } from "./agent_readiness.ts";
import type { KubeletFlags } from "./config/flags.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";
import type { NodeFacts } from "./node_facts.ts";

/** Everything that the agent is given: the world outside, and what was found out of it at start. */
export interface AgentOptions {
  config: KubeletConfig;
  flags: KubeletFlags;
  facts: NodeFacts;
  /** The feature gates; without them each is as its default. */
  gates?: { enabled(name: string): boolean };
  hierarchies: Hierarchies;
  /** The cgroup driver in force (the runtime's word, or the configuration's). */
  cgroupDriver: "cgroupfs" | "systemd";
  host: Host;
  clock: Clock;
  random: Random;
  runtime: RuntimeService;
  images: ImageService;
  /** The runtime's name, as container ids show it. */
  runtimeName: string;
  /** The runtime's version in its own words, such as `v2.1.4`. */
  runtimeVersion?: string;
  dial: Dialers;
  journal: Journal;
  events: EventSink;
  log: Logger;
  fetch?: SourcesOptions["fetch"];
  stdin?: ReadableStream<Uint8Array>;
  /** Told of each new status of a pod. */
  onStatus?: (entry: StatusEntry) => void;
  /** The node's credential provider plugins; absent without them. */
  credentialProviders?: CredentialProviders | undefined;
  /** The devices of plugins; absent without any. */
  devices?: Devices;
  /** Checks besides the agent's own. */
  healthChecks?: readonly HealthCheck[];
  /** What a cluster adds; absent for an agent without an API server. */
  cluster?: ClusterParts;
  /** Told of what the agent does, for its metrics. */
  meter?: AgentMeter;
}

/** A running agent, as those who started it see it. */
export interface Agent {
  /** Runs until the signal aborts; containers are left as they are. */
  run(signal: AbortSignal): Promise<void>;
  readonly healthChecks: readonly HealthCheck[];
  /** The pods that the sources want now, with their statuses. */
  pods(): { pod: BoundPod; status: PodStatus | undefined }[];
  /** True once every source has been read. */
  readonly sourcesReady: boolean;
  /** What is wrong with manifests now, by file or URL. */
  problems(): ReadonlyMap<string, string>;
}

/** An agent whose pods the node's HTTP API can show. */
export interface ServedAgent extends Agent {
  /** The pods that no source wants any more and that have not ended yet, with their statuses. */
  leaving(): { pod: BoundPod; status: PodStatus | undefined }[];
  /** Number of mirror pods that the API server has. */
  readonly mirrorPods: number;
  /** The pods that may have running containers. */
  readonly activePods: readonly BoundPod[];
  /** Why the runtime cannot be used, and why pods get no network; empty when all is well. */
  readonly runtimeTrouble: { readonly runtimeError?: string; readonly networkError?: string };
  /** Tells which images would be removed now and why, and removes all that nothing uses (disk pressure). */
  readonly imageGC: Pick<ImageGC, "preview" | "collect">;
  /** Whether it can run pods, for the node's status. */
  readonly readiness: AgentReadiness;
  /** The node's conditions of pressure that hold now, in the order of the node's status. */
  readonly pressure: readonly PressureCondition[];
  /** Statistics of the node and its pods; collected when somebody asks. */
  readonly stats: StatsSource;
  /** Something that a pod's containers, or with `volumes` its volumes, are made of has changed: it is looked at anew. */
  readonly podChanged: (podUid: string, what: { readonly volumes: boolean }) => void;
  /** What the node's HTTP API shows of pods. */
  readonly view: Pick<
    ServerBackend,
    "pods" | "podByName" | "podByUid" | "status" | "observed" | "refresh" | "allObserved"
  >;
}
