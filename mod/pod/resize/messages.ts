import type { BoundPod, Container } from "../../kube/types.ts";
import { writtenResources } from "./checkpoint.ts";

/** What an event of a resize is about, with the words that it begins with. */
const openings = {
  ResizeStarted: "Pod resize started",
  ResizeCompleted: "Pod resize completed",
  ResizeError: "Pod resize error",
  ResizeDeferred: "Pod resize Deferred",
  ResizeInfeasible: "Pod resize Infeasible",
} as const;

export type ResizeEvent = keyof typeof openings;

/** The message of an event: its opening, and the pod's resources as JSON text. @param error why it is not done, or "" */
export function resizeMessage(event: ResizeEvent, pod: BoundPod, generation: number, error = ""): string {
  const list = (containers: readonly Container[]) =>
    containers.map(({ name, resources }) => ({ name, resources: writtenResources(resources ?? {}) }));
  const inits = list(pod.spec.initContainers ?? []);
  const summary = {
    ...(inits.length > 0 ? { initContainers: inits } : {}),
    containers: list(pod.spec.containers),
    generation,
    ...(error === "" ? {} : { error }),
  };
  return `${openings[event]}: ${JSON.stringify(summary)}`;
}
