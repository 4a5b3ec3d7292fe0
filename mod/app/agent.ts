import { journaledImages, journaledRuntime } from "../../cri/journaled.ts";
import type { CgroupManager } from "../../managers/cgroups/types.ts";
import { lanedRuntime } from "../../cri/laned.ts";
import type { EvictionManager } from "../../managers/eviction/manager.ts";
import type { ImageGC } from "../../managers/gc/image_gc.ts";
import type { StatsSource } from "../../managers/stats/collector.ts";
import { LogFiles } from "../../managers/logs/log_files.ts";
import type { LogRotation } from "../../managers/logs/rotation.ts";
import { terminationMessage } from "../../managers/logs/termination.ts";
import { createProbeManager } from "../../managers/probes/manager.ts";
import { BackoffStore } from "../../managers/runtime/backoff_store.ts";
import { ExitWatch } from "../../managers/runtime/exit_watch.ts";
import { StatusManager } from "../../managers/status/status_manager.ts";
import { StatusStore } from "../../managers/status/status_store.ts";
import { isAborted } from "../base/errors.ts";
import { Lanes } from "../base/lanes.ts";
import { Scope } from "../base/scope.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import { podDir, podLogDirIfAny, rootPaths } from "../pod/config/paths.ts";
import { activeDeadline } from "../pod/status/deadline.ts";
import { isTerminal } from "../pod/status/phase.ts";
import type { HealthCheck } from "../server/healthz.ts";
import type { Sources } from "../sources/sources.ts";
import { Housekeeping } from "../sync/housekeeping.ts";
import { Pleg } from "../sync/pleg.ts";
import { PodStore } from "../sync/pod_store.ts";
import { AgentPodSyncer } from "../sync/pod_syncer.ts";
import { PodWorkers } from "../sync/pod_workers.ts";
import { QosKeeper } from "../sync/qos_keeper.ts";
import { RuntimeState } from "../sync/runtime_state.ts";
import { SyncLoop } from "../sync/sync_loop.ts";
import { makeAdmission } from "./agent_admission.ts";
import { loopHealth } from "./agent_health.ts";
import { makeAgentStats, makeEviction } from "./agent_eviction.ts";
import { reachRuntime, restartBackoff } from "./agent_start.ts";
import { agentReadiness } from "./agent_readiness.ts";
import { statusOf, statusOfRejected } from "./agent_status.ts";
import { makeImages, makePullRecords } from "./agent_images.ts";
import { setUpNodeGroups } from "./node_groups.ts";
import type { AgentOptions, ServedAgent } from "./agent_types.ts";
import { makeContainerGC, makeImageGC, makeLogRotation, makeOomWatcher } from "./agent_upkeep.ts";
import { makePodRunner } from "./agent_runner.ts";
import { agentView, leavingPods, wantedPods } from "./agent_view.ts";
import { makeResizes, retryResizes } from "./agent_resizes.ts";
import { makeBuilder, makeCgroups, makeSources, makeVolumes } from "./agent_parts.ts";

/** Puts an agent together. Nothing runs before `run` is called. */
export function createAgent(options: AgentOptions): ServedAgent {
  return new ComposedAgent(options);
}

/** The root directory of an agent that is alone on its node; only then are the well-known log links its own. */
const defaultRootDir = "/var/lib/kubelet";
/** How many sandboxes and containers are made or started at once for each CPU, and at least. */
const lanesPerCpu = 3;
const leastLanes = 4;
/** How long one of them counts, in milliseconds; one that takes longer hangs, or waits for something else. */
const startLeaseMs = 3000;
class ComposedAgent implements ServedAgent {
  readonly #o: AgentOptions;
  readonly #scope: Scope;
  readonly #statuses: StatusManager;
  readonly #store: StatusStore;
  readonly #wanted = new PodStore();
  readonly #sources: Sources;
  readonly #runtimeState: RuntimeState;
  readonly #probes: ReturnType<typeof createProbeManager>;
  readonly #pleg: Pleg;
  readonly #workers: PodWorkers;
  readonly #loop: SyncLoop;
  readonly #cgroups: CgroupManager;
  readonly #qos: QosKeeper;
  readonly #resizes: ReturnType<typeof makeResizes>;
  readonly #backoffStore: BackoffStore;
  readonly #rotation: LogRotation;
  readonly #eviction: EvictionManager;
  readonly imageGC: ImageGC;
  readonly stats: StatsSource;
  readonly podChanged: ServedAgent["podChanged"];

  constructor(options: AgentOptions) {
    this.#o = options;
    const { config, flags, facts, clock, random, log, events, host } = options;
    const scope = this.#scope = new Scope("agent", {
      onFailure: (error, task) => log.error("a task of the agent failed", { task, error: error.message }),
    });
    const rootDir = flags.rootDir;
    const lanes = new Lanes({ clock, lanes: Math.max(leastLanes, facts.cpus * lanesPerCpu), leaseMs: startLeaseMs });
    const runtime = lanedRuntime(journaledRuntime(options.runtime, options.journal), lanes);
    const images = journaledImages(options.images, options.journal);

    this.#store = new StatusStore({ host, dir: `${rootDir}/pod_status`, log, scope });
    this.#statuses = new StatusManager({
      onChange: (entry) => {
        if (entry.keep) this.#store.save(entry.pod.metadata.uid, entry.status);
        options.cluster?.onStatus?.(entry);
        options.onStatus?.(entry);
      },
      onRemove: (uid) => this.#store.remove(uid),
      onForget: (uid) => options.cluster?.onForgotten?.(uid),
    });
    this.#sources = makeSources(options);
    const resizes = this.#resizes = makeResizes(options, { scope, onChange: () => this.#onResized() });
    const cgroups = this.#cgroups = makeCgroups(options);
    const volumes = makeVolumes(options, scope);
    const logs = new LogFiles({
      host,
      runtime,
      log,
      podLogsDir: config.podLogsDir,
      linkDir: flags.rootDir === defaultRootDir ? "/var/log/containers" : `${flags.rootDir}/log-links`,
    });
    this.#runtimeState = new RuntimeState({ runtime, clock, log, onReady: () => this.#loop.wakeAll() });
    this.#probes = createProbeManager({
      runtime,
      dial: options.dial,
      clock,
      random,
      log,
      events,
      startedAt: clock.now(),
      onUpdate: (update) => this.#loop.probe(update.podUid),
      onSample: (sample) => options.meter?.probe(sample),
    });
    const pullRecords = makePullRecords(options, images);
    const imageManager = makeImages(options, images, pullRecords);
    const exits = new ExitWatch();
    const builder = makeBuilder(options, this.#cgroups, volumes, () => this.#runtimeState.handlers);
    const backoff = restartBackoff(options);
    this.#backoffStore = new BackoffStore({ backoff, host, path: `${rootDir}/restart_backoff.json`, log, scope });
    const runner = makePodRunner(options, {
      runtime,
      images: imageManager,
      builder,
      groups: cgroups,
      actuated: resizes,
      exits,
      logs,
      scope,
      backoff,
      removeContainer: (id, removal) => gc.removeContainer(id, removal),
      onBackoff: () => this.#backoffStore.save(),
      onSandbox: (pod, ips) => syncer.noteSandbox(pod, ips),
    });
    const gc = makeContainerGC(options, {
      runtime,
      logs,
      sourcesReady: () => this.#loop.sourcesReady,
      workers: () => this.#workers,
      statuses: this.#statuses,
    });
    const statusFacts = {
      clock,
      runtimeName: options.runtimeName,
      hostIPs: () => options.cluster?.hostIPs?.() ?? [],
      devices: options.devices,
      probes: (id: string) => this.#probes.results(id),
      stopSignals: options.gates?.enabled("ContainerStopSignals") ?? false,
      resizes,
    };
    this.#pleg = new Pleg({
      runtime,
      clock,
      log,
      terminationMessage: (_uid, status) => terminationMessage(host, status),
      onEvent: (event) => {
        this.#loop.pleg(event);
        exits.observe(event.observed);
        const { observed } = event;
        if (event.died && observed) {
          scope.spawn("trim dead containers", (signal) => gc.trim(observed, { signal }));
        }
      },
      onRuntime: (up, error) => this.#onRuntime(up, error),
      meter: options.meter,
    });
    this.imageGC = makeImageGC(options, runtime, images, pullRecords);
    this.#rotation = makeLogRotation(options, runtime, scope, () => this.#pleg.all());
    const syncer = new AgentPodSyncer({
      pleg: this.#pleg,
      runner,
      volumes,
      objects: options.cluster?.podObjects,
      cgroups: this.#cgroups,
      resizes,
      probes: this.#probes,
      images: imageManager,
      statuses: this.#statuses,
      backoff,
      host,
      clock,
      journal: options.journal,
      events,
      log,
      status: (pod, observed, situation) => statusOf(statusFacts, pod, observed, situation),
      deadlineMs: (pod, status) => activeDeadline(pod, status, clock.now())?.remainingMs,
      networkError: () => this.#runtimeState.networkError,
      nodeIPs: facts.ips,
      podDir: (uid) => podDir(rootDir, uid),
      logDir: (pod) => podLogDirIfAny(config.podLogsDir, pod),
      linkLogs: (pod, observed) => logs.adopt(pod, observed.containers),
      removeLogLinks: (pod, observed) => logs.unlink(pod, observed.containers),
      onGone: (uid) => {
        resizes?.forget(uid);
        housekeeping.mark();
      },
    });
    this.podChanged = (uid, { volumes }) => {
      if (volumes) syncer.volumesChanged(uid);
      this.#workers.poke(uid);
    };
    const sourcesReady = () => this.#loop.sourcesReady;
    options.devices?.serve({
      active: () => new Set([...this.#activePods().map(({ metadata }) => metadata.uid), ...this.#loop.preparing]),
      get sourcesReady() {
        return sourcesReady();
      },
      changed: (uid) => this.podChanged(uid, { volumes: false }),
    });
    this.#workers = new PodWorkers({
      scope,
      syncer: options.meter?.syncer(syncer) ?? syncer,
      clock,
      random,
      log,
      resyncMs: config.syncFrequencyMs,
      onFreed: () => {
        this.#qos.mark();
        this.#loop.retryResizes("pod_terminated");
      },
      onLeaving: (uid) => this.#statuses.leave(uid),
      meter: options.meter?.work,
    });
    this.#qos = new QosKeeper({ scope, cgroups: this.#cgroups, log, active: () => this.#activePods() });
    this.stats = makeAgentStats(options, { view: this.view, runtime, images, scope });
    const { stats, imageGC } = this;
    this.#eviction = makeEviction(options, { stats, workers: this.#workers, containers: gc, imageGC, images });
    const housekeeping = new Housekeeping({
      scope,
      host,
      clock,
      log,
      workers: this.#workers,
      cgroups,
      volumes,
      podsDir: rootPaths.pods(rootDir),
      onOrphans: (pods, failed) => options.meter?.work.orphanVolumes(pods, failed),
      collectGarbage: async (signal) => {
        // Once a minute, in case an update of the shares failed (section 6).
        this.#qos.mark();
        await gc.collect(signal);
      },
    });
    this.#loop = new SyncLoop({
      sources: this.#sources,
      store: this.#wanted,
      workers: this.#workers,
      pleg: this.#pleg,
      clock,
      log,
      journal: options.journal,
      events,
      resizes,
      ...makeAdmission(options, {
        scope,
        features: () => this.#runtimeState.features,
        pressure: () => this.#eviction.pressure,
        kill: (uid, how) => this.#workers.get(uid)?.kill(how),
        onAdmitted: () => this.#qos.mark(),
        runs: (uid) => this.#pleg.get(uid)?.containers.some(({ state }) => state === "running") ?? false,
      }),
      onAdded: (pod) => pod.status && this.#statuses.adopt(pod.metadata.uid, pod.status),
      hasEnded: (pod) => isTerminal(pod.status?.phase) || isTerminal(this.#statuses.get(pod.metadata.uid)?.phase),
      onRejected: (pod, rejected) => {
        options.meter?.work.rejected(rejected.reason);
        // Nothing was ever made for it, so that there is nothing to give back.
        this.#statuses.set(pod, statusOfRejected(statusFacts, pod, rejected), { finished: true });
      },
      onForgotten: (uid) => {
        this.#statuses.remove(uid);
        resizes?.forget(uid);
      },
      housekeep: () => {
        this.#forgetStatuses();
        this.#store.retry();
        housekeeping.trigger();
      },
    });
  }

  /** Drops kept statuses of pods that are neither wanted nor looked after any more. */
  #forgetStatuses(): void {
    this.#resizes?.forgetAllBut((uid) => this.#wanted.has(uid) || this.#workers.has(uid));
    for (const uid of this.#statuses.uids()) {
      if (!this.#wanted.has(uid) && !this.#workers.has(uid)) this.#statuses.remove(uid);
    }
  }

  /** The groups of the classes follow what pods were given, and what shrinks makes room for others. */
  #onResized(): void {
    this.#qos.mark();
    this.#loop.retryResizes("pod_resized");
  }

  get sourcesReady(): boolean {
    return this.#loop.sourcesReady;
  }

  problems(): ReadonlyMap<string, string> {
    return this.#sources.problems();
  }

  get healthChecks(): readonly HealthCheck[] {
    const loop = loopHealth(this.#o.clock, this.#loop, this.#o.config.syncFrequencyMs);
    return [...loop, ...this.#o.healthChecks ?? []];
  }

  pods(): { pod: BoundPod; status: PodStatus | undefined }[] {
    return wantedPods({ wanted: this.#wanted, statuses: this.#statuses });
  }

  get mirrorPods(): number {
    return this.#o.cluster?.mirrorPods?.() ?? 0;
  }

  leaving(): { pod: BoundPod; status: PodStatus | undefined }[] {
    return leavingPods({ wanted: this.#wanted, statuses: this.#statuses, workers: this.#workers });
  }

  get pressure(): ServedAgent["pressure"] {
    return this.#eviction.conditions;
  }

  get readiness(): ServedAgent["readiness"] {
    return agentReadiness({ clock: this.#o.clock, runtime: this.#runtimeState, pleg: this.#pleg });
  }

  get activePods(): readonly BoundPod[] {
    return this.#activePods();
  }

  get runtimeTrouble(): ServedAgent["runtimeTrouble"] {
    const { runtimeError, networkError } = this.#runtimeState;
    return { ...(runtimeError ? { runtimeError } : {}), ...(networkError ? { networkError } : {}) };
  }

  get view(): ServedAgent["view"] {
    return agentView({ pleg: this.#pleg, wanted: this.#wanted, statuses: this.#statuses });
  }

  async run(signal: AbortSignal): Promise<void> {
    const scope = this.#scope;
    const stop = () => void scope.close().catch(() => {});
    signal.addEventListener("abort", stop, { once: true });
    try {
      if (signal.aborted) return;
      this.#statuses.restore(await this.#store.load());
      await this.#backoffStore.load();
      await this.#resizes?.load();
      // Sources are read while the runtime may still be starting; what they say waits in the stream.
      this.#sources.run(scope);
      await setUpNodeGroups({ ...this.#o, cgroups: this.#cgroups, scope });
      if (scope.signal.aborted) return;
      await reachRuntime({ ...this.#o, pleg: this.#pleg, runtimeState: this.#runtimeState }, scope.signal);
      scope.spawn("runtime state", (s) => this.#runtimeState.run(s));
      scope.spawn("pleg", (s) => this.#pleg.run(s));
      scope.spawn("container events", (s) => this.#pleg.follow(s));
      scope.spawn("image gc", (s) => this.imageGC.run(s));
      scope.spawn("eviction", (s) => this.#eviction.run(s));
      scope.spawn("log rotation", (s) => this.#rotation.run(s));
      scope.spawn("oom watcher", (s) => makeOomWatcher(this.#o, () => this.#pleg.all()).run(s));
      if (this.#resizes) scope.spawn("waiting resizes", (s) => retryResizes(this.#o, this.#loop, s));
      this.#qos.mark();
      await this.#loop.run(scope.signal);
    } catch (thrown) {
      if (!(scope.signal.aborted && isAborted(thrown))) throw thrown;
    } finally {
      signal.removeEventListener("abort", stop);
      await this.#probes[Symbol.asyncDispose]();
      await scope.close();
    }
  }

  #onRuntime(up: boolean, error?: string): void {
    const { log } = this.#o;
    if (!up) log.error("the container runtime does not answer; pods stay as they are", { error });
    else {
      log.info("the container runtime answers");
      this.#loop?.wakeAll();
    }
  }

  #activePods(): BoundPod[] {
    const pods: BoundPod[] = [];
    for (const worker of this.#workers.all()) if (worker.mayRun) pods.push(worker.pod);
    return pods;
  }
}
