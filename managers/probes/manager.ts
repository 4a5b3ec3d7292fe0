import type { RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { isSidecar, type PodContainer, podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, Probe } from "../../mod/kube/types.ts";
import { ContainerProbes } from "./container.ts";
import { createProber, type Dialers } from "./prober.ts";
import { probeSettings } from "./settings.ts";
import type { ProbeManager, ProbeTarget, ProbeType, ProbeUpdate } from "./types.ts";
import { ProbeWorker } from "./worker.ts";

/** One run of a probe as metrics count it. */
export interface ProbeSample {
  readonly pod: BoundPod;
  readonly container: string;
  readonly type: ProbeType;
  readonly ok: boolean;
  readonly tookMs: number;
}

export interface ProbeManagerOptions {
  readonly runtime: Pick<RuntimeService, "execSync">;
  readonly dial: Dialers;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: EventSink;
  /** When the agent started, milliseconds since the epoch. */
  readonly startedAt: number;
  /** Called each time a container's result changes. Must not throw. */
  readonly onUpdate: (update: ProbeUpdate) => void;
  /** Called for each run that had a result; for metrics. */
  readonly onSample?: (sample: ProbeSample) => void;
}

interface PodProbes {
  pod: BoundPod;
  podIP: string | undefined;
  terminating: boolean;
  readonly containers: Map<string, ContainerProbes>;
  /** What each container's probes were made from. */
  readonly definitions: Map<string, string>;
}

/** A container's probes by type; an init container has none unless it is a sidecar (section 18). */
function probesOf(container: PodContainer): [ProbeType, Probe][] {
  if (container.kind === "ephemeral" || (container.kind === "init" && !isSidecar(container))) return [];
  const { startupProbe, readinessProbe, livenessProbe } = container.spec;
  const all = [["startup", startupProbe], ["readiness", readinessProbe], ["liveness", livenessProbe]] as const;
  return all.flatMap(([type, probe]): [ProbeType, Probe][] => probe ? [[type, probe]] : []);
}

/**
 * Runs the pods' probes (runtime-contract.md section 18). For a pod call `addPod`, then `observe` with what the
 * runtime says, and only then ask for `results`: what is carried over from an earlier agent is known from `observe` on.
 * For a pod on the host network `podIP` is the node's address.
 */
export function createProbeManager(options: ProbeManagerOptions): ProbeManager & AsyncDisposable {
  const { clock, random, log, startedAt } = options;
  const prober = createProber(options);
  const scope = new Scope("probes", {
    onFailure: (error, task) => log.error("Probe task failed", { task, error: error.message }),
  });
  const pods = new Map<string, PodProbes>();
  const byContainerId = new Map<string, ContainerProbes>();

  function makeWorker(
    entry: PodProbes,
    probes: ContainerProbes,
    container: PodContainer,
    [type, probe]: [ProbeType, Probe],
  ): ProbeWorker {
    const settings = probeSettings(probe);
    const now = clock.now();
    // A young agent meets all its pods at once: spread their first probes over the period.
    const young = now - startedAt < settings.periodMs;
    return new ProbeWorker({
      clock,
      settings,
      firstTick: young ? now + random() * settings.periodMs : now,
      gate: () => type === "startup" || probes.started(),
      spawn: (run) => scope.spawn(`${type}/${container.spec.name}`, run),
      onResult: (ok, message) => probes.result(type, ok, message),
      async start({ containerId, signal }) {
        const { pod, podIP } = entry;
        const began = clock.now();
        try {
          const outcome = await prober({ type, pod, container, containerId, podIP, probe, signal });
          if (outcome) {
            const tookMs = clock.now() - began;
            options.onSample?.({ pod, container: container.spec.name, type, ok: outcome.ok, tookMs });
          }
          return outcome;
        } catch (thrown) {
          // Called off: the container is gone or no longer probed. Any other fault must not end the probing.
          if (!isAborted(thrown) && !signal.aborted) {
            log.error("Probe failed to run", { probeType: type, containerId, error: messageOf(thrown) });
          }
          return undefined;
        }
      },
    });
  }

  function addContainer(entry: PodProbes, container: PodContainer, list: [ProbeType, Probe][]): void {
    const { name } = container.spec;
    const podUid = entry.pod.metadata.uid;
    const probes = new ContainerProbes({
      agentStartedAt: startedAt,
      now: () => clock.now(),
      onChange: ({ type, containerId, ok, message }) => {
        log.detail(2, "Probe result changed", { probeType: type, podUid, containerName: name, containerId, ok });
        options.onUpdate({ podUid, container: name, containerId, type, ok, message });
      },
    });
    for (const item of list) probes.add(item[0], makeWorker(entry, probes, container, item));
    entry.containers.set(name, probes);
  }

  function forget(probes: ContainerProbes): void {
    const id = probes.containerId;
    if (id !== undefined && byContainerId.get(id) === probes) byContainerId.delete(id);
  }

  return {
    addPod(pod) {
      const { uid } = pod.metadata;
      const entry = pods.get(uid) ??
        { pod, podIP: undefined, terminating: false, containers: new Map(), definitions: new Map() };
      if (pod === entry.pod && pods.has(uid)) return;
      entry.pod = pod;
      if (entry.terminating) return;
      for (const container of podContainers(pod)) {
        const list = probesOf(container);
        const { name, ports } = container.spec;
        const definition = JSON.stringify([list, ports]);
        const probes = entry.containers.get(name);
        if (probes && entry.definitions.get(name) === definition) continue;
        // A pod that was defined anew under its UID is probed by its new definition.
        if (probes) {
          forget(probes);
          probes.stop();
          entry.containers.delete(name);
        }
        if (list.length === 0) continue;
        entry.definitions.set(name, definition);
        addContainer(entry, container, list);
      }
      if (entry.containers.size > 0) pods.set(uid, entry);
    },

    observe(podUid, podIP, targets: ReadonlyMap<string, ProbeTarget>) {
      const entry = pods.get(podUid);
      if (!entry) return;
      entry.podIP = podIP;
      for (const [name, probes] of entry.containers) {
        const target = targets.get(name);
        if (target && target.containerId !== probes.containerId) forget(probes);
        probes.observe(target);
        if (probes.containerId !== undefined) byContainerId.set(probes.containerId, probes);
      }
    },

    stopLivenessAndStartup(podUid) {
      const entry = pods.get(podUid);
      if (!entry) return;
      entry.terminating = true;
      for (const probes of entry.containers.values()) probes.stopLivenessAndStartup();
    },

    removePod(podUid) {
      const entry = pods.get(podUid);
      if (!entry) return;
      pods.delete(podUid);
      for (const probes of entry.containers.values()) {
        forget(probes);
        probes.stop();
      }
    },

    results: (containerId) => byContainerId.get(containerId)?.view ?? {},

    async [Symbol.asyncDispose]() {
      for (const entry of pods.values()) {
        for (const probes of entry.containers.values()) probes.stop();
      }
      pods.clear();
      byContainerId.clear();
      await scope.close();
    },
  };
}
