import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Scope } from "../base/scope.ts";
import { isStatic, podFullName } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";
import type { Why } from "../pod/actions.ts";
import { type KillOptions, type PodSyncer, PodWorker } from "./pod_worker.ts";

export interface PodWorkersOptions {
  scope: Scope;
  syncer: PodSyncer;
  clock: Clock;
  random: Random;
  log: Logger;
  resyncMs: number;
  /** Told when a pod has left for good, or has stopped running: its resources are free. */
  onFreed: (pod: BoundPod) => void;
  /** Told when nobody wants a pod any more, before anything is done for its end. */
  onLeaving?: (uid: string) => void;
  meter?: WorkersMeter | undefined;
}

/** Told of pods that come in unusual ways, for the metrics. */
export interface WorkersMeter {
  /** A pod that was ended is made again under its UID. */
  restartedPod(isStatic: boolean): void;
  /** The runtime has a pod that no source wants. */
  orphanedPod(): void;
}

/** One worker per pod UID; static pods of one full name strictly one after another (runtime-contract.md section 10). */
export class PodWorkers {
  readonly #o: PodWorkersOptions;
  readonly #workers = new Map<string, PodWorker>();
  /** Pods that wait until an older pod of the same full name, or an earlier life of the same UID, is gone. */
  readonly #waiting = new Map<string, BoundPod>();
  /** Those of them that wait for an earlier life of their own. */
  readonly #again = new Set<string>();

  constructor(options: PodWorkersOptions) {
    this.#o = options;
  }

  get(uid: string): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  /** True when the pod has a worker, or waits for its turn. */
  has(uid: string): boolean {
    return this.#workers.has(uid) || this.#waiting.has(uid);
  }

  all(): Iterable<PodWorker> {
    return this.#workers.values();
  }

  /** Number of pods that wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Starts a pod, or gives a running one its new definition. */
  update(pod: BoundPod): void {
    const uid = pod.metadata.uid;
    const worker = this.#workers.get(uid);
    if (worker && !worker.removed) {
      worker.update(pod);
      return;
    }
    if (worker) {
      worker.comesAgain = goesOn(pod);
      this.#again.add(uid);
    }
    if (worker || this.#blocked(pod)) {
      this.#o.log.info("the pod waits until its predecessor is gone", { pod: podFullName(pod), podUid: uid });
      this.#waiting.set(uid, pod);
      return;
    }
    this.#start(pod);
  }

  /** Gives a running pod the status that its source has of it; one that waits for its turn takes it with it. */
  reconcile(pod: BoundPod): void {
    const { uid } = pod.metadata;
    if (this.#waiting.has(uid)) this.#waiting.set(uid, pod);
    const worker = this.#workers.get(uid);
    if (worker && !worker.removed) worker.reconcile(pod);
  }

  /** The pod is not wanted any more. */
  remove(uid: string, options: KillOptions): void {
    this.#waiting.delete(uid);
    this.#again.delete(uid);
    const worker = this.#workers.get(uid);
    if (!worker) return;
    worker.comesAgain = false;
    this.#o.onLeaving?.(uid);
    worker.remove(options);
  }

  /** Ends a pod that is known only from the runtime: it has no source, and gets no status. */
  removeOrphan(pod: BoundPod, why: Why): void {
    const { uid } = pod.metadata;
    if (this.#workers.has(uid)) return;
    // What ends here may be somebody else's: two agents on one runtime take each other's pods for orphans.
    this.#o.log.warn("a pod that the runtime has and no source wants is ended and removed", {
      pod: podFullName(pod),
      podUid: uid,
      because: why.message,
      remedy: "none, unless the pod is another agent's: each agent needs a runtime of its own",
    });
    const worker = this.#make(pod);
    this.#o.meter?.orphanedPod();
    this.#o.onLeaving?.(worker.uid);
    worker.remove({ why, graceSeconds: 1 });
    this.#run(worker);
  }

  /** Looks again at one pod. */
  poke(uid: string): void {
    this.#workers.get(uid)?.poke();
  }

  /** Looks again at every pod. */
  pokeAll(): void {
    for (const worker of this.#workers.values()) worker.poke();
  }

  #blocked(pod: BoundPod): boolean {
    if (!isStatic(pod)) return false;
    const name = podFullName(pod);
    for (const other of this.#workers.values()) {
      if (other.uid !== pod.metadata.uid && podFullName(other.pod) === name && other.state !== "gone") return true;
    }
    return false;
  }

  #start(pod: BoundPod): void {
    const worker = this.#make(pod);
    if (pod.metadata.deletionTimestamp !== undefined) worker.update(pod);
    this.#run(worker);
  }

  #make(pod: BoundPod): PodWorker {
    const { syncer, clock, random, resyncMs, log } = this.#o;
    return new PodWorker({
      pod,
      syncer,
      clock,
      random,
      resyncMs,
      log: log.with({ pod: podFullName(pod), podUid: pod.metadata.uid }),
      onState: (worker) => this.#onState(worker),
    });
  }

  #run(worker: PodWorker): void {
    this.#workers.set(worker.uid, worker);
    this.#o.scope.spawn(`pod ${worker.uid}`, (signal) => worker.run(signal));
  }

  #onState(worker: PodWorker): void {
    if (worker.state === "gone") {
      this.#workers.delete(worker.uid);
      this.#startWaiting();
    }
    if (!worker.mayRun) this.#o.onFreed(worker.pod);
  }

  #startWaiting(): void {
    for (const [uid, pod] of this.#waiting) {
      if (this.#workers.has(uid) || this.#blocked(pod)) continue;
      this.#waiting.delete(uid);
      if (this.#again.delete(uid)) this.#o.meter?.restartedPod(isStatic(pod));
      this.#start(pod);
    }
  }
}

/** Whether a pod that comes again goes on counting its restarts. One that may end for good would stay ended by that. */
function goesOn({ spec }: BoundPod): boolean {
  return (spec.restartPolicy ?? "Always") === "Always";
}
