import { isStatic } from "../../kube/pod.ts";
import type { BoundPod, Container, ContainerStatus, PodCondition, PodStatus } from "../../kube/types.ts";
import { canRestartAll, restartsAfterExit } from "../decide/restart.ts";
import { endedReason, isOwnCondition } from "./conditions.ts";
import { lost, lostText } from "./containers.ts";
import { isTerminal } from "./phase.ts";
import { stamp } from "./time.ts";

/**
 * Why the step from one status to the next is not allowed, or undefined when it is: a container that has ended and has
 * no right to restart may not be anything else (runtime-contract.md section 14). Such an update is dropped whole.
 */
export function illegalTransition(pod: BoundPod, from: PodStatus, to: PodStatus): string | undefined {
  const { spec } = pod;
  if ((spec.restartPolicy ?? "Always") === "Always" || canRestartAll(pod)) return undefined;
  const check = (
    what: string,
    specs: readonly Container[],
    olds: readonly ContainerStatus[] = [],
    news: readonly ContainerStatus[] = [],
  ) => {
    for (const old of olds) {
      const ended = old.state?.terminated;
      const container = specs.find((c) => c.name === old.name);
      if (!ended || !container || restartsAfterExit(pod, container, ended.exitCode)) continue;
      const next = news.find((s) => s.name === old.name);
      if (next && !next.state?.terminated) {
        return `terminated ${what} ${old.name} attempted illegal transition to non-terminated state`;
      }
    }
    return undefined;
  };
  return check("container", spec.containers, from.containerStatuses, to.containerStatuses) ??
    check("init container", spec.initContainers ?? [], from.initContainerStatuses, to.initContainerStatuses);
}

function hasBegun(status: ContainerStatus): boolean {
  return status.lastState?.terminated !== undefined || !status.state?.waiting;
}

/** True when there is evidence that the regular containers of the pod were started or were about to be. */
function wasInitialised(pod: BoundPod, status: PodStatus): boolean {
  const inits = pod.spec.initContainers ?? [];
  const last = inits.at(-1);
  if (!last || status.containerStatuses?.some(hasBegun)) return true;
  const reported = status.initContainerStatuses?.find((s) => s.name === last.name);
  if (last.restartPolicy === "Always") return reported?.state?.running !== undefined && reported.started === true;
  return [reported?.state, reported?.lastState].some((state) => state?.terminated?.exitCode === 0);
}

/**
 * The last status of a pod whose containers are all gone (section 10, terminated): whatever has no end counts as lost,
 * and the phase becomes Failed unless it is terminal. The phase of a static pod is left as it is. Init containers that
 * never began after the last one that did are left alone.
 */
export function terminatedStatus(pod: BoundPod, status: PodStatus): PodStatus {
  const ended = (s: ContainerStatus): ContainerStatus =>
    s.state?.terminated ? s : { ...s, state: { terminated: lost(lostText) }, ready: false, started: false };
  const inits = status.initContainerStatuses ?? [];
  const begun = Math.max(inits.findLastIndex(hasBegun), 0);
  return {
    ...status,
    ...(isStatic(pod) || isTerminal(status.phase) ? {} : { phase: "Failed" }),
    ...(status.initContainerStatuses ? { initContainerStatuses: inits.map((s, i) => i <= begun ? ended(s) : s) } : {}),
    ...(status.containerStatuses && wasInitialised(pod, status)
      ? { containerStatuses: status.containerStatuses.map(ended) }
      : {}),
  };
}

/** What `mergeStatus` joins. */
export interface MergeInput {
  readonly pod: BoundPod;
  /** The status that the API server has. */
  readonly reported: PodStatus;
  /** The status that this agent has made. */
  readonly next: PodStatus;
  /** True while containers of the pod may run, or hold what only the kubelet gives back. */
  readonly mayRun: boolean;
  /** Wall time, milliseconds. */
  readonly now: number;
}

/**
 * The status to write to the API server (sections 13 and 14): conditions of others are kept; a terminal phase, and the
 * DisruptionTarget condition with it, is held back while containers may run; a terminal phase is never reported ready.
 */
export function mergeStatus({ pod, reported, next, mayRun, now }: MergeInput): PodStatus {
  const ending = !isTerminal(reported.phase) && isTerminal(next.phase);
  const held = ending && mayRun;
  const before = reported.conditions ?? [];
  const disruption = ending && !mayRun ? next.conditions?.find((c) => c.type === "DisruptionTarget") : undefined;
  let conditions: PodCondition[] = [
    ...before.filter((c) => !isOwnCondition(c.type) && !(disruption && c.type === "DisruptionTarget")),
    ...(disruption ? [disruption] : []),
    ...(next.conditions ?? []).filter((c) => isOwnCondition(c.type)),
  ];
  const phase = held ? reported.phase : next.phase;
  if (isTerminal(phase)) {
    const reason = endedReason(phase);
    const isReady = (c: PodCondition) => (c.type === "Ready" || c.type === "ContainersReady") && c.status === "True";
    conditions = conditions.map((c) => {
      if (!isReady(c)) return c;
      const { message: _, ...rest } = c;
      const old = before.find(({ type, status }) => type === c.type && status === "False");
      return { ...rest, status: "False", reason, lastTransitionTime: old?.lastTransitionTime ?? stamp(now) };
    });
  }
  const { phase: _phase, reason: _reason, message: _message, conditions: _conditions, ...rest } = next;
  const { reason, message } = held ? reported : next;
  const generation = pod.metadata.generation ?? 0;
  return {
    ...rest,
    ...(generation > 0 ? { observedGeneration: Math.max(generation, reported.observedGeneration ?? 0) } : {}),
    ...(phase === undefined ? {} : { phase }),
    conditions,
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
    // Set by the scheduler and the resource claim controller; never ours.
    ...(reported.resourceClaimStatuses ? { resourceClaimStatuses: reported.resourceClaimStatuses } : {}),
    ...(reported.extendedResourceClaimStatus
      ? { extendedResourceClaimStatus: reported.extendedResourceClaimStatus }
      : {}),
  };
}
