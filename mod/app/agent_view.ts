import type { StatusManager } from "../../managers/status/status_manager.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import type { Pleg } from "../sync/pleg.ts";
import type { PodStore } from "../sync/pod_store.ts";
import type { PodWorkers } from "../sync/pod_workers.ts";
import type { ServedAgent } from "./agent_types.ts";

/** What the agent knows of its pods, to be shown. */
export interface PodsKnown {
  readonly wanted: PodStore;
  readonly statuses: StatusManager;
}

interface PodShown {
  pod: BoundPod;
  status: PodStatus | undefined;
}

/** The pods that the sources want now, with their statuses. */
export function wantedPods({ wanted, statuses }: PodsKnown): PodShown[] {
  return [...wanted.all()].map((pod) => ({ pod, status: statuses.get(pod.metadata.uid) }));
}

/** The pods that no source wants any more and that have not ended yet, with their statuses. */
export function leavingPods({ wanted, statuses, workers }: PodsKnown & { readonly workers: PodWorkers }): PodShown[] {
  const pods = [...workers.all()].map((worker) => worker.pod);
  return pods.filter(({ metadata }) => !wanted.has(metadata.uid))
    .map((pod) => ({ pod, status: statuses.get(pod.metadata.uid) }));
}

/** What the node's HTTP API shows of pods. */
export function agentView({ pleg, wanted, statuses }: PodsKnown & { readonly pleg: Pleg }): ServedAgent["view"] {
  return {
    pods: () => wantedPods({ wanted, statuses }),
    podByName: (namespace, name) => wanted.byFullName(`${name}_${namespace}`),
    podByUid: (uid) => wanted.get(uid),
    status: (uid) => statuses.get(uid),
    observed: (uid) => pleg.get(uid),
    refresh: (uid, signal) => pleg.refresh(uid, signal),
    allObserved: () => pleg.all(),
  };
}
