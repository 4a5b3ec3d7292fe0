import { isSidecar, type PodContainer } from "../../kube/pod.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { DecideInput, KillContainer, Why } from "../actions.ts";
import { newest, type ObservedContainer, type ObservedPod } from "../observed.ts";
import type { Wanted } from "./backoff.ts";
import { needsRestart } from "../resize/needs.ts";
import { definitionChanged, kill, killForResize, killWhenUnknown } from "./kills.ts";
import { restartsAfterKill, shouldStart } from "./restart.ts";

/** What the init containers of a pod need (runtime-contract.md section 7). */
export interface InitVerdict {
  /** True when the regular containers may be looked at. */
  readonly initialised: boolean;
  /** Why the pod has failed for good, when an init container failed and may not be started again. */
  readonly failed?: Why;
  readonly kill: readonly KillContainer[];
  readonly wanted: readonly Wanted[];
}

/** What one init container asks for, given its newest instance. */
interface Step {
  /** It has done its part: the next one may start. */
  readonly done?: boolean;
  readonly failed?: Why;
  readonly kill?: KillContainer;
  readonly start?: Why;
}

/** True when some regular container was made, which it is only after every init container has done its part. */
export function anyRegularMade(pod: BoundPod, observed: ObservedPod, states: readonly string[]): boolean {
  return pod.spec.containers.some((c) => {
    const latest = newest(observed, c.name);
    return latest !== undefined && states.includes(latest.state);
  });
}

function runningSidecar(input: DecideInput, container: PodContainer, instance: ObservedContainer): Step {
  const { spec } = container;
  const probes = input.probes(instance.id);
  const label = `Init container ${spec.name}`;
  if (spec.startupProbe && probes.startup !== true) {
    if (probes.startup === undefined) return {};
    const step = kill(instance, "StartupProbe", `${label} failed startup probe`, true, "startup");
    return { kill: step, start: { reason: "StartupProbe", message: step.message } };
  }
  const changed = definitionChanged(spec, instance);
  if (!changed && !(spec.livenessProbe && probes.liveness === false)) {
    if (!needsRestart(input.pod, spec, instance, input.resize)) return { done: true };
    const restart = killForResize(instance);
    return { done: true, kill: restart, start: { reason: restart.reason, message: restart.message } };
  }
  const step = changed
    ? kill(instance, "DefinitionChanged", `${label} definition changed`, true)
    : kill(instance, "LivenessProbe", `${label} failed liveness probe`, true, "liveness");
  return { done: true, kill: step, start: { reason: step.reason, message: step.message } };
}

function failed(name: string, how: string): Why {
  return { reason: "InitContainerFailed", message: `init container ${name} ${how} and may not be started again` };
}

function exitedInit(input: DecideInput, { spec }: PodContainer, instance: ObservedContainer): Step {
  const how = instance.reason === "OOMKilled" ? "ran out of memory" : `exited with code ${instance.exitCode}`;
  if (instance.exitCode === 0 && instance.reason !== "OOMKilled") return { done: true };
  if (!shouldStart(input.pod, spec, instance)) return { failed: failed(spec.name, how) };
  return { start: { reason: "InitContainerFailed", message: `init container ${spec.name} ${how}` } };
}

function step(input: DecideInput, container: PodContainer, instance: ObservedContainer): Step {
  const { spec } = container;
  const sidecar = isSidecar(container);
  switch (instance.state) {
    case "created":
      return { start: { reason: "NeverStarted", message: `init container ${spec.name} was created but not started` } };
    case "running":
      return sidecar ? runningSidecar(input, container, instance) : {};
    case "exited":
      if (!sidecar) return exitedInit(input, container, instance);
      return { start: { reason: "SidecarExited", message: `sidecar ${spec.name} exited, it is kept running` } };
    case "unknown":
      if (!sidecar && !restartsAfterKill(input.pod, spec)) {
        return { failed: failed(spec.name, "is in a state that the runtime doesn't know") };
      }
      return {
        kill: killWhenUnknown(instance, "Init container"),
        start: { reason: "StateUnknown", message: `the state of init container ${spec.name} was unknown` },
      };
  }
}

/**
 * Looks at the init containers from last to first, because those that ended early may be gone from the runtime: the
 * last one that is still known tells how far the pod has come. Everything before it has done its part, so that of
 * those only sidecars matter, which are kept running.
 */
export function initVerdict(input: DecideInput): InitVerdict {
  const { pod, observed } = input;
  const inits = (pod.spec.initContainers ?? []).map((spec) => ({ kind: "init" as const, spec }));
  const last = inits.length - 1;
  if (last < 0) return { initialised: true, kill: [], wanted: [] };
  let initialised = anyRegularMade(pod, observed, ["created", "running"]);
  let passed = initialised;
  const kills: KillContainer[] = [];
  const starts = new Map<number, Why>();
  for (let i = last; i >= 0; i--) {
    const container = inits[i];
    if (!container) continue;
    const instance = newest(observed, container.spec.name);
    if (passed && !isSidecar(container)) continue;
    if (!instance) {
      if (passed) starts.set(i, { reason: "SidecarMissing", message: `sidecar ${container.spec.name} is gone` });
      continue;
    }
    const it = step(input, container, instance);
    if (it.failed) return { initialised: false, failed: it.failed, kill: [], wanted: [] };
    if (it.kill) kills.push(it.kill);
    if (it.start) starts.set(i, it.start);
    if (it.done && i === last) initialised = true;
    else if (it.done && !passed) {
      starts.set(i + 1, { reason: "NextInitContainer", message: `init container ${container.spec.name} is done` });
    }
    passed = true;
  }
  if (!passed) starts.set(0, { reason: "FirstInitContainer", message: "no init container has been started yet" });
  const wanted = inits.flatMap((container, i) => {
    const why = starts.get(i);
    return why ? [{ container, why }] : [];
  });
  return { initialised, kill: kills, wanted };
}
