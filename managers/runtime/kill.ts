import { isNotFound, type RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { containerPath, podContainers, podRef } from "../../mod/kube/pod.ts";
import type { BoundPod, LifecycleHandler } from "../../mod/kube/types.ts";
import type { Why } from "../../mod/pod/actions.ts";
import type { HookRunner } from "../lifecycle/types.ts";
import { type ContainerKill, killPlan, stopSeconds } from "../../mod/pod/kill.ts";

export interface KillerOptions {
  runtime: Pick<RuntimeService, "stopContainer">;
  hooks: HookRunner;
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

/** Stops containers in the contract's order: hooks first, regular ones together, sidecars after what they serve. */
export class Killer {
  readonly #o: KillerOptions;

  constructor(options: KillerOptions) {
    this.#o = options;
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
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  async #stop(
    request: KillRequest,
    one: ContainerKill,
    stopped: ReadonlyMap<string, { promise: Promise<void> }>,
  ): Promise<void> {
    const { pod, why, signal } = request;
    const { clock, runtime, events } = this.#o;
    const container = podContainers(pod).find((c) => c.spec.name === one.name);
    events.pod({
      pod,
      type: "Normal",
      reason: "Killing",
      message: request.eventText ?? `Stopping container ${one.name}`,
      ...(container ? { fieldPath: containerPath(container) } : {}),
    });
    const began = clock.now();
    if (one.preStop) await this.#preStop(request, one, one.preStop);
    const hookMs = clock.now() - began;
    const left = one.graceSeconds * 1000 - hookMs;
    if (one.waitFor.length > 0 && left > 0) {
      using timer = new Timer(clock, left);
      await Promise.race([timer.done, Promise.all(one.waitFor.map((id) => stopped.get(id)?.promise))]);
    }
    const waitedMs = clock.now() - began - hookMs;
    const because = { pod: podRef(pod), container: one.name, reason: why.reason, message: why.message };
    try {
      await runtime.stopContainer(one.id, stopSeconds(one.graceSeconds, hookMs, waitedMs), { because, signal });
    } catch (thrown) {
      // A container that is gone has stopped.
      if (!isNotFound(thrown)) throw thrown;
    }
  }

  /** Runs preStop for at most the grace period; a hook that fails is told and does not stop the kill. */
  async #preStop(request: KillRequest, one: ContainerKill, handler: LifecycleHandler): Promise<void> {
    const { pod, podIP, signal } = request;
    const limit = new AbortController();
    const onAbort = () => limit.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    using _timer = this.#o.clock.after(one.graceSeconds * 1000, () => limit.abort());
    try {
      const request = { handler, pod, containerName: one.name, containerId: one.id, podIP, signal: limit.signal };
      await this.#o.hooks.run(request);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const container = podContainers(pod).find((c) => c.spec.name === one.name);
      const late = limit.signal.aborted
        ? `not done within the grace period of ${one.graceSeconds} s`
        : messageOf(thrown);
      this.#o.log.warn("preStop hook failed", { container: one.name, error: late });
      this.#o.events.pod({
        pod,
        type: "Warning",
        reason: "FailedPreStopHook",
        message: "PreStopHook failed",
        ...(container ? { fieldPath: containerPath(container) } : {}),
      });
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}

/** A timer that can be awaited and is cancelled when it goes out of scope. */
class Timer implements Disposable {
  readonly #resolvers = Promise.withResolvers<void>();
  readonly #timer: Disposable;
  constructor(clock: Clock, ms: number) {
    this.#timer = clock.after(ms, () => this.#resolvers.resolve());
  }
  get done(): Promise<void> {
    return this.#resolvers.promise;
  }
  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }
}
