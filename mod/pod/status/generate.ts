import { podContainers } from "../../kube/pod.ts";
import type { BoundPod, ContainerState, ContainerStatus, PodCondition, PodStatus } from "../../kube/types.ts";
import { canRestartAll, restartAllSource } from "../decide/restart.ts";
import { withResources } from "../resize/allocation.ts";
import { sandboxVerdict } from "../decide/sandbox.ts";
import type { ObservedPod } from "../observed.ts";
import { qosClass } from "../resources.ts";
import {
  allContainersRestarting,
  type ConditionsInput,
  isOwnCondition,
  ownConditions,
  type Verdict,
} from "./conditions.ts";
import { podResources } from "./container_resources.ts";
import { containerStatuses } from "./containers.ts";
import type { StatusInput } from "./input.ts";
import { podIPs } from "./ips.ts";
import { isTerminal, type Phase, phaseOf } from "./phase.ts";
import { stamp } from "./time.ts";
import { illegalTransition } from "./transition.ts";

/** Bytes of termination messages that one pod's status may hold (runtime-contract.md section 3). */
const messageBudget = 12_288;

/** True when some regular container was made in the sandbox that is in use. */
function initialisedInSandbox(pod: BoundPod, observed: ObservedPod): boolean {
  const sandbox = observed.sandboxes[0];
  if (!sandbox?.ready) return false;
  return observed.containers.some((c) =>
    c.sandboxId === sandbox.id && pod.spec.containers.some((spec) => spec.name === c.name)
  );
}

/** Sets the condition's times and generation: a transition is a change of status. */
function timed(input: StatusInput, found: Verdict, previous: readonly PodCondition[]): PodCondition {
  const old = previous.find((c) => c.type === found.type);
  const { type, status, reason, message } = found;
  const generation = input.pod.metadata.generation ?? 0;
  return {
    type,
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    status,
    lastTransitionTime: (old?.status === status ? old.lastTransitionTime : undefined) ?? stamp(input.now),
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
  };
}

const utf8 = new TextEncoder();
const fromUtf8 = new TextDecoder();

/** The text's first `bytes` bytes, without a character that would be cut in two. */
function cut(text: string, bytes: number): string {
  const all = utf8.encode(text);
  if (all.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && ((all[end] ?? 0) & 0xc0) === 0x80) end--;
  return fromUtf8.decode(all.subarray(0, end));
}

function withinBudget(status: ContainerStatus, bytes: number): ContainerStatus {
  const shorten = (state: ContainerState | undefined): ContainerState => {
    const message = state?.terminated?.message;
    if (!state?.terminated || message === undefined) return state ?? {};
    return { ...state, terminated: { ...state.terminated, message: cut(message, bytes) } };
  };
  return { ...status, state: shorten(status.state), lastState: shorten(status.lastState) };
}

function rejectedStatus(input: StatusInput, previous: PodStatus): PodStatus {
  const { pod, rejected, now } = input;
  const generation = pod.metadata.generation ?? 0;
  return {
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    phase: "Failed",
    message: `Pod was rejected: ${rejected?.message ?? ""}`,
    reason: rejected?.reason ?? "",
    startTime: previous.startTime ?? stamp(now),
    qosClass: qosClass(pod),
  };
}

/** The phase with what stands above the containers' states: a forced end, and a terminal phase reported before. */
function finalPhase(input: StatusInput, found: Phase, previous: PodStatus): Phase {
  const reported = [input.pod.status?.phase, previous.phase].find(isTerminal);
  if (reported) return reported;
  return input.forced ? "Failed" : found;
}

/** The status before it is checked against the last one; see `generateStatus`. Throws BadPod on a bad quantity. */
export function draftStatus(input: StatusInput): PodStatus {
  const { pod, observed, forced } = input;
  const previous = input.previous ?? pod.status ?? {};
  if (input.rejected) return rejectedStatus(input, previous);
  const before = previous.conditions ?? [];
  const resetAsked = restartAllSource(pod, observed) !== undefined;
  const resetting = resetAsked ||
    before.some((c) => c.type === "AllContainersRestarting" && c.status === "True");
  const context = { input, resetting };
  const containers = podContainers(pod);
  const budget = Math.floor(messageBudget / Math.max(1, containers.length));
  const of = (kind: string, old: readonly ContainerStatus[] | undefined) =>
    containerStatuses(context, containers.filter((c) => c.kind === kind), old).map((s) => withinBudget(s, budget));
  const byName = (list: ContainerStatus[]) => list.sort((a, b) => a.name < b.name ? -1 : 1);
  const init = of("init", previous.initContainerStatuses);
  const regular = byName(of("regular", previous.containerStatuses));
  const ephemeral = byName(of("ephemeral", previous.ephemeralContainerStatuses));

  const statuses = [...init, ...regular];
  const initialised = initialisedInSandbox(pod, observed);
  const found = phaseOf({ pod, statuses, terminating: input.terminating, initialised });
  const phase = finalPhase(input, found, previous);
  // An end that somebody else has set keeps the words it was set with.
  const last = phase === previous.phase ? previous : isTerminal(pod.status?.phase) ? {} : undefined;
  const kept = last ? { reason: last.reason || pod.status?.reason, message: last.message || pod.status?.message } : {};
  const { reason, message } = forced && !isTerminal(previous.phase) ? forced : kept;

  const foreign = (pod.status?.conditions ?? []).filter((c) =>
    !isOwnCondition(c.type) && c.type !== "DisruptionTarget"
  );
  const conditionsInput: ConditionsInput = {
    pod,
    statuses,
    phase,
    previous: before,
    foreign,
    sandboxNeeded: input.createSandboxNeeded ?? sandboxVerdict(pod, observed).needed,
  };
  const own = ownConditions(conditionsInput);
  // The container that asks for a reset is removed last, so that its end is the end of the reset.
  if (canRestartAll(pod)) own.push(allContainersRestarting(phase, resetAsked));
  const disruption = disruptionTarget(input, before);
  const { gates, actuated } = input.resize ?? {};
  const actual = gates && actuated ? withResources(pod, actuated, gates) : pod;
  const resizes = isTerminal(phase) ? [] : input.resizes ?? [];
  const generation = pod.metadata.generation ?? 0;
  return {
    ...(generation > 0 ? { observedGeneration: Math.max(generation, previous.observedGeneration ?? 0) } : {}),
    phase,
    conditions: [...foreign, ...resizes, ...disruption, ...own.map((v) => timed(input, v, before))],
    ...(message ? { message } : {}),
    ...(reason ? { reason } : {}),
    ...(input.hostIPs[0] === undefined
      ? {}
      : { hostIP: input.hostIPs[0], hostIPs: input.hostIPs.slice(0, 2).map((ip) => ({ ip })) }),
    ...podIPs(input, previous),
    startTime: previous.startTime ?? stamp(input.now),
    ...(init.length > 0 ? { initContainerStatuses: init } : {}),
    ...(regular.length > 0 ? { containerStatuses: regular } : {}),
    qosClass: qosClass(pod),
    ...(ephemeral.length > 0 ? { ephemeralContainerStatuses: ephemeral } : {}),
    ...podResources(pod, actual),
  };
}

function disruptionTarget(input: StatusInput, before: readonly PodCondition[]): PodCondition[] {
  const message = input.forced?.disruption;
  const old = before.find((c) => c.type === "DisruptionTarget");
  if (message === undefined) return old ? [old] : [];
  return [timed(input, { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet", message }, before)];
}

/**
 * The status to report for a pod (runtime-contract.md sections 13 to 15). A phase that is Succeeded or Failed is never
 * left, restart counts never go down, and when a container would leave its end without the right to, the whole of it is
 * dropped and the last status comes back; `illegalTransition(pod, previous, draftStatus(input))` tells why. Throws
 * BadPod on a quantity that can't be read.
 */
export function generateStatus(input: StatusInput): PodStatus {
  const draft = draftStatus(input);
  const previous = input.previous ?? input.pod.status;
  return previous && illegalTransition(input.pod, previous, draft) !== undefined ? previous : draft;
}
