import type { RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { Deadline } from "../../mod/base/deadline.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Because, Journal } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import { unlessAborted } from "../../mod/base/unless_aborted.ts";
import { waitAtMost } from "../../mod/base/within.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { containerPath, podContainers, podRef } from "../../mod/kube/pod.ts";
import type { BoundPod, LifecycleHandler } from "../../mod/kube/types.ts";
import type { Why } from "../../mod/pod/actions.ts";
import { type ContainerKill, killPlan, minimumGraceSeconds, stopSeconds } from "../../mod/pod/kill.ts";
import type { GroupKiller } from "../cgroups/types.ts";
import type { HookRunner } from "../lifecycle/types.ts";
import { NotStopped, stopBoundMs, StopSteps } from "./stop_steps.ts";

export interface KillerOptions {
  runtime: Pick<RuntimeService, "stopContainer">;
  hooks: HookRunner;
  /** Kills what the runtime does not end. */
  groups: GroupKiller;
  journal: Journal;
  clock: Clock;
  events: EventSink;
  log: Logger;
}

export interface KillRequest {
  readonly pod: BoundPod;
  /** The containers to stop: those that run or may run. */
  readonly containers: readonly { readonly id: string; readonly name: string }[];
  readonly why: Why;
  /** The text of the Killing events; default `Stopping container <name>`. */
  readonly eventText?: string;
  /** Seconds that replace the pod's own grace. */
  readonly graceSeconds?: number;
  readonly probe?: "liveness" | "startup";
  readonly podIP: string | undefined;
  readonly signal: AbortSignal;
}

/** What is known of a container that is being ended, over all tries. */
interface Ending {
  /** Wall time at which its grace is over: the earliest that any try has given. */
  until: number;
  /** preStop has had its time: a further try goes on after it. */
  hooked: boolean;
  /** A try has come to the steps that give no grace. */
  forced: boolean;
  /** Wall time at which the last try ended; Infinity while one is under way. */
  tried: number;
}

/** What is tried again comes sooner than this after the last try; later it is another end, with all its grace. */
const lapseMs = 60_000;

/**
 * Stops containers in the contract's order: hooks first, regular ones together, sidecars after what they serve. A
 * further try for a container goes on where the last one came to: its grace does not begin anew.
 */
export class Killer {
  readonly #o: KillerOptions;
  readonly #steps: StopSteps;
  readonly #endings = new Map<string, Ending>();

  constructor(options: KillerOptions) {
    this.#o = options;
    this.#steps = new StopSteps(options);
  }

  /** Resolves when every container has stopped; rejects with the first failure after all have been tried. */
  async kill(request: KillRequest): Promise<void> {
    const { pod, containers, graceSeconds, probe } = request;
    const plan = killPlan({
      pod,
      live: containers,
      ...(probe ? { probe } : {}),
      ...(graceSeconds === undefined ? {} : { override: graceSeconds }),
    });
    const stopped = new Map(plan.map((k) => [k.id, Promise.withResolvers<void>()]));
    const results = await Promise.allSettled(plan.map(async (one) => {
      try {
        await this.#stop(request, one, stopped);
      } finally {
        stopped.get(one.id)?.resolve();
      }
    }));
    const failures: unknown[] = results.flatMap((r) => r.status === "rejected" ? [r.reason] : []);
    // One that may still end within its grace comes before one for which everything has been tried.
    const [first = failures[0]] = failures.filter((failure) => !(failure instanceof NotStopped));
    if (failures.length > 0) throw first;
  }

  async #stop(
    request: KillRequest,
    one: ContainerKill,
    stopped: ReadonlyMap<string, { promise: Promise<void> }>,
  ): Promise<void> {
    const { pod, why, signal } = request;
    const { clock, events } = this.#o;
    const container = podContainers(pod).find((c) => c.spec.name === one.name);
    events.pod({
      pod,
      type: "Normal",
      reason: "Killing",
      message: request.eventText ?? `Stopping container ${one.name}`,
      ...(container ? { fieldPath: containerPath(container) } : {}),
    });
    const ending = this.#ending(one, clock.now());
    using _tried = { [Symbol.dispose]: () => void (ending.tried = clock.now()) };
    const left = () => ending.until - clock.now();
    // Whole seconds, as the grace is: what hooks and waits took is taken off below.
    const grace = Math.max(0, Math.ceil(left() / 1000));
    const began = clock.now();
    // One that takes longer than the grace goes on until its container has ended: that has a minimum of its own yet.
    using hook = new Deadline({ clock, signal });
    using _end = { [Symbol.dispose]: () => hook.end(new KubeletError("Aborted", "the container has been stopped")) };
    if (one.preStop && !ending.hooked && grace > 0) {
      await this.#preStop(request, { ...one, graceSeconds: grace }, one.preStop, hook.signal);
      ending.hooked = true;
    }
    const hookMs = clock.now() - began;
    if (one.waitFor.length > 0 && left() > 0) {
      const others = Promise.all(one.waitFor.map((id) => stopped.get(id)?.promise));
      await waitAtMost({ clock, ms: left() }, others);
    }
    const waitedMs = clock.now() - began - hookMs;
    const because: Because = { pod: podRef(pod), container: one.name, reason: why.reason, message: why.message };
    const seconds = stopSeconds(grace, hookMs, waitedMs);
    await this.#steps.stop({
      podUid: pod.metadata.uid,
      id: one.id,
      name: one.name,
      seconds,
      forceAt: ending.until + minimumGraceSeconds * 1000 + stopBoundMs,
      forced: ending.forced,
      because,
      signal,
    }, () => ending.forced = true);
    // Kept while it was forced: the runtime may go on to claim that it runs.
    if (!ending.forced) this.#endings.delete(one.id);
  }

  #ending({ id, graceSeconds }: ContainerKill, now: number): Ending {
    for (const [other, { tried }] of this.#endings) if (now - tried > lapseMs) this.#endings.delete(other);
    const until = now + graceSeconds * 1000;
    const known = this.#endings.get(id);
    if (!known) {
      const ending = { until, hooked: false, forced: false, tried: Infinity };
      this.#endings.set(id, ending);
      return ending;
    }
    known.until = Math.min(known.until, until);
    known.tried = Infinity;
    return known;
  }

  /** Kills whatever is left in the groups of a pod of which every container has been stopped. */
  async killLeftovers(pod: BoundPod, why: Why): Promise<void> {
    const { groups, journal } = this.#o;
    const { uid } = pod.metadata;
    const there = await groups.processesOf(uid);
    if (there === undefined || there.length === 0) return;
    await journal.act("CgroupKill", { pod: podRef(pod), ...why }, uid, () => groups.killProcesses(uid));
  }

  /**
   * Runs preStop and waits for it, at most for the grace period; the hook itself goes on until its signal aborts. One
   * that fails is told and does not stop the kill.
   */
  async #preStop(
    request: KillRequest,
    one: ContainerKill,
    handler: LifecycleHandler,
    hookSignal: AbortSignal,
  ): Promise<void> {
    const { pod, podIP, signal } = request;
    const { clock, hooks, log, events } = this.#o;
    const call = { handler, pod, containerName: one.name, containerId: one.id, podIP, signal: hookSignal };
    const run = hooks.run(call).catch((thrown: unknown) => {
      if (signal.aborted) return;
      const container = podContainers(pod).find((c) => c.spec.name === one.name);
      log.warn("preStop hook failed", { container: one.name, error: messageOf(thrown) });
      events.pod({
        pod,
        type: "Warning",
        reason: "FailedPreStopHook",
        message: "PreStopHook failed",
        ...(container ? { fieldPath: containerPath(container) } : {}),
      });
    });
    using limit = new Deadline({ clock, signal, ms: one.graceSeconds * 1000 });
    try {
      await unlessAborted(run, limit.signal);
    } catch (thrown) {
      if (!limit.over) throw thrown;
      log.warn("preStop hook is not done within the grace period; its container is stopped", {
        container: one.name,
        graceSeconds: one.graceSeconds,
      });
    }
  }
}
