import { isSidecar, isStatic, podContainers } from "../../kube/pod.ts";
import type { BoundPod, Container, ContainerState, ContainerStatus } from "../../kube/types.ts";
import { restartsAfterExit } from "../decide/restart.ts";

export type Phase = "Pending" | "Running" | "Succeeded" | "Failed";

/** What the phase is found from. */
export interface PhaseInput {
  readonly pod: BoundPod;
  /** Statuses of init and regular containers. */
  readonly statuses: readonly ContainerStatus[];
  /** True once nothing of the pod is to run any more. */
  readonly terminating: boolean;
  /** True when a regular container was made in the present sandbox. */
  readonly initialised: boolean;
}

/** True for Succeeded and Failed, which are never left. */
export function isTerminal(phase: string | undefined): phase is "Succeeded" | "Failed" {
  return phase === "Succeeded" || phase === "Failed";
}

type Progress =
  | { readonly is: "running" | "waiting" | "unknown" }
  /** Ended, or waits to be started again after it ended. */
  | { readonly is: "stopped"; readonly exitCode: number; readonly restarts: boolean; readonly waits: boolean };

function progressOf(pod: BoundPod, spec: Container, status: ContainerStatus | undefined): Progress {
  const state: ContainerState = status?.state ?? {};
  if (state.running) return { is: "running" };
  const ended = state.terminated ?? (state.waiting ? status?.lastState?.terminated : undefined);
  if (ended) {
    const restarts = restartsAfterExit(pod, spec, ended.exitCode) || ended.reason === "RestartingAllContainers";
    return { is: "stopped", exitCode: ended.exitCode, restarts, waits: state.terminated === undefined };
  }
  return { is: state.waiting ? "waiting" : "unknown" };
}

/** The pod's phase by the first rule that fits (runtime-contract.md section 13). */
export function phaseOf({ pod, statuses, terminating, initialised }: PhaseInput): Phase {
  const count = { running: 0, waiting: 0, unknown: 0, stopped: 0, final: 0, succeeded: 0 };
  let initPending = false;
  let sidecarPending = false;
  for (const container of podContainers(pod)) {
    if (container.kind === "ephemeral") continue;
    const status = statuses.find((s) => s.name === container.spec.name);
    const progress = progressOf(pod, container.spec, status);
    if (container.kind === "init" && !isSidecar(container)) {
      if (progress.is !== "stopped") initPending = true;
      else if (progress.exitCode !== 0 && !progress.restarts) return "Failed";
    } else if (container.kind === "init") {
      // Sidecars that stopped do not count.
      if (progress.is === "stopped") continue;
      count[progress.is]++;
      const pending = progress.is === "running" ? status?.started !== true : status !== undefined;
      sidecarPending ||= pending;
    } else if (progress.is === "stopped") {
      count.stopped++;
      if (!progress.restarts) count.final++;
      if (progress.exitCode === 0 && !progress.waits) count.succeeded++;
    } else count[progress.is]++;
  }
  if (initPending || (sidecarPending && !initialised) || count.waiting > 0) return "Pending";
  if (count.unknown > 0) return "Pending";
  if (count.running > 0) return "Running";
  if (count.stopped === 0) return "Pending";
  const outcome = count.stopped === count.succeeded ? "Succeeded" : "Failed";
  if (terminating && !isStatic(pod)) return outcome;
  return count.stopped !== count.final ? "Running" : outcome;
}
