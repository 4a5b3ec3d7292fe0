import type { Clock } from "../../mod/base/clock.ts";
import { asError, messageOf } from "../../mod/base/errors.ts";
import type { Journal } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import { within } from "../../mod/base/within.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { criticalPriority, isCritical, isMirror, podFullName, podRef } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { PodSample, StatsSnapshot } from "../stats/types.ts";
import { hasStorageLimit, storageExcess } from "./limits.ts";
import { evictionMessage } from "./message.ts";
import { observe } from "./observations.ts";
import { isRelieved, lookAt, noPressure } from "./pressure.ts";
import { rank } from "./rank.ts";
import { reclaimFor } from "./reclaim.ts";
import { signalFacts } from "./signals.ts";
import { withCopies } from "./thresholds.ts";
import type {
  DiskLayout,
  Eviction,
  EvictionMeter,
  EvictionPods,
  EvictionPolicy,
  EvictionStats,
  NodeReclaim,
  Observations,
  PressureCondition,
  Threshold,
} from "./types.ts";

export interface EvictionManagerOptions {
  readonly policy: EvictionPolicy;
  readonly stats: EvictionStats;
  readonly pods: EvictionPods;
  readonly reclaim: NodeReclaim;
  /** Where images and writable layers lie; asked until it is known. */
  readonly layout: (signal: AbortSignal) => Promise<DiskLayout>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventSink;
  readonly journal: Journal;
  readonly meter?: EvictionMeter;
}

/** Milliseconds between two looks; how long pods that were evicted are waited for, and how often (section 11). */
const periodMs = 10_000;
const cleanupMs = 30_000;
const cleanupPollMs = 1000;
/** A reading that takes longer than this, or is older, is none. */
const readingLimitMs = 30_000;
/** Callers within this time share one reading; one that shall show what was freed must come later. */
const sharedMs = 1000;
/** Longest that a reading is waited for which is newer than what was freed. */
const freshLimitMs = 25_000;
/**
 * Nothing of pods is read while no threshold is met and no pod has a limit, but for one look in so many: it keeps rates
 * and disk usage known for whoever asks for statistics.
 */
const wholeEvery = 6;
/** Seconds that a pod gets when there is no time. */
const immediateSeconds = 1;

/**
 * Keeps the node alive when memory, disks or processes run short (runtime-contract.md section 20; features F24, F30, F37
 * to F45): looks each ten seconds, gives back what is nobody's, then ends one pod at a time. Start `run` once.
 */
export class EvictionManager {
  readonly #o: EvictionManagerOptions;
  #state = noPressure;
  #looks = 0;
  #conditions: readonly PressureCondition[] = [];
  #watched: { layout: DiskLayout; thresholds: readonly Threshold[] } | undefined;
  /** Pods whose eviction is under way. */
  readonly #going = new Set<string>();
  /** Dry run: the pods of which it was told that they would be evicted, and for which signal. */
  readonly #would = new Map<string, string>();
  /** What has been told and goes on being so; see `#tell`. */
  readonly #told = new Map<string, string>();

  constructor(options: EvictionManagerOptions) {
    this.#o = options;
  }

  /** The conditions of pressure that hold, in the node's order; empty before the first look. */
  get conditions(): readonly PressureCondition[] {
    return this.#conditions;
  }

  /** The conditions that admission goes by: none in a dry run, which turns no pod away. */
  get pressure(): readonly PressureCondition[] {
    return this.#o.policy.dryRun ? [] : this.#conditions;
  }

  /** Looks each ten seconds until the signal aborts; never rejects otherwise. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#o;
    while (!signal.aborted) {
      let evicted: readonly BoundPod[] = [];
      try {
        evicted = await this.look(signal);
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        log.error("a look at the node's resources failed", { error: messageOf(thrown) });
      }
      if (evicted.length > 0) await this.#cleaned(evicted, signal);
      else await clock.sleep(periodMs, signal);
    }
  }

  /** One look, with what follows from it; the pods that are being evicted. Rejects only with Aborted. */
  async look(signal: AbortSignal): Promise<readonly BoundPod[]> {
    const { policy, pods, clock } = this.#o;
    for (const uid of this.#going) if (pods.cleaned(uid)) this.#going.delete(uid);
    const active = pods.active().filter(({ metadata }) => !this.#going.has(metadata.uid));
    const uids = new Set(active.map(({ metadata }) => metadata.uid));
    for (const uid of this.#would.keys()) if (!uids.has(uid)) this.#would.delete(uid);
    const limited = policy.storageLimits ? active.filter((pod) => hasStorageLimit(pod) && this.#mayGo(pod)) : [];
    if (policy.thresholds.length === 0 && limited.length === 0) return [];
    const watched = await this.#watch(signal);
    const whole = limited.length > 0 || this.#looks++ % wholeEvery === 0;
    const snapshot = await this.#read(whole ? "summary" : "node", signal);
    if (!watched || !snapshot) return [];

    const { thresholds } = watched;
    const observations = observe(snapshot, policy);
    this.#tellUnread(thresholds, observations);
    const { transitionMs } = policy;
    const { state, conditions, due } = lookAt(this.#state, {
      thresholds,
      observations,
      now: clock.now(),
      transitionMs,
    });
    this.#state = state;
    this.#setConditions(conditions);

    const full = due.length > 0 && snapshot.detail === "node" ? await this.#read("summary", signal) : snapshot;
    if (!full) return [];
    const stats = new Map(full.pods.map((pod) => [pod.uid, pod]));
    const beyond = this.#evictForLimits(limited, stats, watched.layout);
    if (beyond.length > 0) return beyond;
    const [first] = due;
    if (!first) {
      if (state.met.length === 0) { for (const what of ["shortage", "dry run"]) this.#told.delete(what); }
      return [];
    }
    return await this.#relieve(first, { due, observations, stats, active, signal });
  }

  /** The thresholds, once it is known which disk is whose. */
  async #watch(signal: AbortSignal): Promise<{ layout: DiskLayout; thresholds: readonly Threshold[] } | undefined> {
    const { policy, layout: ask } = this.#o;
    if (this.#watched) return this.#watched;
    const what = "where images lie";
    try {
      const layout = await this.#within(ask(signal), signal);
      this.#told.delete(what);
      const thresholds = withCopies(policy.thresholds, { ...policy, layout });
      return this.#watched = { layout, thresholds };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#tell(what, "the runtime does not tell where images lie; nothing is evicted until it does", thrown);
      return undefined;
    }
  }

  async #read(detail: "node" | "summary", signal: AbortSignal): Promise<StatsSnapshot | undefined> {
    const { stats, clock } = this.#o;
    const what = "reading";
    try {
      const snapshot = await this.#within(stats.collect(detail), signal);
      const age = clock.now() - snapshot.at;
      if (age > readingLimitMs) throw new Error(`the reading is ${Math.round(age / 1000)} s old`);
      this.#told.delete(what);
      return snapshot;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#tell(what, "the node's resources cannot be read; nothing is evicted until they can", thrown);
      return undefined;
    }
  }

  /** Waits for something that may hang, for as long as a reading is good for. */
  async #within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    return await within({ clock: this.#o.clock, ms: readingLimitMs, signal, what: "no answer" }, () => work);
  }

  /** Logs what is wrong when it is new, and again only after it was well meanwhile. */
  #tell(what: string, message: string, thrown: unknown): void {
    if (this.#told.has(what)) return;
    this.#told.set(what, message);
    this.#o.log.warn(message, { error: asError(thrown).message });
  }

  #tellUnread(thresholds: readonly Threshold[], observations: Observations): void {
    for (const { signal } of thresholds) {
      const what = `signal ${signal}`;
      if (observations.has(signal)) this.#told.delete(what);
      else this.#tell(what, "an eviction signal cannot be read", new Error(`nothing tells of ${signal}`));
    }
  }

  #setConditions(conditions: readonly PressureCondition[]): void {
    const { log } = this.#o;
    for (const condition of conditions) {
      if (!this.#conditions.includes(condition)) log.warn("the node is under pressure", { condition });
    }
    for (const condition of this.#conditions) {
      if (!conditions.includes(condition)) log.info("the node is under pressure no more", { condition });
    }
    this.#conditions = conditions;
  }

  /** False for pods that are never chosen: critical ones. */
  #mayGo(pod: BoundPod): boolean {
    if (!this.#o.policy.staticPods) return !isCritical(pod);
    return !isMirror(pod) && (pod.spec.priority ?? 0) < criticalPriority;
  }

  #evictForLimits(
    pods: readonly BoundPod[],
    stats: ReadonlyMap<string, PodSample>,
    layout: DiskLayout,
  ): readonly BoundPod[] {
    return pods.filter((pod) => {
      const known = stats.get(pod.metadata.uid);
      const excess = known && storageExcess(pod, known, { dedicatedImageFs: layout !== "single" });
      return excess ? this.#evict({ pod, graceSeconds: immediateSeconds, ...excess }) : false;
    });
  }

  /** Gives back what is nobody's; when that is not enough, evicts the pod that comes first. */
  async #relieve(first: Threshold, context: {
    due: readonly Threshold[];
    observations: Observations;
    stats: ReadonlyMap<string, PodSample>;
    active: readonly BoundPod[];
    signal: AbortSignal;
  }): Promise<readonly BoundPod[]> {
    const { policy, log, events, meter, clock } = this.#o;
    const { due, observations, stats, active } = context;
    const { resource } = signalFacts[first.signal];
    const fresh = this.#told.get("shortage") !== first.signal;
    this.#told.set("shortage", first.signal);
    if (fresh) {
      log.warn("a resource of the node runs short", { resource, signal: first.signal });
      const message = `Attempting to reclaim ${resource}`;
      events.node({ type: "Warning", reason: "EvictionThresholdMet", message });
    }
    if (!policy.dryRun && await this.#reclaim(first, context.signal)) {
      log.info("the shortage is over without a pod's end", { resource });
      return [];
    }
    const layout = this.#watched?.layout ?? "single";
    const ranked = rank({ ...policy, pods: active, stats, signal: first.signal, layout });
    for (const { signal } of due) {
      const at = observations.get(signal)?.at ?? 0;
      if (at > 0 && !policy.dryRun) meter?.evictionStatsAge(signal, Math.max(0, clock.now() - at) / 1000);
    }
    for (const pod of ranked) {
      if (!this.#mayGo(pod)) continue;
      const known = stats.get(pod.metadata.uid);
      const told = evictionMessage({ ...policy, pod, stats: known, signal: first.signal, due, observations });
      const { gracePeriodMs, signal } = first;
      const own = pod.spec.terminationGracePeriodSeconds ?? policy.maxPodGraceSeconds;
      const graceSeconds = gracePeriodMs === 0 ? immediateSeconds : Math.min(policy.maxPodGraceSeconds, own);
      const { message, annotations } = told;
      return this.#evict({ pod, graceSeconds, message, disruption: message, annotations, signal }) ? [pod] : [];
    }
    if (fresh) log.warn("no pod may be evicted: all that run are critical, or none runs", { resource });
    return [];
  }

  /** True when after this nothing is short any more, with what was to be freed beyond the thresholds. */
  async #reclaim(threshold: Threshold, signal: AbortSignal): Promise<boolean> {
    const { policy, reclaim, log, clock } = this.#o;
    const watched = this.#watched;
    const ways = watched ? reclaimFor(threshold.signal, watched.layout) : [];
    for (const way of ways) {
      try {
        await reclaim[way](signal);
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        log.warn("not all could be given back that nobody needs", { what: way, error: messageOf(thrown) });
      }
    }
    if (!watched || ways.length === 0) return false;
    // What file systems have left is measured now and then: a reading from before must not decide.
    const since = clock.now();
    for (const until = since + freshLimitMs; clock.now() < until;) {
      await clock.sleep(sharedMs, signal);
      const snapshot = await this.#read("node", signal);
      if (!snapshot) return false;
      const observations = observe(snapshot, policy);
      const at = observations.get(threshold.signal)?.at ?? 0;
      if (at === 0 || at > since) return isRelieved(watched.thresholds, observations);
    }
    return false;
  }

  /** Ends a pod, and tells why; false in a dry run, which only tells. */
  #evict(eviction: Eviction): boolean {
    const { policy, pods, log, events, journal, meter } = this.#o;
    const { pod, message, annotations, signal, graceSeconds } = eviction;
    const facts = { pod: podFullName(pod), podUid: pod.metadata.uid, signal, message };
    if (policy.dryRun) {
      if (this.#would.get(pod.metadata.uid) === signal) return false;
      this.#would.set(pod.metadata.uid, signal);
      log.warn("dry run: a pod would be evicted", facts);
      journal.note("WouldEvict", { pod: podRef(pod), reason: "EvictionDryRun", message: `${signal}: ${message}` });
      return false;
    }
    this.#going.add(pod.metadata.uid);
    log.warn("a pod is evicted", { ...facts, graceSeconds });
    const note = annotations ? { annotations: { ...annotations } } : {};
    events.pod({ pod, type: "Warning", reason: "Evicted", message, ...note });
    journal.note("Evict", { pod: podRef(pod), reason: "Evicted", message: `${signal}: ${message}` });
    pods.evict(eviction);
    meter?.evicted(signal);
    return true;
  }

  async #cleaned(evicted: readonly BoundPod[], signal: AbortSignal): Promise<void> {
    const { pods, clock, log } = this.#o;
    const until = clock.now() + cleanupMs;
    const left = () => evicted.filter(({ metadata }) => !pods.cleaned(metadata.uid));
    while (clock.now() < until) {
      await clock.sleep(cleanupPollMs, signal);
      if (left().length === 0) return;
    }
    log.warn("pods that were evicted have not ended yet; others go meanwhile if they must", {
      pods: left().map(podFullName),
    });
  }
}
