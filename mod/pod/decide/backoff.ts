import type { PodContainer } from "../../kube/pod.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { DecideInput, HeldContainer, StartContainer, Why } from "../actions.ts";
import { backOffKey } from "../hash.ts";
import { formatDuration } from "../../base/duration.ts";

/** `<name>_<namespace>(<uid>)`, as the contract's messages name a pod. */
export function podText(pod: BoundPod): string {
  const { name, namespace, uid } = pod.metadata;
  return `${name}_${namespace}(${uid})`;
}

/** A container that the rules want started, before its back-off is asked. */
export interface Wanted {
  readonly container: PodContainer;
  readonly why: Why;
}

/**
 * What is left plus what has gone by is the whole delay, which is the figure that the message gives; but for the time
 * that passed between the two looks at the clock, so that the message would be another at each look.
 */
function wholeDelay(ms: number): number {
  return Math.round(ms / 100) * 100;
}

/**
 * Parts what is wanted into what may start now and what its back-off holds (runtime-contract.md section 9). The
 * back-off counts from the newest exit of the container; one that never exited starts at once. A regular init
 * container that is held stops everything after it, for they run one after another.
 */
export function heldBack(input: DecideInput, wanted: readonly Wanted[]): {
  start: StartContainer[];
  held: HeldContainer[];
} {
  const start: StartContainer[] = [];
  const held: HeldContainer[] = [];
  for (const { container: { kind, spec }, why } of wanted) {
    const exited = input.observed.containers.find((c) => c.name === spec.name && c.state === "exited");
    if (!exited) {
      start.push({ kind, name: spec.name, ...why });
      continue;
    }
    const key = backOffKey(input.pod, spec);
    const at = exited.finishedAt;
    const remainingMs = input.backOff(key, at);
    if (remainingMs <= 0) {
      start.push({ kind, name: spec.name, ...why, afterExit: { key, at } });
      continue;
    }
    const delay = formatDuration(wholeDelay(remainingMs + (input.now - at)));
    held.push({
      kind,
      name: spec.name,
      remainingMs,
      reason: "CrashLoopBackOff",
      message: `back-off ${delay} restarting failed container=${spec.name} pod=${podText(input.pod)}`,
    });
    if (kind === "init" && spec.restartPolicy !== "Always") break;
  }
  return { start, held };
}
