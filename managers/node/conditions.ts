import type { NodeCondition } from "../../mod/kube/types.ts";
import { type NodeEvent, type PressureType, pressureTypes } from "./types.ts";

interface Words {
  readonly reason: string;
  readonly message: string;
  /** Reason of the event. */
  readonly event: string;
}

/** What the conditions of pressure say when they hold and when not (runtime-contract.md section 19). */
const pressureWords: Readonly<Record<PressureType, { readonly True: Words; readonly False: Words }>> = {
  MemoryPressure: {
    True: {
      reason: "KubeletHasInsufficientMemory",
      message: "kubelet has insufficient memory available",
      event: "NodeHasInsufficientMemory",
    },
    False: {
      reason: "KubeletHasSufficientMemory",
      message: "kubelet has sufficient memory available",
      event: "NodeHasSufficientMemory",
    },
  },
  DiskPressure: {
    True: { reason: "KubeletHasDiskPressure", message: "kubelet has disk pressure", event: "NodeHasDiskPressure" },
    False: {
      reason: "KubeletHasNoDiskPressure",
      message: "kubelet has no disk pressure",
      event: "NodeHasNoDiskPressure",
    },
  },
  PIDPressure: {
    True: {
      reason: "KubeletHasInsufficientPID",
      message: "kubelet has insufficient PID available",
      event: "NodeHasInsufficientPID",
    },
    False: {
      reason: "KubeletHasSufficientPID",
      message: "kubelet has sufficient PID available",
      event: "NodeHasSufficientPID",
    },
  },
};

/** What the agent's own conditions follow from. */
export interface ConditionInput {
  readonly pressure: ReadonlySet<PressureType>;
  /** What keeps the node from being ready, in order; none: it is ready. */
  readonly troubles: readonly string[];
  /** Added to the message of Ready. */
  readonly warning?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The event of a condition that has changed. */
export function statusEvent(name: string, reason: string): NodeEvent {
  return { type: "Normal", reason, message: `Node ${name} status is now: ${reason}` };
}

/** A time as the API writes it: whole seconds. */
export function apiTime(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

/** Several complaints as one, each once: alone as it is, together in brackets. Undefined when there are none. */
export function joinTroubles(troubles: readonly string[]): string | undefined {
  const distinct = [...new Set(troubles)];
  return distinct.length > 1 ? `[${distinct.join(", ")}]` : distinct[0];
}

/**
 * The next conditions of a node: the agent's own four brought up to date where they are, or appended, Ready last;
 * those of others kept (runtime-contract.md section 19). The time of transition moves only with the status. Also tells
 * the events of what changed; a new condition Ready has none.
 */
export function nextConditions(
  name: string,
  before: readonly NodeCondition[],
  input: ConditionInput,
): { conditions: NodeCondition[]; events: NodeEvent[] } {
  const at = apiTime(input.now);
  const events: NodeEvent[] = [];
  const conditions = [...before];
  const put = (condition: NodeCondition) => {
    const index = conditions.findIndex(({ type }) => type === condition.type);
    if (index < 0) conditions.push(condition);
    else conditions[index] = condition;
  };
  for (const type of pressureTypes) {
    const old = before.find((condition) => condition.type === type);
    const status = input.pressure.has(type) ? "True" : "False";
    if (old?.status === status) {
      put({ ...old, lastHeartbeatTime: at });
      continue;
    }
    const { reason, message, event } = pressureWords[type][status];
    put({ type, status, lastHeartbeatTime: at, lastTransitionTime: at, reason, message });
    events.push(statusEvent(name, event));
  }
  const ready = readyCondition(before.find(({ type }) => type === "Ready"), input);
  put(ready.condition);
  if (ready.changed) events.push(statusEvent(name, ready.condition.status === "True" ? "NodeReady" : "NodeNotReady"));
  return { conditions, events };
}

function readyCondition(
  old: NodeCondition | undefined,
  input: ConditionInput,
): { condition: NodeCondition; changed: boolean } {
  const at = apiTime(input.now);
  const trouble = joinTroubles(input.troubles);
  const status = trouble === undefined ? "True" : "False";
  const message = trouble ?? "kubelet is posting ready status";
  const same = old?.status === status;
  return {
    condition: {
      type: "Ready",
      status,
      lastHeartbeatTime: at,
      lastTransitionTime: same && old.lastTransitionTime !== undefined ? old.lastTransitionTime : at,
      reason: status === "True" ? "KubeletReady" : "KubeletNotReady",
      message: input.warning === undefined ? message : `${message}. WARNING: ${input.warning}`,
    },
    changed: old !== undefined && !same,
  };
}
