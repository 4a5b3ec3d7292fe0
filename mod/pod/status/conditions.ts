import { isSidecar, podContainers } from "../../kube/pod.ts";
import type { BoundPod, ContainerStatus, PodCondition } from "../../kube/types.ts";
import type { Phase } from "./phase.ts";

/** A condition before its times are set. */
export type Verdict = Pick<PodCondition, "type" | "status" | "reason" | "message">;

/** What the kubelet's own conditions are found from. */
export interface ConditionsInput {
  readonly pod: BoundPod;
  /** Statuses of init and regular containers. */
  readonly statuses: readonly ContainerStatus[];
  readonly phase: Phase;
  /** The conditions reported last. */
  readonly previous: readonly PodCondition[];
  /** The conditions that others own, for readiness gates. */
  readonly foreign: readonly PodCondition[];
  readonly sandboxNeeded: boolean;
}

const owned = new Set([
  "PodScheduled",
  "Ready",
  "Initialized",
  "ContainersReady",
  "PodResizeInProgress",
  "PodResizePending",
  "PodReadyToStartContainers",
  "AllContainersRestarting",
]);

/** True for condition types that only the kubelet sets; all others are kept as they are. */
export function isOwnCondition(type: string): boolean {
  return owned.has(type);
}

function verdict(type: string, ok: boolean, reason?: string, message?: string): Verdict {
  return { type, status: ok ? "True" : "False", ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}

/** `containers with <what> status: [a b]` for each list that is not empty, joined as the contract says. */
function listed(lists: Record<string, readonly string[]>): string {
  return Object.entries(lists).filter(([, names]) => names.length > 0)
    .map(([what, names]) => `containers with ${what} status: [${names.join(" ")}]`).join(", ");
}

/** Reason of the ready conditions of a pod that has ended. */
export function endedReason(phase: "Succeeded" | "Failed"): "PodCompleted" | "PodFailed" {
  return phase === "Succeeded" ? "PodCompleted" : "PodFailed";
}

/** ContainersReady (runtime-contract.md section 14). */
export function containersReady({ pod, statuses, phase }: ConditionsInput): Verdict {
  const type = "ContainersReady";
  const counted = podContainers(pod).filter((c) => c.kind === "regular" || isSidecar(c)).map((c) => c.spec.name);
  const ready = new Map(statuses.map((s) => [s.name, s.ready]));
  const unknown = counted.filter((name) => !ready.has(name));
  const unready = counted.filter((name) => ready.get(name) === false);
  if ((phase === "Succeeded" && unknown.length === 0) || phase === "Failed") {
    return verdict(type, false, endedReason(phase));
  }
  const message = listed({ unknown, unready });
  return message === "" ? verdict(type, true) : verdict(type, false, "ContainersNotReady", message);
}

/** Ready: as ContainersReady, and then every readiness gate. */
export function podReady(input: ConditionsInput): Verdict {
  const { status, reason, message } = containersReady(input);
  if (status !== "True") return verdict("Ready", false, reason, message);
  const faults = (input.pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const name = JSON.stringify(conditionType);
    const gate = input.foreign.find((c) => c.type === conditionType);
    if (!gate) return [`corresponding condition of pod readiness gate ${name} does not exist.`];
    return gate.status === "True" ? [] : [`the status of pod readiness gate ${name} is not "True", but ${gate.status}`];
  });
  return faults.length === 0
    ? verdict("Ready", true)
    : verdict("Ready", false, "ReadinessGatesNotReady", faults.join(", "));
}

/** Initialized: every init container is done or, as a sidecar, started; or some regular container has started. */
export function initialized({ pod, statuses, phase, previous }: ConditionsInput): Verdict {
  const type = "Initialized";
  const inits = podContainers(pod).filter((c) => c.kind === "init");
  const byName = new Map(statuses.map((s) => [s.name, s]));
  const unknown = inits.filter((c) => !byName.has(c.spec.name)).map((c) => c.spec.name);
  if (phase === "Succeeded" && unknown.length === 0) return verdict(type, true, "PodCompleted");
  const begun = pod.spec.containers.some((c) => {
    const state = byName.get(c.name)?.state;
    return state?.running !== undefined || state?.terminated !== undefined;
  });
  if (begun) return verdict(type, true);
  const incomplete = inits.filter((c) => {
    const status = byName.get(c.spec.name);
    return status !== undefined && !(isSidecar(c) ? status.started === true : status.ready);
  }).map((c) => c.spec.name);
  const message = listed({ unknown, incomplete });
  // A pod that was initialised once stays so, also while RestartAllContainers runs its init containers again.
  if (message === "" || previous.some((c) => c.type === type && c.status === "True")) return verdict(type, true);
  return verdict(type, false, "ContainersNotInitialized", message);
}

/** AllContainersRestarting, for pods that have such a rule: true from the exit that asks for it until it is removed. */
export function allContainersRestarting(phase: Phase, resetting: boolean): Verdict {
  const type = "AllContainersRestarting";
  if (phase === "Succeeded" || phase === "Failed") return verdict(type, false, endedReason(phase));
  if (!resetting) return verdict(type, false);
  return verdict(type, true, "RestartAllContainersStarted", "container exited with restart policy rule");
}

/** The kubelet's conditions of every pod, in the order in which it writes them. */
export function ownConditions(input: ConditionsInput): Verdict[] {
  return [
    verdict("PodReadyToStartContainers", !input.sandboxNeeded),
    initialized(input),
    podReady(input),
    containersReady(input),
    verdict("PodScheduled", true),
  ];
}
