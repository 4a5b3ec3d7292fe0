/** How the containers of a pod are killed: with how much time, in which order (runtime-contract.md section 8). */
import { isSidecar, podContainers } from "../kube/pod.ts";
import type { BoundPod, Container, LifecycleHandler } from "../kube/types.ts";
import type { ObservedContainer } from "./observed.ts";

/** The least seconds that StopContainer is given, so that a container always has a moment to end by itself. */
export const minimumGraceSeconds = 2;
/** The grace, in seconds, of containers of which no pod is known. */
export const orphanGraceSeconds = 1;

/** What decides over a container's grace period. */
export interface GraceInput {
  readonly pod: BoundPod;
  /** The container's spec, where it is known. */
  readonly container?: Container;
  /** The probe whose failure is the cause. */
  readonly probe?: "liveness" | "startup";
  /** Seconds, from eviction, an orphan's clean-up, a reset or the worker; stands in for all else. */
  readonly override?: number;
}

/**
 * Seconds that a container has between preStop and SIGKILL, before anything is taken off. Negative specs (which the
 * API lets through for old objects) are given as they are; `stopSeconds` lifts them to the minimum.
 */
export function graceSeconds({ pod, container, probe, override }: GraceInput): number {
  if (override !== undefined) return override;
  if (pod.metadata.deletionGracePeriodSeconds !== undefined) return pod.metadata.deletionGracePeriodSeconds;
  const ofPod = pod.spec.terminationGracePeriodSeconds;
  if (ofPod === undefined) return minimumGraceSeconds;
  const ofProbe = probe === "liveness"
    ? container?.livenessProbe
    : probe === "startup"
    ? container?.startupProbe
    : undefined;
  return ofProbe?.terminationGracePeriodSeconds ?? ofPod;
}

/**
 * The timeout for StopContainer, in seconds: the grace period less what preStop and the wait for other containers
 * took, each in whole seconds, but never under the minimum.
 */
export function stopSeconds(grace: number, preStopMs = 0, waitedMs = 0): number {
  const whole = (ms: number) => Math.max(0, Math.floor(ms / 1000));
  return Math.max(minimumGraceSeconds, grace - whole(preStopMs) - whole(waitedMs));
}

/** How one container is killed. Run preStop, wait, then stop it with `stopSeconds(grace, …)`. */
export interface ContainerKill {
  readonly id: string;
  readonly name: string;
  readonly graceSeconds: number;
  /** The hook to run first, for at most `graceSeconds`; unset when there is none or no time for it. */
  readonly preStop?: LifecycleHandler;
  /**
   * Ids of the containers that must have stopped before this one is, in the order to wait for them; the wait, after
   * preStop, ends with the grace that is left. All other work of a kill goes on at once.
   */
  readonly waitFor: readonly string[];
}

/** What `killPlan` looks at. */
export interface KillPlanInput extends Omit<GraceInput, "container"> {
  /** The containers that run or may run. */
  readonly live: readonly Pick<ObservedContainer, "id" | "name">[];
}

/** Which running containers each container waits for: a sidecar for all regular ones, and for the next sidecar after it. */
function waitsByName(pod: BoundPod): Map<string, string[]> {
  const sidecars = podContainers(pod).filter(isSidecar).map((c) => c.spec.name);
  const regular = pod.spec.containers.map((c) => c.name);
  // The next sidecar itself waits for the one after it; naming all of them holds the order even when one is gone.
  return new Map(sidecars.map((name, i) => [name, [...regular, ...sidecars.slice(i + 1).reverse()]]));
}

/** How the live containers of a pod are killed: all at once, but for sidecars, which outlive what they serve. */
export function killPlan(input: KillPlanInput): ContainerKill[] {
  const { pod, live } = input;
  const specs = new Map(podContainers(pod).map((c) => [c.spec.name, c.spec]));
  const waits = waitsByName(pod);
  return live.map(({ id, name }) => {
    const container = specs.get(name);
    const grace = graceSeconds({ ...input, ...(container ? { container } : {}) });
    const preStop = grace > 0 ? container?.lifecycle?.preStop : undefined;
    const waitFor = grace > 0
      ? (waits.get(name) ?? []).flatMap((other) => live.filter((c) => c.name === other).map((c) => c.id))
      : [];
    return { id, name, graceSeconds: grace, waitFor, ...(preStop ? { preStop } : {}) };
  });
}

/** What a worker has seen of a pod's grace period. */
export interface WorkerGraceInput {
  readonly pod: BoundPod;
  /** The grace in force since an earlier request, in seconds. */
  readonly current?: number;
  /** The grace that this request brings, such as eviction's. */
  readonly override?: number;
}

/**
 * The grace period that a pod worker terminates with, in seconds: the smallest of what it has seen, by default the
 * spec's, never under 1. `shortened` is true when a running termination must be cut short for it.
 */
export function workerGrace({ pod, current, override }: WorkerGraceInput): { seconds: number; shortened: boolean } {
  const seen = [current, pod.metadata.deletionGracePeriodSeconds, override].filter((s) => s !== undefined);
  const wanted = seen.length > 0 ? Math.min(...seen) : pod.spec.terminationGracePeriodSeconds ?? 0;
  const seconds = Math.max(1, wanted);
  return { seconds, shortened: current !== undefined && current !== seconds };
}

/** How long to wait for a pod to be killed by its worker, in milliseconds: grace × 1.5, at least 10 s. */
export function killWaitMs(grace: number): number {
  return Math.max(10_000, grace * 1500);
}

/** A whole number as annotations write it, or undefined. */
function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * As much of a pod as killing a container takes, read from the annotations that the container was made with; for
 * containers whose pod is gone (section 1). An annotation that can't be read counts as absent.
 */
export function podOfContainer(
  container: ObservedContainer,
  pod: { readonly name: string; readonly namespace: string; readonly uid: string },
): BoundPod {
  const { annotations } = container;
  const deletion = wholeNumber(annotations["io.kubernetes.pod.deletionGracePeriod"]);
  const termination = wholeNumber(annotations["io.kubernetes.pod.terminationGracePeriod"]);
  const preStop = handlerOf(annotations["io.kubernetes.container.preStopHandler"]);
  return {
    metadata: { ...pod, ...(deletion === undefined ? {} : { deletionGracePeriodSeconds: deletion }) },
    spec: {
      containers: [{ name: container.name, image: container.image, ...(preStop ? { lifecycle: { preStop } } : {}) }],
      ...(termination === undefined ? {} : { terminationGracePeriodSeconds: termination }),
    },
  };
}

function handlerOf(json: string | undefined): LifecycleHandler | undefined {
  if (json === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return undefined; // Written by someone else; a kill without the hook beats no kill.
  }
  return typeof parsed === "object" && parsed !== null ? parsed as LifecycleHandler : undefined;
}
