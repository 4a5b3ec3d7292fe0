import type { Clock } from "../base/clock.ts";
import { isAborted, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { jitter, type Random } from "../base/random.ts";
import type { BoundPod } from "../kube/types.ts";
import type { Why } from "../pod/actions.ts";
import { workerGrace } from "../pod/kill.ts";
import { isOwnCondition } from "../pod/status/conditions.ts";
import type { ForcedEnd } from "../pod/status/input.ts";
import { isTerminal } from "../pod/status/phase.ts";

/** Where a pod's worker is (runtime-contract.md section 10). `gone` means that nothing of the pod is left. */
export type WorkerState = "syncing" | "terminating" | "terminated" | "finished" | "purging" | "gone";

/** Why and how a pod is ended. */
export interface KillOptions {
  readonly why: Why;
  /** Seconds that replace the pod's own grace period (eviction, orphans, forced deletion). */
  readonly graceSeconds?: number;
  /** The pod is forced into Failed with this reason. */
  readonly failed?: ForcedEnd;
}

/** What a pass over a pod leaves behind. */
export interface SyncOutcome {
  /** The pod has ended by itself (or its deadline has passed): go on to terminating. */
  readonly terminal?: Why;
  /** Forces Failed with this reason when terminal (active deadline). */
  readonly failed?: ForcedEnd;
  /** Milliseconds after which to look again although nothing happened; default the resync period. */
  readonly againInMs?: number;
  /** Something could not be done; it has been told. Try again after the error back-off, or after againInMs. */
  readonly error?: string;
}

/** Effects of a worker; one implementation for the agent, a recording one for tests. */
export interface PodSyncer {
  sync(pod: BoundPod, context: { signal: AbortSignal }): Promise<SyncOutcome>;
  /** Stops everything of the pod; resolves only when nothing of it runs. */
  terminate(pod: BoundPod, context: TerminateContext): Promise<void>;
  /** Gives back what a stopped pod holds: volumes, cgroup. */
  release(pod: BoundPod, context: { signal: AbortSignal; removed: boolean }): Promise<void>;
  /**
   * Removes every trace of a pod that nobody wants any more: containers, sandboxes, logs, directories. Of one that
   * `comesAgain` under its UID what tells how often it has run stays: containers, sandboxes, logs.
   */
  purge(pod: BoundPod, context: { signal: AbortSignal; comesAgain: boolean }): Promise<void>;
}

export interface TerminateContext {
  readonly signal: AbortSignal;
  /** Grace period in seconds: the smallest asked for so far, at least 1. */
  readonly graceSeconds: number;
  readonly why: Why;
  readonly failed: ForcedEnd | undefined;
  /** Wall time at which termination began. */
  readonly since: number;
}

export interface PodWorkerOptions {
  pod: BoundPod;
  syncer: PodSyncer;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Milliseconds between looks at a pod to which nothing happens (syncFrequency). */
  resyncMs: number;
  /** Told at each change of state. */
  onState: (worker: PodWorker) => void;
}

/** Milliseconds of the error back-off (runtime-contract.md section 9), stretched by up to half. */
const errorBackOffMs = 10_000;
/** A failing termination is tried sooner: the pod is not what it should be meanwhile. */
const terminateRetryMs = [500, 1000, 2000, 5000, 10_000] as const;

/** The one place where things are done for a pod, one at a time; what arrives meanwhile is coalesced. */
export class PodWorker {
  readonly #o: PodWorkerOptions;
  #pod: BoundPod;
  #state: WorkerState = "syncing";
  #removed = false;
  /** The pod is wanted again, under the same UID, as soon as this life of it is over. */
  comesAgain = false;
  #kill: { why: Why; graceSeconds: number; since: number } | undefined;
  #failed: ForcedEnd | undefined;
  #failures = 0;
  #due = true;
  #wake: (() => void) | undefined;
  #attempt: AbortController | undefined;

  constructor(options: PodWorkerOptions) {
    this.#o = options;
    this.#pod = options.pod;
  }

  get pod(): BoundPod {
    return this.#pod;
  }

  get uid(): string {
    return this.#pod.metadata.uid;
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** True once the pod is no longer wanted by any source. */
  get removed(): boolean {
    return this.#removed;
  }

  /** True while the pod may have running containers. */
  get mayRun(): boolean {
    return this.#state === "syncing" || this.#state === "terminating";
  }

  /** The pod's definition changed. */
  update(pod: BoundPod): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp !== undefined) {
      const graceSeconds = pod.metadata.deletionGracePeriodSeconds;
      this.kill({
        why: { reason: "PodDeleted", message: "the pod was deleted" },
        ...(graceSeconds === undefined ? {} : { graceSeconds }),
      });
    }
    this.poke();
  }

  /** The pod's status changed at its source, by our own hand or another's; its definition is the same. */
  reconcile(pod: BoundPod): void {
    const before = this.#pod;
    this.#pod = pod;
    if (concernsOthers(before, pod)) this.poke();
  }

  /** Something happened that may concern the pod: look again. */
  poke(): void {
    if (this.#state === "finished" || this.#state === "gone") return;
    this.#due = true;
    this.#notify();
  }

  /** Ends the pod. A later call with a shorter grace shortens a termination that is under way. */
  kill(options: KillOptions): void {
    const before = this.#kill;
    const { seconds: graceSeconds, shortened } = workerGrace({
      pod: this.#pod,
      ...(before ? { current: before.graceSeconds } : {}),
      ...(options.graceSeconds === undefined ? {} : { override: options.graceSeconds }),
    });
    this.#failed ??= options.failed;
    if (before && !shortened) return;
    this.#kill = {
      why: before?.why ?? options.why,
      graceSeconds,
      since: before?.since ?? this.#o.clock.now(),
    };
    if (this.#state === "syncing") this.#enter("terminating");
    if (this.#state === "terminating") this.#attempt?.abort();
    this.poke();
  }

  /** No source wants the pod any more: end it if it runs, then remove every trace. */
  remove(options: KillOptions): void {
    this.#removed = true;
    if (this.mayRun) this.kill(options);
    else if (this.#state === "finished") {
      this.#enter("purging");
      this.poke();
    }
  }

  /** Works until the pod is gone or the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const onAbort = () => {
      this.#attempt?.abort();
      this.#notify();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      let again: number | undefined;
      while (!signal.aborted && this.#state !== "gone") {
        await this.#until(again);
        if (signal.aborted) return;
        again = await this.#pass();
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** One pass in the present state; the milliseconds after which the next is due, undefined for "when told". */
  async #pass(): Promise<number | undefined> {
    this.#due = false;
    const attempt = new AbortController();
    this.#attempt = attempt;
    const { syncer } = this.#o;
    const context = { signal: attempt.signal };
    try {
      switch (this.#state) {
        case "syncing":
          return await this.#sync(context);
        case "terminating": {
          const kill = this.#kill!;
          await syncer.terminate(this.#pod, { ...context, ...kill, failed: this.#failed });
          this.#enter("terminated");
          break;
        }
        case "terminated":
          await syncer.release(this.#pod, { ...context, removed: this.#removed });
          this.#enter(this.#removed ? "purging" : "finished");
          break;
        case "purging":
          await syncer.purge(this.#pod, { ...context, comesAgain: this.comesAgain });
          this.#enter("gone");
          break;
        default:
          return undefined;
      }
      this.#failures = 0;
      // `finished` has nothing more to do until somebody removes the pod.
      return this.state === "finished" ? undefined : 0;
    } catch (thrown) {
      // Called off by a shorter grace or by a kill: the loop goes on with what is asked for now.
      if (attempt.signal.aborted && isAborted(thrown)) return 0;
      this.#o.log.error(`the pod could not be ${phrase[this.#state]}; trying again`, { error: messageOf(thrown) });
      return this.#retry();
    } finally {
      this.#attempt = undefined;
    }
  }

  async #sync(context: { signal: AbortSignal }): Promise<number | undefined> {
    const outcome = await this.#o.syncer.sync(this.#pod, context);
    // A kill that came while the pass ended has already moved the worker on.
    if (this.#state !== "syncing") return 0;
    if (outcome.terminal) {
      this.kill({ why: outcome.terminal, ...(outcome.failed ? { failed: outcome.failed } : {}) });
      return 0;
    }
    if (outcome.error !== undefined) {
      return outcome.againInMs ?? jitter(this.#o.random, errorBackOffMs, 0.5);
    }
    this.#failures = 0;
    return outcome.againInMs ?? jitter(this.#o.random, this.#o.resyncMs, 0.5);
  }

  #retry(): number {
    const step = Math.min(this.#failures++, terminateRetryMs.length - 1);
    if (this.#state === "syncing") return jitter(this.#o.random, errorBackOffMs, 0.5);
    return terminateRetryMs[step]!;
  }

  #enter(state: WorkerState): void {
    if (this.#state === state) return;
    this.#state = state;
    // A pod that was removed while its last step ran has one more to go.
    if (state === "finished" && this.#removed) this.#state = "purging";
    this.#o.onState(this);
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Waits until there is something to do: a poke, or `ms` milliseconds gone. */
  async #until(ms: number | undefined): Promise<void> {
    if (this.#due || ms === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    using _timer = ms === undefined ? undefined : this.#o.clock.after(ms, () => this.#notify());
    await promise;
  }
}

/**
 * True when a change of status calls for a look: a condition that is not the agent's own, on which a readiness gate may
 * wait and which the status carries on, or an end that somebody else has set. All else is an echo of what was written.
 */
function concernsOthers(before: BoundPod, now: BoundPod): boolean {
  const foreign = ({ status }: BoundPod) => (status?.conditions ?? []).filter((c) => !isOwnCondition(c.type));
  if (isTerminal(now.status?.phase) && !isTerminal(before.status?.phase)) return true;
  return JSON.stringify(foreign(before)) !== JSON.stringify(foreign(now));
}

const phrase: Record<WorkerState, string> = {
  syncing: "synced",
  terminating: "terminated",
  terminated: "released",
  finished: "finished",
  purging: "removed",
  gone: "removed",
};
