import type { PodResizes } from "../../managers/allocation/types.ts";
import type { Devices } from "../../managers/devices/types.ts";
import type { Clock } from "../base/clock.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import type { ProbeView } from "../pod/actions.ts";
import { type ObservedPod, unobserved } from "../pod/observed.ts";
import { generateStatus } from "../pod/status/generate.ts";
import type { StatusSituation } from "../sync/pod_syncer_types.ts";

/** What every status of this agent is computed with. */
export interface StatusFacts {
  readonly clock: Clock;
  /** As container ids begin, such as `containerd`. */
  readonly runtimeName: string;
  /** Probe results by container id. */
  readonly probes: (containerId: string) => ProbeView;
  /** The node's addresses, primary first. Without an API server there is none to report, as in the reference. */
  readonly hostIPs: () => readonly string[];
  /** Tells the health of containers' devices. */
  readonly devices?: Pick<Devices, "health"> | undefined;
  /** Gate ContainerStopSignals. */
  readonly stopSignals?: boolean;
  /** Resizes in place. */
  readonly resizes?: Pick<PodResizes, "conditions" | "view"> | undefined;
}

/** The status of a pod that the node does not take. */
export function statusOfRejected(
  facts: StatusFacts,
  pod: BoundPod,
  rejected: { readonly reason: string; readonly message: string },
): PodStatus {
  const now = facts.clock.now();
  return generateStatus({
    pod,
    observed: unobserved(pod, now),
    probes: facts.probes,
    startErrors: () => undefined,
    // A pod that is not taken tells no address of the node, as in the reference.
    hostIPs: [],
    now,
    terminating: true,
    rejected,
    runtimeName: facts.runtimeName,
  });
}

/** The status of a pod that its worker looks after. */
export function statusOf(
  facts: StatusFacts,
  pod: BoundPod,
  observed: ObservedPod,
  situation: StatusSituation,
): PodStatus {
  const { previous, actions, failed, stopped } = situation;
  const status = generateStatus({
    pod,
    observed,
    ...(previous ? { previous } : {}),
    probes: facts.probes,
    startErrors: (name) => situation.startErrors.get(name),
    ...(actions ? { held: actions.held, createSandboxNeeded: actions.createSandbox !== undefined } : {}),
    // The sandbox of a pod that was stopped is of no use any more: containerd 2 may still list it as ready for a moment.
    ...(stopped ? { createSandboxNeeded: true } : {}),
    hostIPs: facts.hostIPs(),
    now: facts.clock.now(),
    terminating: situation.terminating,
    ...(facts.stopSignals ? { stopSignals: true } : {}),
    ...(facts.resizes
      ? { resizes: facts.resizes.conditions(pod.metadata.uid), resize: facts.resizes.view(pod.metadata.uid) }
      : {}),
    // A terminal phase is for a pod of which nothing runs any more.
    ...(failed && stopped ? { forced: failed } : {}),
    runtimeName: facts.runtimeName,
  });
  return withDevices(facts, pod, status);
}

/** The status with the health of devices (allocatedResourcesStatus); the same one for a pod without any. */
function withDevices({ devices }: StatusFacts, pod: BoundPod, status: PodStatus): PodStatus {
  if (!devices || !status.containerStatuses) return status;
  let found = false;
  const containerStatuses = status.containerStatuses.map((container) => {
    const health = devices.health(pod.metadata.uid, container.name);
    found ||= health.length > 0;
    return health.length > 0 ? { ...container, allocatedResourcesStatus: health } : container;
  });
  return found ? { ...status, containerStatuses } : status;
}
