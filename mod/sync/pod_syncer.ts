import type { ProbeTarget } from "../../managers/probes/types.ts";
import type { PodSituation } from "../../managers/runtime/types.ts";
import { VolumesNotMounted } from "../../managers/volumes/wanted.ts";
import { allOf } from "../base/all_of.ts";
import { KubeletError, messageOf } from "../base/errors.ts";
import { containerPath, podContainers, podFullName, podRef } from "../kube/pod.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import type { PodActions, Why } from "../pod/actions.ts";
import { podText } from "../pod/decide/backoff.ts";
import { decide, isLive } from "../pod/decide/decide.ts";
import { newest, type ObservedPod, unobserved } from "../pod/observed.ts";
import type { ForcedEnd } from "../pod/status/input.ts";
import { isTerminal } from "../pod/status/phase.ts";
import { withSandboxReady } from "../pod/status/sandbox_ready.ts";
import { terminatedStatus } from "../pod/status/transition.ts";
import type { PodSyncerOptions } from "./pod_syncer_types.ts";
import { PodVolumes } from "./pod_volumes.ts";
import type { PodSyncer, SyncOutcome, TerminateContext } from "./pod_worker.ts";
import { noted } from "./step_note.ts";

/** What the syncer remembers of a pod between passes. */
interface Memory {
  startErrors: Map<string, { reason: string; message: string }>;
  podIPs: readonly string[];
  adopted: boolean;
  /** A pass has done something since the pod's picture was last taken. */
  stale: boolean;
  /** The last complaint of a pass, so that what goes on being wrong is told once. */
  lastError: string | undefined;
  /** For each container's name, the ended instance whose back-off has been told. */
  heldTold: Map<string, string>;
  /** Why the pod was ended. */
  endedFor: Why;
}

/** After this long the status of a failed pull goes from its error to its back-off, in milliseconds. */
const showBackOffMs = 2000;

const deadlineExceeded = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

const notTold = "the pod's state cannot be read from the runtime; nothing is done for it before it can be";

/** Brings one pod nearer to what is wanted, step by step (runtime-contract.md section 7). */
export class AgentPodSyncer implements PodSyncer {
  readonly #o: PodSyncerOptions;
  readonly #memory = new Map<string, Memory>();
  readonly #volumes: PodVolumes;

  constructor(options: PodSyncerOptions) {
    this.#o = options;
    this.#volumes = new PodVolumes(options.volumes, options.objects);
  }

  #of(uid: string): Memory {
    let memory = this.#memory.get(uid);
    if (!memory) {
      memory = {
        startErrors: new Map(),
        podIPs: [],
        adopted: false,
        stale: false,
        lastError: undefined,
        heldTold: new Map(),
        endedFor: { reason: "PodEnded", message: "the pod has ended" },
      };
      this.#memory.set(uid, memory);
    }
    return memory;
  }

  /** A new sandbox's addresses are known: probes and status need them before the pass ends. */
  noteSandbox(pod: BoundPod, ips: readonly string[]): void {
    const { statuses, clock } = this.#o;
    this.#of(pod.metadata.uid).podIPs = ips;
    const status = statuses.get(pod.metadata.uid);
    const ready = status && withSandboxReady(pod, status, clock.now());
    if (ready) statuses.set(pod, ready);
  }

  /** What the pod's volumes are made of has changed; whoever tells it also has the pod looked at. */
  volumesChanged(uid: string): void {
    this.#volumes.changed(uid);
  }

  async sync(pod: BoundPod, { signal }: { signal: AbortSignal }): Promise<SyncOutcome> {
    const { probes } = this.#o;
    const uid = pod.metadata.uid;
    // Somebody else may have ended the pod, such as the collector of pods whose node was gone.
    const ended = [this.#o.statuses.get(uid)?.phase, pod.status?.phase].find(isTerminal);
    if (ended) {
      return { terminal: { reason: "PodCompleted", message: `the pod has ${ended.toLowerCase()}` } };
    }
    const observed = await this.#newest(pod, signal);
    if (observed === undefined) return { error: notTold };
    probes.addPod(pod);
    this.#tellProbes(pod, observed);
    const actions = this.#decide(pod, observed);
    const status = this.#publish(pod, observed, { actions });
    const deadlineMs = this.#o.deadlineMs(pod, status);
    if (deadlineMs !== undefined && deadlineMs <= 0) {
      this.#o.events.pod({ pod, type: "Normal", ...deadlineExceeded });
      return { terminal: deadlineExceeded, failed: deadlineExceeded };
    }
    // With a terminal phase nothing is started any more, such as a sidecar that ended together with what it served.
    if (actions.finished || isTerminal(status.phase)) {
      return { terminal: actions.killPod ?? { reason: "PodCompleted", message: "all containers have ended" } };
    }
    const soon = (...ms: (number | undefined)[]): Pick<SyncOutcome, "againInMs"> => {
      const known = [...ms, deadlineMs, this.#volumes.retryInMs(uid)].filter((m) => m !== undefined);
      return known.length > 0 ? { againInMs: Math.max(1, Math.min(...known)) } : {};
    };
    if (!anythingToDo(actions) && this.#volumes.upToDate(pod)) {
      return soon(...actions.held.map((h) => h.remainingMs));
    }
    return await this.#act(pod, observed, actions, signal, soon);
  }

  async #act(
    pod: BoundPod,
    observed: ObservedPod,
    actions: PodActions,
    signal: AbortSignal,
    soon: (...ms: (number | undefined)[]) => Pick<SyncOutcome, "againInMs">,
  ): Promise<SyncOutcome> {
    const { events } = this.#o;
    const memory = this.#of(pod.metadata.uid);
    const networkError = pod.spec.hostNetwork ? undefined : this.#o.networkError();
    if (networkError !== undefined && anythingToDo(actions)) {
      const message = `network is not ready: ${networkError}`;
      if (memory.lastError !== message) events.pod({ pod, type: "Warning", reason: "NetworkNotReady", message });
      memory.lastError = message;
      return { error: message, ...soon(1000) };
    }
    try {
      await this.#prepare(pod, observed, actions, signal);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      return { error: this.#failedSync(pod, thrown), ...soon(undefined) };
    }
    if (!anythingToDo(actions)) return soon(...actions.held.map((h) => h.remainingMs));
    let error: string | undefined;
    let failures: ReadonlyMap<string, { reason: string; message: string }> = new Map();
    try {
      const situation: PodSituation = {
        volumes: this.#volumes.of(pod.metadata.uid),
        podIPs: this.#podIPs(pod, observed),
        status: this.#o.statuses.get(pod.metadata.uid),
      };
      memory.stale = true;
      const result = await this.#o.runner.apply(pod, observed, actions, { situation, signal });
      for (const name of result.started) memory.startErrors.delete(name);
      for (const [name, failure] of result.failures) memory.startErrors.set(name, failure);
      failures = result.failures;
      error = result.error ?? result.resizeError;
      if (result.resizeError !== undefined) this.#o.resizes?.failed(pod, result.resizeError);
      memory.lastError = undefined;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      error = this.#failedSync(pod, thrown);
    }
    if (actions.resize) this.#o.pleg.readAnew(pod.metadata.uid);
    const after = await this.#newest(pod, signal);
    if (after === undefined) return { error: error ?? notTold, ...soon(undefined) };
    this.#tellProbes(pod, after);
    const next = this.#decide(pod, after);
    this.#publish(pod, after, { actions: next });
    if (error !== undefined) return { error, ...soon(undefined) };
    if (failures.size > 0) {
      const pulls = podContainers(pod).filter((c) => failures.has(c.spec.name))
        .map(({ spec }) => ({ name: spec.name, image: spec.image ?? "" }));
      const inBackOff = new Set([...failures].filter(([, f]) => f.reason === "ImagePullBackOff").map(([name]) => name));
      // A pull that has just failed is looked at once more soon, so that the status tells of the back-off it is in.
      const held = pulls.map(({ name, image }) => {
        const ms = this.#o.images.heldMs(pod.metadata.uid, image);
        return inBackOff.has(name) ? ms : Math.min(ms, showBackOffMs);
      }).filter((ms) => ms > 0);
      const backOff = next.held.map((h) => h.remainingMs);
      return { error: "containers could not be started", ...soon(...held, ...backOff) };
    }
    // What the pass itself brought about may call for more, such as the containers after an init that was quick.
    if (anythingToDo(next)) return { againInMs: 1 };
    return soon(...next.held.map((h) => h.remainingMs));
  }

  /** Group, directories, volumes: what must be there before a container can start. */
  async #prepare(pod: BoundPod, observed: ObservedPod, actions: PodActions, signal: AbortSignal): Promise<void> {
    const { cgroups, host, log } = this.#o;
    const uid = pod.metadata.uid;
    const memory = this.#of(uid);
    if (!memory.adopted) {
      const running = observed.containers.some((c) => c.state === "running");
      if (running && !await cgroups.podExists(pod)) {
        // Containers outside the pod's group escape its limits; they are stopped before the group is made anew.
        log.warn("the pod's containers run without its control group; they are restarted in it", { podUid: uid });
        await this.#o.runner.killPod(pod, observed, {
          why: { reason: "CgroupMissing", message: "the pod's control group is missing" },
          podIP: this.#podIPs(pod, observed)[0],
          signal,
        });
      }
      if (running) await this.#o.linkLogs(pod, observed);
      memory.adopted = true;
    }
    await allOf([
      (async () => {
        await host.mkdir(this.#o.podDir(uid), { mode: 0o750 });
        await this.#volumes.mount(pod, signal);
      })(),
      this.#limit(pod, actions),
    ]);
  }

  /** The pod's group with its limits; while it is resized these are changed one by one, in their order. */
  async #limit(pod: BoundPod, { resize }: PodActions): Promise<void> {
    const { cgroups, resizes } = this.#o;
    if (resize && await cgroups.podExists(pod)) return;
    await cgroups.ensurePod(pod);
    const own = pod.spec.resources;
    if (own && resizes?.gates.podLevel) await resizes.setPod(pod, own);
  }

  async terminate(pod: BoundPod, context: TerminateContext): Promise<void> {
    const { signal, why, graceSeconds, failed } = context;
    const { pleg, probes, clock } = this.#o;
    const uid = pod.metadata.uid;
    this.#of(uid).endedFor = why;
    probes.stopLivenessAndStartup(uid);
    // The picture must be newer than whatever the pass that was called off has done.
    const known = this.#of(uid).stale ? undefined : pleg.get(uid);
    let observed = known ?? await pleg.refresh(uid, signal) ?? unobserved(pod, clock.now());
    this.#publish(pod, observed, { terminating: true, failed });
    try {
      await this.#o.runner.killPod(pod, observed, {
        why,
        podIP: this.#podIPs(pod, observed)[0],
        signal,
        graceSeconds,
      });
      observed = await pleg.refresh(uid, signal) ?? unobserved(pod, clock.now());
      const running = observed.containers.filter(isLive);
      if (running.length > 0) {
        const names = running.map((c) => c.name).join(", ");
        throw new KubeletError("Runtime", `containers that were stopped still run by the runtime's word: ${names}`);
      }
    } catch (thrown) {
      if (!signal.aborted) this.#failedKill(pod, thrown);
      throw thrown;
    }
    probes.removePod(uid);
    this.#publish(pod, observed, { terminating: true, stopped: true, failed });
  }

  async release(pod: BoundPod, { signal, removed }: { signal: AbortSignal; removed: boolean }): Promise<void> {
    const uid = pod.metadata.uid;
    const memory = this.#of(uid);
    const because = { pod: podRef(pod), ...memory.endedFor };
    await allOf([
      noted(this.#o, because, "its volumes are being unmounted", () => this.#volumes.unmount(uid, signal)),
      noted(this.#o, because, "its control group is being removed", () => this.#o.cgroups.destroyPod(uid)),
    ]);
    const status = this.#o.statuses.get(uid);
    if (status) {
      // Nothing of the pod runs and nothing will: one whose containers do not tell how it ended has failed.
      const ended = removed ? status : terminatedStatus(pod, status);
      const last = removed || isTerminal(ended.phase) ? ended : { ...ended, phase: "Failed" };
      this.#o.statuses.set(pod, last, { finished: true });
    }
  }

  async purge(
    pod: BoundPod,
    { signal, comesAgain = false }: { signal: AbortSignal; comesAgain?: boolean },
  ): Promise<void> {
    const { pleg, host, clock } = this.#o;
    const uid = pod.metadata.uid;
    // Since the pod was stopped nothing was made for it: the picture taken then is as good as a new one.
    const observed = pleg.get(uid) ?? await pleg.refresh(uid, signal) ?? unobserved(pod, clock.now());
    const why = { reason: "PodRemoved", message: "nobody wants the pod any more" };
    // First of all: an end that was kept must not outlive the pod and stand in the way of a new one with its UID.
    this.#o.statuses.remove(uid);
    await this.#o.removeLogLinks(pod, observed);
    const because = { pod: podRef(pod), ...why };
    await noted(this.#o, because, "its directory is being removed", () => host.removeTree(this.#o.podDir(uid)));
    if (!comesAgain) {
      const logDir = this.#o.logDir(pod);
      if (logDir !== undefined) await host.removeTree(logDir);
      // Last of all: by what the runtime has an agent that comes after a kill knows that there is something to do.
      await this.#o.runner.removePod(pod, observed, why, signal);
    }
    await pleg.refresh(uid, signal);
    this.#memory.delete(uid);
    this.#o.onGone(uid);
  }

  #decide(pod: BoundPod, observed: ObservedPod): PodActions {
    const { clock, probes, backoff, resizes } = this.#o;
    return decide({
      ...(resizes ? { resize: resizes.view(pod.metadata.uid) } : {}),
      pod,
      observed,
      now: clock.now(),
      probes: (id) => probes.results(id),
      backOff: (key, since) => backoff.remaining(key, since),
    });
  }

  /** Makes the pod's status from the picture and publishes it; the answer has the phase that the pod has come to. */
  #publish(pod: BoundPod, observed: ObservedPod, situation: {
    actions?: PodActions;
    terminating?: boolean;
    stopped?: boolean;
    failed?: ForcedEnd | undefined;
  }): PodStatus {
    const uid = pod.metadata.uid;
    const previous = this.#o.statuses.get(uid);
    if (situation.actions) this.#o.resizes?.observe(pod, observed);
    const computed = this.#o.status(pod, observed, {
      previous,
      startErrors: this.#of(uid).startErrors,
      actions: situation.actions,
      terminating: situation.terminating ?? false,
      stopped: situation.stopped ?? false,
      failed: situation.failed,
      podIPs: this.#podIPs(pod, observed),
    });
    // No end is told while a container may run, such as the sidecar of a pod whose init container has failed; nor before
    // all is stopped, for what ends the pod may have more to say of it than its containers.
    const underWay = (situation.terminating ?? false) && !(situation.stopped ?? false);
    const early = isTerminal(computed.phase) && !isTerminal(previous?.phase) &&
      (underWay || observed.containers.some(isLive));
    this.#o.statuses.set(pod, early ? { ...computed, phase: previous?.phase ?? "Pending" } : computed);
    this.#tellHeld(pod, observed, situation.actions);
    return computed;
  }

  /** Tells of each end of a container that its back-off keeps it from starting, once. */
  #tellHeld(pod: BoundPod, observed: ObservedPod, actions: PodActions | undefined): void {
    const { heldTold } = this.#of(pod.metadata.uid);
    for (const container of podContainers(pod)) {
      const { name } = container.spec;
      const ended = newest(observed, name)?.id ?? "";
      if (!actions?.held.some((h) => h.name === name) || heldTold.get(name) === ended) continue;
      heldTold.set(name, ended);
      const message = `Back-off restarting failed container ${name} in pod ${podText(pod)}`;
      this.#o.events.pod({ pod, type: "Warning", reason: "BackOff", message, fieldPath: containerPath(container) });
    }
  }

  #podIPs(pod: BoundPod, observed: ObservedPod): readonly string[] {
    if (pod.spec.hostNetwork) return this.#o.nodeIPs;
    const sandbox = observed.sandboxes[0];
    const memory = this.#of(pod.metadata.uid);
    if (sandbox?.ready && sandbox.ips.length > 0) memory.podIPs = sandbox.ips;
    return memory.podIPs;
  }

  #tellProbes(pod: BoundPod, observed: ObservedPod): void {
    const targets = new Map<string, ProbeTarget>();
    const status = this.#o.statuses.get(pod.metadata.uid);
    const statuses = [...status?.initContainerStatuses ?? [], ...status?.containerStatuses ?? []];
    for (const { spec } of podContainers(pod)) {
      const container = newest(observed, spec.name);
      if (!container) continue;
      const { id, startedAt, state } = container;
      const carried = statuses.find((s) => s.name === spec.name && s.containerID?.endsWith(`://${id}`));
      targets.set(spec.name, {
        containerId: id,
        startedAt,
        running: state === "running",
        ...(carried?.started === undefined ? {} : { started: carried.started }),
        ...(carried ? { ready: carried.ready } : {}),
      });
    }
    this.#o.probes.observe(pod.metadata.uid, this.#podIPs(pod, observed)[0], targets);
  }

  /**
   * The picture that a pass goes by. It must be newer than whatever the last pass has done: by an older one that pass
   * would be done once more, and a container started twice. A pod without a picture may still have containers that a
   * relist could not read. Undefined when the runtime cannot be asked now.
   */
  async #newest(pod: BoundPod, signal: AbortSignal): Promise<ObservedPod | undefined> {
    const uid = pod.metadata.uid;
    const memory = this.#of(uid);
    const known = this.#o.pleg.get(uid);
    if (known && !memory.stale) return known;
    try {
      const observed = await this.#o.pleg.refresh(uid, signal) ?? unobserved(pod, this.#o.clock.now());
      memory.stale = false;
      return observed;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#o.log.warn(notTold, { podUid: uid, error: messageOf(thrown) });
      return undefined;
    }
  }

  /** Tells that the pod could not be ended this time; what goes on being wrong is told once. */
  #failedKill(pod: BoundPod, thrown: unknown): void {
    const memory = this.#of(pod.metadata.uid);
    const message = `error killing pod: ${messageOf(thrown)}`;
    if (memory.lastError === message) return;
    memory.lastError = message;
    this.#o.events.pod({ pod, type: "Warning", reason: "FailedKillPod", message });
  }

  #failedSync(pod: BoundPod, thrown: unknown): string {
    const message = messageOf(thrown);
    const memory = this.#of(pod.metadata.uid);
    if (memory.lastError === message) return message;
    memory.lastError = message;
    this.#o.log.error("the pod cannot be brought on", { pod: podFullName(pod), error: message });
    // Each of the volumes had a FailedMount.
    if (!(thrown instanceof VolumesNotMounted && thrown.told)) {
      this.#o.events.pod({ pod, type: "Warning", reason: "FailedSync", message: `error syncing pod: ${message}` });
    }
    return message;
  }
}

/** True when carrying out the actions would change anything. */
function anythingToDo(actions: PodActions): boolean {
  return actions.killPod !== undefined || actions.resetContainers !== undefined ||
    actions.createSandbox !== undefined || actions.resize !== undefined ||
    actions.kill.length > 0 || actions.remove.length > 0 || actions.start.length > 0;
}
