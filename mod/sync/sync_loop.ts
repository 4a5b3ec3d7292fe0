import type { PodAllocations, ResizeTrigger } from "../../managers/allocation/types.ts";
import { Channel } from "../base/channel.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Journal } from "../base/journal.ts";
import type { Logger } from "../base/log.ts";
import type { EventSink } from "../kube/events.ts";
import { isStatic, podFullName, podRef } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";
import type { PodChange, PodSources } from "../sources/types.ts";
import { podFromRuntime } from "./orphans.ts";
import type { Pleg, PlegEvent } from "./pleg.ts";
import type { PodStore } from "./pod_store.ts";
import type { PodWorkers } from "./pod_workers.ts";

/** What the node says to a pod that wants to run on it. */
export type Admission = { readonly admit: true } | {
  readonly admit: false;
  readonly reason: string;
  readonly message: string;
};

type LoopEvent =
  | { readonly type: "config"; readonly changes: readonly PodChange[]; readonly ready: boolean }
  | { readonly type: "pleg"; readonly event: PlegEvent }
  | { readonly type: "probe"; readonly podUid: string }
  | { readonly type: "judge"; readonly podUid: string }
  | { readonly type: "prepared"; readonly podUid: string; readonly answer: Admission }
  | { readonly type: "wakeAll" }
  | { readonly type: "resize"; readonly trigger: ResizeTrigger }
  | { readonly type: "housekeeping" };

export interface SyncLoopOptions {
  sources: PodSources;
  store: PodStore;
  workers: PodWorkers;
  pleg: Pick<Pleg, "all" | "get">;
  clock: Clock;
  log: Logger;
  journal: Journal;
  events: EventSink;
  /** Decides on a new pod, given the pods that hold resources now. */
  admit: (pod: BoundPod, active: readonly BoundPod[]) => Admission;
  /**
   * Asked before a pod is turned away: true when what it was judged by may be out of date and is being read anew; `again`
   * is to be called when that is done. The pod is judged once more then, and for good.
   */
  lookAgain?: (pod: BoundPod, reason: string, again: () => void) => boolean;
  /** What pods were given, and resizes in place; without it each pod has what its spec says. */
  resizes?: PodAllocations | undefined;
  /**
   * Asked before a pod is judged: true when it needs what takes time to get, such as devices; `done` is to be called with
   * whether it could be had.
   */
  prepare?: (pod: BoundPod, done: (answer: Admission) => void) => boolean;
  /** Told of each new pod before anything is decided about it. */
  onAdded?: (pod: BoundPod) => void;
  /** True for a pod that has ended, by what is known of it here or at its source: it is never started, only cleaned up. */
  hasEnded?: (pod: BoundPod) => boolean;
  /** Publishes the Failed status of a rejected pod. */
  onRejected: (pod: BoundPod, rejection: { reason: string; message: string }) => void;
  /** Told when a pod that never had a worker, or whose worker is gone, is forgotten. */
  onForgotten: (uid: string) => void;
  /** Runs the clean-ups that touch files and the runtime; the loop only asks for them. */
  housekeep: () => void;
  /** Milliseconds between housekeepings (runtime-contract.md section 11: 2 s). */
  housekeepingMs?: number;
}

/**
 * Routes events to workers, and nothing else: it never touches the file system, the runtime or the network, so nothing
 * that hangs can stop it. Its inputs: configuration, pod life cycle, probe results, the periodic look (which each
 * worker times for itself) and housekeeping.
 */
export class SyncLoop {
  readonly #o: SyncLoopOptions;
  readonly #events = new Channel<LoopEvent>();
  /** Pods that are judged once more. */
  readonly #undecided = new Set<string>();
  readonly #preparing = new Set<string>();
  /** Those of them that wait until an earlier pod of their UID has gone. */
  readonly #behind = new Set<string>();
  #lastActive: number;
  #sourcesReady = false;

  constructor(options: SyncLoopOptions) {
    this.#o = options;
    this.#lastActive = options.clock.now();
  }

  /**
   * True once what every source wants at first has been taken in. The sources say so when they hand over the last of it;
   * what counts is when the loop has handled it, or a clean-up between the two would take wanted pods for orphans.
   */
  get sourcesReady(): boolean {
    return this.#sourcesReady;
  }

  /** UIDs of the pods for which something is being got before they are judged. */
  get preparing(): ReadonlySet<string> {
    return this.#preparing;
  }

  /** When the loop last handled an event; /healthz/syncloop looks at it. */
  get lastActive(): number {
    return this.#lastActive;
  }

  /** A picture of a pod changed. */
  pleg(event: PlegEvent): void {
    this.#events.push({ type: "pleg", event });
  }

  /** A probe of the pod crossed its threshold. */
  probe(podUid: string): void {
    this.#events.push({ type: "probe", podUid });
  }

  /** Something that concerns every pod changed, such as the runtime's return. */
  wakeAll(): void {
    this.#events.latest("wakeAll", { type: "wakeAll" });
  }

  /** Something happened for which a resize that waits may have its turn. */
  retryResizes(trigger: ResizeTrigger): void {
    if (this.#o.resizes?.waiting) this.#events.latest("resize", { type: "resize", trigger });
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#readSources(signal), this.#tick(signal), this.#route(signal)]);
  }

  async #readSources(signal: AbortSignal): Promise<void> {
    const { sources } = this.#o;
    for await (const changes of sources.changes(signal)) {
      this.#events.push({ type: "config", changes, ready: sources.allReady });
    }
  }

  async #tick(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#o.clock.sleep(this.#o.housekeepingMs ?? 2000, signal);
      this.#events.latest("housekeeping", { type: "housekeeping" });
    }
  }

  async #route(signal: AbortSignal): Promise<void> {
    for await (const event of this.#events.values(signal)) {
      this.#lastActive = this.#o.clock.now();
      switch (event.type) {
        case "config":
          for (const change of this.#inOrder(event.changes)) this.#configure(change);
          this.#sourcesReady ||= event.ready;
          this.#resizeAfter(event.changes);
          break;
        case "pleg":
          this.#o.workers.poke(event.event.uid);
          break;
        case "probe":
          this.#o.workers.poke(event.podUid);
          break;
        case "judge": {
          const pod = this.#o.store.get(event.podUid);
          if (this.#undecided.delete(event.podUid) && pod) this.#take(pod, true);
          break;
        }
        case "prepared": {
          const pod = this.#o.store.get(event.podUid);
          if (!this.#preparing.delete(event.podUid) || !pod) break;
          if (event.answer.admit) this.#take(pod, this.#o.lookAgain === undefined);
          else this.#reject(pod, event.answer);
          break;
        }
        case "resize":
          this.#resize(event.trigger);
          break;
        case "wakeAll":
          this.#o.workers.pokeAll();
          break;
        case "housekeeping":
          this.#housekeep();
      }
    }
  }

  /** What goes, then pods that run already, so that none of the others takes their room, then all else. */
  #inOrder(changes: readonly PodChange[]): PodChange[] {
    const rank = ({ op, pod }: PodChange) => op === "remove" ? 0 : op !== "add" ? 3 : this.#ranBefore(pod) ? 1 : 2;
    // Of pods that wait for room, the oldest comes first.
    const made = ({ pod }: PodChange) => pod.metadata.creationTimestamp ?? "";
    return changes.toSorted((a, b) => rank(a) - rank(b) || (made(a) < made(b) ? -1 : made(a) > made(b) ? 1 : 0));
  }

  /** True for a pod that an earlier life of the agent has admitted and started. */
  #ranBefore(pod: BoundPod): boolean {
    const { pleg, workers } = this.#o;
    const uid = pod.metadata.uid;
    if (workers.has(uid)) return false;
    for (const observed of pleg.all()) if (observed.uid === uid) return true;
    return false;
  }

  #configure({ op, pod }: PodChange): void {
    const { store, workers, log } = this.#o;
    const uid = pod.metadata.uid;
    const what = { pod: podFullName(pod), podUid: uid };
    // Mostly an echo of what the agent has written itself.
    if (op === "reconcile") log.detail(4, "pod reconcile", what);
    else log.info(`pod ${op}`, what);
    switch (op) {
      case "add":
        this.#add(pod);
        break;
      case "reconcile":
        store.set(pod);
        if (this.#isTaken(uid)) workers.reconcile(this.#given(pod));
        break;
      case "update":
      case "delete": {
        const before = store.get(uid);
        store.set(pod);
        if (!this.#isTaken(uid)) break;
        if (before) this.#o.resizes?.updated(before, pod);
        workers.update(this.#given(pod));
        break;
      }
      case "remove":
        store.remove(uid);
        this.#undecided.delete(uid);
        this.#preparing.delete(uid);
        this.#behind.delete(uid);
        if (workers.has(uid)) {
          workers.remove(uid, { why: { reason: "SourceRemoved", message: "the pod is no longer in its source" } });
        } else this.#o.onForgotten(uid);
    }
  }

  #add(pod: BoundPod): void {
    this.#o.store.set(pod);
    // A predecessor that only the runtime knows (its manifest changed while no agent ran) must go first.
    if (isStatic(pod)) this.#removePredecessors(pod);
    this.#o.onAdded?.(pod);
    if (!this.#prepare(pod)) this.#take(pod, this.#o.lookAgain === undefined);
  }

  /** True when something is being got for the pod. */
  #prepare(pod: BoundPod): boolean {
    const { prepare } = this.#o;
    const uid = pod.metadata.uid;
    if (!prepare || this.#hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) return false;
    // From now on what it gets is held for it.
    this.#preparing.add(uid);
    if (prepare(pod, (answer) => this.#events.push({ type: "prepared", podUid: uid, answer }))) return true;
    this.#preparing.delete(uid);
    return false;
  }

  /** The pod with the resources that it was given. */
  #given(pod: BoundPod): BoundPod {
    return this.#o.resizes?.allocated(pod) ?? pod;
  }

  #resizeAfter(changes: readonly PodChange[]): void {
    const { resizes } = this.#o;
    if (!resizes?.waiting) return;
    const has = (...ops: PodChange["op"][]) => changes.some((c) => ops.includes(c.op));
    if (has("update")) this.#resize("pod_updated");
    else if (has("add")) this.#resize("pods_added");
    else if (has("remove")) this.#resize("pods_removed");
  }

  /** Lets resizes that wait have their turn, once every pod that was given something is known. */
  #resize(trigger: ResizeTrigger): void {
    const { resizes, store, workers } = this.#o;
    if (!resizes || !this.#sourcesReady) return;
    const runs = (uid: string) => this.#isTaken(uid) && workers.get(uid)?.removed === false;
    const changed = resizes.retry(trigger, {
      get: (uid) => runs(uid) ? store.get(uid) : undefined,
      admit: (pod) => this.#o.admit(pod, this.#active(pod.metadata.uid)),
    });
    for (const pod of changed) workers.update(this.#given(pod));
  }

  #isTaken(uid: string): boolean {
    return !this.#o.store.isRejected(uid) && !this.#undecided.has(uid) && !this.#preparing.has(uid);
  }

  /** Runs the pod if it may, or turns it away; `final` when it is not to be judged once more. */
  #take(pod: BoundPod, final: boolean): void {
    const { workers } = this.#o;
    const uid = pod.metadata.uid;
    const given = this.#given(pod);
    const answer = this.#mayRun(given);
    if (answer.admit) {
      this.#o.resizes?.admitted(given);
      workers.update(given);
      this.#o.resizes?.added(pod);
      return;
    }
    if (workers.has(uid)) {
      // An earlier pod of this UID is being ended: what became of this one must not be told of that one.
      this.#undecided.add(uid);
      this.#behind.add(uid);
      return;
    }
    const again = () => this.#events.push({ type: "judge", podUid: uid });
    if (!final && this.#o.lookAgain?.(pod, answer.reason, again)) {
      this.#undecided.add(uid);
      return;
    }
    this.#reject(pod, answer);
  }

  #reject(pod: BoundPod, answer: { readonly reason: string; readonly message: string }): void {
    this.#o.store.reject(pod.metadata.uid);
    this.#o.journal.note("Reject", { pod: podRef(pod), reason: answer.reason, message: answer.message });
    this.#o.events.pod({ pod, type: "Warning", reason: answer.reason, message: answer.message });
    this.#o.onRejected(pod, { reason: answer.reason, message: answer.message });
  }

  /** What runs stays, and what has ended or is to end is never started: neither is a question of whether it fits. */
  #mayRun(pod: BoundPod): Admission {
    if (this.#ranBefore(pod) || this.#hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) {
      return { admit: true };
    }
    try {
      return this.#o.admit(pod, this.#active(pod.metadata.uid));
    } catch (thrown) {
      // A pod that cannot even be judged must not stop the loop that all others live by.
      this.#o.log.error("the pod cannot be judged", { pod: podFullName(pod), error: messageOf(thrown) });
      return { admit: false, reason: "UnexpectedAdmissionError", message: messageOf(thrown) };
    }
  }

  #hasEnded(pod: BoundPod): boolean {
    return this.#o.hasEnded?.(pod) ?? false;
  }

  /**
   * Pods whose requests count against the node: those wanted and admitted that may still run. A pod that is on its way
   * out does not count, so that an edited manifest is not refused for what its predecessor still holds.
   */
  #active(except: string): BoundPod[] {
    const active: BoundPod[] = [];
    for (const pod of this.#o.store.all()) {
      const uid = pod.metadata.uid;
      if (uid === except || !(this.#isTaken(uid) || this.#preparing.has(uid)) || this.#hasEnded(pod)) continue;
      const worker = this.#o.workers.get(uid);
      if (!worker || worker.mayRun) active.push(this.#o.resizes?.counted(pod) ?? pod);
    }
    return active;
  }

  #removePredecessors(pod: BoundPod): void {
    const { pleg, store, workers } = this.#o;
    for (const observed of pleg.all()) {
      if (observed.uid === pod.metadata.uid || observed.name !== pod.metadata.name) continue;
      if (observed.namespace !== pod.metadata.namespace || workers.has(observed.uid) || store.has(observed.uid)) {
        continue;
      }
      workers.removeOrphan(podFromRuntime(observed), {
        reason: "Replaced",
        message: "the pod's manifest changed while no agent ran",
      });
    }
  }

  /** Judges pods whose predecessor of the same UID has gone by now. */
  #judgeSuccessors(): void {
    const { store, workers } = this.#o;
    for (const uid of this.#behind) {
      if (workers.has(uid)) continue;
      this.#behind.delete(uid);
      const pod = store.get(uid);
      if (this.#undecided.delete(uid) && pod) this.#take(pod, true);
    }
  }

  #housekeep(): void {
    const { pleg, store, workers } = this.#o;
    this.#judgeSuccessors();
    // Before every source has been read, a pod without a source is not yet an orphan.
    if (!this.#sourcesReady) return;
    for (const observed of pleg.all()) {
      if (workers.has(observed.uid)) continue;
      if (store.has(observed.uid) && !store.isRejected(observed.uid)) continue;
      workers.removeOrphan(podFromRuntime(observed), {
        reason: "Orphaned",
        message: "the runtime has a pod that no source wants",
      });
    }
    this.#o.housekeep();
  }
}
