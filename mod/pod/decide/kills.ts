import type { Container } from "../../kube/types.ts";
import type { KillContainer } from "../actions.ts";
import { containerHash } from "../hash.ts";
import type { ObservedContainer } from "../observed.ts";

/** One container to kill. */
export function kill(
  instance: ObservedContainer,
  reason: string,
  message: string,
  restarts: boolean,
  probe?: "liveness" | "startup",
): KillContainer {
  return { id: instance.id, name: instance.name, reason, message, restarts, ...(probe ? { probe } : {}) };
}

/** An instance whose state is unknown may well run; it is killed so that never two of a name run. */
export function killWhenUnknown(instance: ObservedContainer, label: string): KillContainer {
  const message = `${label} is in "${instance.state}" state, try killing it before restart`;
  return kill(instance, "StateUnknown", message, true);
}

/**
 * True when the container was made from another name or image than the spec now has. An instance without a readable
 * hash counts as unchanged: a label that can't be read is no reason to stop what runs.
 */
export function definitionChanged(container: Container, instance: ObservedContainer): boolean {
  return instance.hash !== undefined && instance.hash !== containerHash(container);
}

/** The reason of a kill for which the container comes back with other resources. */
export const resizeRestart = "ResizeRestart";

/** A container is restarted because its resize policy wants that for what has changed. */
export function killForResize(instance: ObservedContainer): KillContainer {
  return kill(instance, resizeRestart, `Container ${instance.name} resize requires restart`, true);
}
