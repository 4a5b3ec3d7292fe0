import { isNotFound, type RuntimeService, type SandboxConfigInit } from "../../cri/api.ts";
import { allOf } from "../../mod/base/all_of.ts";
import type { Backoff } from "../../mod/base/backoff.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Because } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { isSidecar, podContainers, podRef } from "../../mod/kube/pod.ts";
import type { BoundPod, ContainerKind } from "../../mod/kube/types.ts";
import type { PodActions, Why } from "../../mod/pod/actions.ts";
import type { ObservedPod } from "../../mod/pod/observed.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { within } from "../../mod/base/within.ts";
import type { Killer } from "./kill.ts";
import { resizeRestart } from "../../mod/pod/decide/kills.ts";
import type { Resizer } from "./resizer.ts";
import { type Starter, startFailure } from "./start.ts";
import { NotStopped, stopSlackMs } from "./stop_steps.ts";
import type { PodBuilder, PodSituation } from "./types.ts";

export interface RunnerOptions {
  runtime: Pick<
    RuntimeService,
    "runPodSandbox" | "stopPodSandbox" | "removePodSandbox" | "podSandboxStatus"
  >;
  /** Removes a container, its logs first unless they are to be kept. One that is gone is no error. */
  removeContainer: (
    id: string,
    options: { because: Because; keepLogs?: boolean; signal: AbortSignal },
  ) => Promise<void>;
  builder: PodBuilder;
  clock: Clock;
  /** The longest that the runtime may take to stop a sandbox, its network included; milliseconds. */
  sandboxStopMs: number;
  killer: Killer;
  starter: Starter;
  /** Gives running pods other resources; without it none is resized. */
  resizer?: Pick<Resizer, "apply"> | undefined;
  /** Restart back-off; stepped when a container is started after an exit. */
  backoff: Backoff;
  /** Told when the back-off has changed; what comes after it waits until it is kept. */
  onBackoff: () => void | Promise<void>;
  events: EventSink;
  log: Logger;
  /** Told of a sandbox's addresses as soon as they are known, before any container starts. */
  onSandbox: (pod: BoundPod, ips: readonly string[]) => void;
  /** Told of each container that was tried to start, with the reason when that failed; for the metrics. */
  onStart?: ((kind: ContainerKind, failed: string | undefined) => void) | undefined;
}

/** What came of carrying out a pod's actions. */
export interface ApplyResult {
  /** By container name: why it could not be started this time. */
  readonly failures: ReadonlyMap<string, { reason: string; message: string }>;
  /** Names of containers that were started. */
  readonly started: readonly string[];
  /** Why the pod could not be given other resources. */
  readonly resizeError?: string;
  /** Set when the pod as a whole could not be brought on. */
  readonly error?: string;
}

/** What a Killing event says of a regular container that is started again. */
const restarted = ", will be restarted";

/** Carries out what `decide` decided (runtime-contract.md section 7), in its order. */
export class PodRunner {
  readonly #o: RunnerOptions;

  constructor(options: RunnerOptions) {
    this.#o = options;
  }

  async apply(pod: BoundPod, observed: ObservedPod, actions: PodActions, context: {
    situation: PodSituation;
    signal: AbortSignal;
  }): Promise<ApplyResult> {
    const { signal } = context;
    const podIP = context.situation.podIPs[0];
    if (actions.killPod) await this.killPod(pod, observed, { why: actions.killPod, podIP, signal });
    await this.#killSome(pod, observed, actions, podIP, signal);
    for (const { id, name, reason, message } of actions.remove) {
      await this.#removeContainer(pod, id, { container: name, reason, message }, signal);
    }
    if (actions.resetContainers) await this.#reset(pod, actions.resetContainers, podIP, signal);
    const { resize, sandboxId } = actions;
    const problem = resize && await this.#o.resizer?.apply(pod, resize, sandboxId, signal);
    const resizeError = problem === undefined ? {} : { resizeError: problem };
    if (actions.start.length === 0 && !actions.createSandbox) {
      return { failures: new Map(), started: [], ...resizeError };
    }
    const sandbox = await this.#sandbox(pod, observed, actions, context);
    return { ...await this.#start(pod, observed, actions, { ...context, ...sandbox }), ...resizeError };
  }

  /**
   * Stops every container and every sandbox of the pod. Rejects when one of them could not be stopped, at the latest when
   * the grace, 30 s for each further step and 2 min for the sandboxes have passed.
   */
  async killPod(pod: BoundPod, observed: ObservedPod, options: {
    why: Why;
    graceSeconds?: number;
    podIP: string | undefined;
    signal: AbortSignal;
  }): Promise<void> {
    const { why, podIP, signal, graceSeconds } = options;
    const containers = observed.containers.filter((c) => c.state === "running" || c.state === "unknown");
    let stuck: NotStopped | undefined;
    if (containers.length > 0) {
      try {
        await this.#o.killer.kill({
          pod,
          containers,
          why,
          podIP,
          signal,
          ...(graceSeconds === undefined ? {} : { graceSeconds }),
        });
      } catch (thrown) {
        // Every container has had its grace and more: stopping the sandbox, which ends what is in it, may still help.
        if (!(thrown instanceof NotStopped) || signal.aborted) throw thrown;
        stuck = thrown;
      }
    }
    await allOf(observed.sandboxes.map((sandbox) => this.#stopSandbox(pod, sandbox.id, why, signal)));
    if (stuck) throw stuck;
  }

  async #stopSandbox(pod: BoundPod, id: string, why: Why, signal: AbortSignal): Promise<void> {
    const { runtime, clock, killer, sandboxStopMs } = this.#o;
    const because = { pod: podRef(pod), ...why };
    const began = clock.now();
    try {
      await within(
        { clock, ms: sandboxStopMs, slackMs: stopSlackMs, signal, what: `StopPodSandbox ${id}: no end` },
        (limited) => runtime.stopPodSandbox(id, { because, signal: limited, timeoutMs: sandboxStopMs }),
      );
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      if (isNotFound(thrown)) return;
      if (clock.now() - began >= sandboxStopMs) {
        const late = `${why.message}; StopPodSandbox did not end within ${sandboxStopMs / 1000} s`;
        await killer.killLeftovers(pod, { ...why, message: `${late}, so what is left in the pod's group is killed` });
      }
      throw thrown;
    }
  }

  /** Removes every container and sandbox of a stopped pod from the runtime; logs and their links are the caller's. */
  async removePod(pod: BoundPod, observed: ObservedPod, why: Why, signal: AbortSignal): Promise<void> {
    await allOf(
      observed.containers.map((c) =>
        // Their logs go with the pod's log directory, which spares a look at each.
        this.#removeContainer(pod, c.id, { container: c.name, ...why, keepLogs: true }, signal)
      ),
    );
    const because = { pod: podRef(pod), ...why };
    await allOf(observed.sandboxes.map(async ({ id }) => {
      try {
        await this.#o.runtime.removePodSandbox(id, { because, signal });
      } catch (thrown) {
        if (!isNotFound(thrown)) throw thrown;
      }
    }));
  }

  async #killSome(
    pod: BoundPod,
    observed: ObservedPod,
    actions: PodActions,
    podIP: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const regular = new Set(pod.spec.containers.map((c) => c.name));
    await allOf(actions.kill.map(async ({ id, name, reason, message, probe, restarts }) => {
      if (!observed.containers.some((c) => c.id === id)) return;
      await this.#o.killer.kill({
        pod,
        containers: [{ id, name }],
        why: { reason, message },
        eventText: restarts && regular.has(name) && reason !== resizeRestart && !message.endsWith(restarted)
          ? `${message}${restarted}`
          : message,
        podIP,
        signal,
        ...(probe ? { probe } : {}),
      });
    }));
  }

  async #removeContainer(
    pod: BoundPod,
    id: string,
    { container, reason, message, keepLogs = false }: Why & { container: string; keepLogs?: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    await this.#o.removeContainer(id, { because: { pod: podRef(pod), container, reason, message }, keepLogs, signal });
  }

  async #reset(
    pod: BoundPod,
    reset: NonNullable<PodActions["resetContainers"]>,
    podIP: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const why = { reason: reset.reason, message: reset.message };
    for (const { id, name, live } of reset.containers) {
      if (live) await this.#o.killer.kill({ pod, containers: [{ id, name }], why, graceSeconds: 0, podIP, signal });
      await this.#removeContainer(pod, id, { container: name, ...why, keepLogs: true }, signal);
    }
  }

  /** The sandbox that containers go into: the one there is, or a new one, with the pod's addresses. */
  async #sandbox(pod: BoundPod, observed: ObservedPod, actions: PodActions, context: {
    situation: PodSituation;
    signal: AbortSignal;
  }): Promise<{ sandboxId: string; sandboxConfig: SandboxConfigInit; handler: string; situation: PodSituation }> {
    const { runtime, builder, events } = this.#o;
    const { signal, situation } = context;
    const create = actions.createSandbox;
    if (!create) {
      const sandbox = observed.sandboxes.find((s) => s.id === actions.sandboxId);
      if (!sandbox) throw new KubeletError("Internal", "containers are to start, but there is no sandbox for them");
      const { handler } = sandbox;
      const sandboxConfig = await builder.sandbox(pod, sandbox.attempt, handler);
      return { sandboxId: sandbox.id, sandboxConfig, handler, situation };
    }
    if (create.replaces !== undefined) {
      const message = "Pod sandbox changed, it will be killed and re-created.";
      events.pod({ pod, type: "Normal", reason: "SandboxChanged", message });
    }
    let id: string;
    let handler: string;
    let sandboxConfig: SandboxConfigInit;
    try {
      handler = await builder.handlerOf(pod, signal);
      sandboxConfig = await builder.sandbox(pod, create.attempt, handler);
      const because = { pod: podRef(pod), reason: create.reason, message: create.message };
      id = await runtime.runPodSandbox(sandboxConfig, handler, { because, signal });
    } catch (thrown) {
      if (!signal.aborted) {
        const message = `Failed to create pod sandbox: ${messageOf(thrown)}`;
        events.pod({ pod, type: "Warning", reason: "FailedCreatePodSandBox", message });
      }
      throw thrown;
    }
    const { status } = await runtime.podSandboxStatus(id, { signal });
    const ips = [status?.network?.ip ?? "", ...(status?.network?.additionalIps ?? []).map((a) => a.ip)];
    const podIPs = pod.spec.hostNetwork ? situation.podIPs : ips.filter((ip) => ip !== "");
    this.#o.onSandbox(pod, podIPs);
    return { sandboxId: id, sandboxConfig, handler, situation: { ...situation, podIPs } };
  }

  async #start(pod: BoundPod, observed: ObservedPod, actions: PodActions, context: {
    sandboxId: string;
    sandboxConfig: SandboxConfigInit;
    handler: string;
    situation: PodSituation;
    signal: AbortSignal;
  }): Promise<ApplyResult> {
    const containers = podContainers(pod);
    const failures = new Map<string, { reason: string; message: string }>();
    const started: string[] = [];
    for (const start of actions.start) {
      const container = containers.find((c) => c.kind === start.kind && c.spec.name === start.name);
      if (!container) continue;
      try {
        // The step comes before the try: a start that fails has used up this delay too, and an agent that is killed
        // right after it knows of it.
        if (start.afterExit) {
          this.#o.backoff.begin(start.afterExit.key, start.afterExit.at);
          await this.#o.onBackoff();
        }
        await this.#o.starter.start({ pod, container, start, observed, ...context });
        await this.#settle(start);
        started.push(start.name);
        this.#o.onStart?.(start.kind, undefined);
      } catch (thrown) {
        if (context.signal.aborted) throw thrown;
        await this.#settle(start);
        const failure = startFailure(thrown);
        failures.set(start.name, failure);
        this.#o.onStart?.(start.kind, failure.reason);
        this.#o.log.warn("a container could not be started", { container: start.name, ...failure });
        // A failed init container ends the pass; a failed sidecar, or any other, does not hold up the rest.
        if (start.kind === "init" && !isSidecar(container)) break;
      }
    }
    return { failures, started };
  }

  /** A try has come to its end, and its step of the back-off holds. */
  async #settle({ afterExit }: PodActions["start"][number]): Promise<void> {
    if (!afterExit) return;
    this.#o.backoff.settle(afterExit.key);
    await this.#o.onBackoff();
  }
}
