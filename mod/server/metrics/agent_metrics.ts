import type { Clock } from "../../base/clock.ts";
import { configSeen } from "../../kube/pod.ts";
import type { BoundPod, ContainerKind, PodStatus } from "../../kube/types.ts";
import type { PodSyncer } from "../../sync/pod_worker.ts";
import type { RequestFacts, RequestMetrics } from "../types.ts";
import { exponential, Histogram, Numbers } from "./registry.ts";
import { AuthMetrics } from "./auth_metrics.ts";
import { ClientMetrics } from "./client_metrics.ts";
import type { MetricSource } from "./metric_set.ts";
import type { RuntimeMeter } from "./runtime_meter.ts";
import { PluginMetrics } from "./plugin_metrics.ts";
import { ResizeMetrics } from "./resize_metrics.ts";
import { SecurityMetrics } from "./security_metrics.ts";
import { startBuckets, StartMetrics } from "./start_metrics.ts";
import { StartupMetrics } from "./startup_metrics.ts";
import { Terminations } from "./terminations.ts";
import { WorkMetrics } from "./work_metrics.ts";

/** A probe's run. */
interface ProbeRun {
  readonly pod: BoundPod;
  readonly container: string;
  readonly type: "liveness" | "readiness" | "startup";
  readonly ok: boolean;
  readonly tookMs: number;
}

/** Kinds of containers as labels tell them. */
const containerTypes = { init: "init_container", regular: "container", ephemeral: "ephemeral_container" } as const;
const operationBuckets = exponential(.005, 2.5, 14);
/** Pods whose series are kept between two looks at which of them are still there. */
const prunedFrom = 400;

function counter(name: string, help: string): Numbers {
  return new Numbers({ name, help, type: "counter" });
}

/** What the agent counts of itself while it runs (metrics.md sections 2 and 7). Small until something happens. */
export class AgentMetrics implements RequestMetrics, RuntimeMeter {
  readonly #clock: Clock;
  /** The desired pod of a UID; set once there is an agent. */
  podByUid: (uid: string) => BoundPod | undefined = () => undefined;

  /** What the managers do, who asks the node's API, and the agent as a client of the API server. */
  readonly work = new WorkMetrics();
  readonly resizes = new ResizeMetrics();
  readonly auth = new AuthMetrics();
  readonly client: ClientMetrics;
  readonly security = new SecurityMetrics();
  readonly plugins = new PluginMetrics();
  readonly startup: StartupMetrics;
  readonly starts: StartMetrics;
  /** What other parts count: told on /metrics with the rest. */
  readonly more: MetricSource[] = [];
  readonly webSockets = counter("kubelet_websocket_streaming_requests_total", "Streams over WebSocket, by what for");
  readonly losingSupport = new Numbers({
    name: "kubelet_cri_losing_support",
    help: "1: from this version of Kubernetes on, the runtime is too old",
    type: "gauge",
  });
  readonly volumeLooks = new Histogram({
    name: "kubelet_volume_metric_collection_duration_seconds",
    help: "How long it took to measure what volumes take, seconds",
  });
  readonly statusSeconds = new Histogram({
    name: "kubelet_pod_status_sync_duration_seconds",
    help: "How long it took to bring a pod's status to the API server, seconds",
    buckets: [.01, .05, .1, .5, 1, 5, 10, 20, 30, 45, 60],
  }).begin();
  readonly requests = counter("kubelet_http_requests_total", "Requests that the node's API has taken");
  readonly inflight = new Numbers({
    name: "kubelet_http_inflight_requests",
    help: "Requests that are being answered",
    type: "gauge",
  });
  readonly requestSeconds = new Histogram({
    name: "kubelet_http_requests_duration_seconds",
    help: "How long answers took, seconds",
  });
  readonly operations = counter("kubelet_runtime_operations_total", "Calls to the runtime");
  readonly operationErrors = counter("kubelet_runtime_operations_errors_total", "Calls to the runtime that failed");
  readonly operationSeconds = new Histogram({
    name: "kubelet_runtime_operations_duration_seconds",
    help: "How long calls to the runtime took, seconds",
    buckets: operationBuckets,
  });
  readonly sandboxSeconds = new Histogram({
    name: "kubelet_run_podsandbox_duration_seconds",
    help: "How long it took to start sandboxes, seconds",
    buckets: operationBuckets,
  });
  readonly sandboxErrors = counter("kubelet_run_podsandbox_errors_total", "Sandboxes that could not be started");
  readonly startedPods = counter("kubelet_started_pods_total", "Sandboxes that were tried to start");
  readonly startedPodErrors = counter("kubelet_started_pods_errors_total", "Sandboxes that could not be started");
  readonly usernsPods = counter(
    "kubelet_started_user_namespaced_pods_total",
    "Sandboxes with a user namespace that were tried to start",
  );
  readonly usernsPodErrors = counter(
    "kubelet_started_user_namespaced_pods_errors_total",
    "Sandboxes with a user namespace that could not be started",
  );
  readonly startedContainers = counter("kubelet_started_containers_total", "Containers that were tried to start");
  readonly startedContainerErrors = counter(
    "kubelet_started_containers_errors_total",
    "Containers that could not be made or started",
  );
  readonly containersPerPod = new Histogram({
    name: "kubelet_containers_per_pod_count",
    help: "Containers of the pods that were taken on",
    buckets: [1, 2, 4, 8, 16],
  }).begin();
  readonly workerSeconds = new Histogram({
    name: "kubelet_pod_worker_duration_seconds",
    help: "How long workers' passes over pods took, seconds",
  });
  readonly podStartSeconds = new Histogram({
    name: "kubelet_pod_start_duration_seconds",
    help: "From the first sight of a pod until it runs, seconds",
    buckets: startBuckets,
  }).begin();
  readonly relistSeconds = new Histogram({
    name: "kubelet_pleg_relist_duration_seconds",
    help: "How long it took to list what the runtime has, seconds",
  }).begin();
  readonly relistInterval = new Histogram({
    name: "kubelet_pleg_relist_interval_seconds",
    help: "From one relist to the next, seconds",
  }).begin();
  readonly lastRelist = new Numbers({
    name: "kubelet_pleg_last_seen_seconds",
    help: "When the runtime was last listed, seconds since the epoch",
    type: "gauge",
  });
  readonly evictions = counter("kubelet_evictions", "Pods that were evicted, by what ran short");
  readonly evictionStatsSeconds = new Histogram({
    name: "kubelet_eviction_stats_age_seconds",
    help: "How old readings were by which pods were evicted, seconds",
  });
  readonly probes = counter("prober_probe_total", "[BETA] Probes that were run, by their results");
  readonly probeSeconds = new Histogram({
    name: "prober_probe_duration_seconds",
    help: "[ALPHA] How long probes took that did not fail, seconds",
  });
  readonly healthChecks = counter("kubernetes_healthchecks_total", "[STABLE] Results of health checks");

  /** Pods that are on their way to Running. */
  readonly #starting = new Set<string>();
  readonly #terminations = new Terminations(this.work.terminated, (uid) => this.podByUid(uid) !== undefined);
  readonly #relisted = { at: 0 };

  constructor(options: { clock: Clock }) {
    this.#clock = options.clock;
    this.client = new ClientMetrics(() => options.clock.now());
    this.startup = new StartupMetrics(() => options.clock.now());
    this.starts = new StartMetrics(() => options.clock.now());
    for (const zero of [this.startedPods, this.startedPodErrors, this.usernsPods, this.usernsPodErrors]) {
      zero.add({}, 0);
    }
  }

  began(facts: RequestFacts): (end: { status: number; seconds: number }) => void {
    const labels = {
      long_running: String(facts.longRunning),
      method: facts.method,
      path: facts.path,
      server_type: facts.serverType,
    };
    this.requests.add(labels);
    this.inflight.add(labels);
    return ({ seconds }) => {
      this.inflight.add(labels, -1);
      this.requestSeconds.observe(labels, seconds);
    };
  }

  authenticated(found: Parameters<NonNullable<RequestMetrics["authenticated"]>>[0]): void {
    this.auth.authenticated({ ...found, failed: false });
  }

  authorized(result: "allowed" | "denied" | "error", seconds: number): void {
    this.auth.authorized(result, seconds);
  }

  webSocket(subresource: string): void {
    this.webSockets.add({ subresource });
  }

  lacking(version: string): void {
    this.losingSupport.set({ version }, 1);
  }

  /** What a directory takes was measured. @param path of the directory, which tells whose it is */
  measured(path: string, seconds: number): void {
    const [, plugin] = /\/volumes\/([^/]+)\/[^/]+$/.exec(path) ?? [];
    if (plugin !== undefined) this.volumeLooks.observe({ metric_source: plugin.replace("~", "/") }, seconds);
  }

  operation(operation: string, seconds: number, failed: boolean): void {
    const labels = { operation_type: operation };
    this.operations.add(labels);
    this.operationSeconds.observe(labels, seconds);
    if (failed) this.operationErrors.add(labels);
  }

  sandbox(handler: string, userNamespace: boolean, seconds: number, failed: boolean): void {
    this.startedPods.add();
    if (userNamespace) this.usernsPods.add();
    const labels = { runtime_handler: handler };
    this.sandboxSeconds.observe(labels, seconds);
    if (!failed) return;
    this.sandboxErrors.add(labels);
    this.startedPodErrors.add();
    if (userNamespace) this.usernsPodErrors.add();
  }

  container(kind: ContainerKind, failed: string | undefined): void {
    const labels = { container_type: containerTypes[kind] };
    this.startedContainers.add(labels);
    if (failed !== undefined) this.startedContainerErrors.add({ code: failed, ...labels });
  }

  relistOfOne(seconds: number): void {
    this.work.relistOfOne.observe({}, seconds);
  }

  eventStream(broke: boolean): void {
    (broke ? this.work.streamErrors : this.work.streams).add();
  }

  runtimeEvent(seconds: number): void {
    this.work.eventSeconds.observe({}, seconds);
  }

  relist(beganAt: number): void {
    const now = this.#clock.now();
    this.relistSeconds.observe({}, (now - beganAt) / 1000);
    if (this.#relisted.at > 0) this.relistInterval.observe({}, (beganAt - this.#relisted.at) / 1000);
    this.#relisted.at = beganAt;
    this.lastRelist.set({}, beganAt / 1000);
  }

  evicted(signal: string): void {
    this.evictions.add({ eviction_signal: signal });
  }

  evictionStatsAge(signal: string, seconds: number): void {
    this.evictionStatsSeconds.observe({ eviction_signal: signal }, seconds);
  }

  /** A pod's new status: the first time that one which was pending runs tells how long its start took. */
  status(pod: BoundPod, status: PodStatus): void {
    const { uid } = pod.metadata;
    this.#terminations.status(pod, status);
    if (status.phase === "Pending") return void this.#starting.add(uid);
    if (!this.#starting.delete(uid) || status.phase !== "Running") return;
    const seen = Date.parse(status.startTime ?? "");
    if (Number.isFinite(seen)) this.podStartSeconds.observe({}, Math.max(0, this.#clock.now() - seen) / 1000);
  }

  probe({ pod, container, type, ok, tookMs }: ProbeRun): void {
    const { name, namespace, uid } = pod.metadata;
    const kind = type.slice(0, 1).toUpperCase() + type.slice(1);
    if (this.probes.size > prunedFrom) this.forgetProbes();
    const result = ok ? "successful" : "failed";
    this.probes.add({ container, namespace, pod: name, pod_uid: uid, probe_type: kind, result });
    if (ok) this.probeSeconds.observe({ container, namespace, pod: name, probe_type: kind }, tookMs / 1000);
  }

  /** Drops series of pods that are gone. */
  forgetProbes(): void {
    const names = new Set<string>(), gone = new Set<string>();
    this.probes.removeIf(({ pod_uid = "", namespace, pod }) => {
      const here = this.podByUid(pod_uid) !== undefined;
      (here ? names : gone).add(`${namespace}/${pod}`);
      return !here;
    });
    this.probeSeconds.removeIf(({ namespace, pod }) => {
      const name = `${namespace}/${pod}`;
      return gone.has(name) && !names.has(name);
    });
  }

  /** A pod's worker starts. */
  #begins(pod: BoundPod): void {
    this.containersPerPod.observe({}, pod.spec.containers.length);
    const seen = Date.parse(pod.metadata.annotations?.[configSeen] ?? "");
    const waited = this.#clock.now() - seen;
    if (waited >= 0) this.work.workerStartSeconds.observe({}, waited / 1000);
  }

  /** A syncer whose passes are timed. */
  syncer(syncer: PodSyncer): PodSyncer {
    const known = new Set<string>();
    const timed = async <T>(operation: string, run: () => Promise<T>): Promise<T> => {
      const began = this.#clock.now();
      try {
        return await run();
      } finally {
        this.workerSeconds.observe({ operation_type: operation }, (this.#clock.now() - began) / 1000);
      }
    };
    return {
      sync: (pod, context) => {
        const operation = known.has(pod.metadata.uid) ? "sync" : "create";
        if (operation === "create") this.#begins(pod);
        known.add(pod.metadata.uid);
        return timed(operation, () => syncer.sync(pod, context));
      },
      terminate: (pod, context) => timed("kill", () => syncer.terminate(pod, context)),
      release: (pod, context) => {
        known.delete(pod.metadata.uid);
        this.#starting.delete(pod.metadata.uid);
        return timed("terminated", () => syncer.release(pod, context));
      },
      purge: (pod, context) => syncer.purge(pod, context),
    };
  }
}
