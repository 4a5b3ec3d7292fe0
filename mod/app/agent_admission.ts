import type { RuntimeFeatures } from "../../cri/gen/runtime_pb.ts";
import { podFullName } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";
import { admit } from "../pod/admission/admit.ts";
import type { NodeFacts } from "../pod/admission/types.ts";
import type { KillOptions } from "../sync/pod_worker.ts";
import type { Admission } from "../sync/sync_loop.ts";
import { admissionFacts } from "./agent_parts.ts";
import type { AgentOptions } from "./agent_types.ts";

/** What this agent's admission looks at besides the pod. */
export interface AdmissionParts {
  /** What the runtime can do, as it tells. */
  readonly features: () => RuntimeFeatures | undefined;
  /** The node's conditions of pressure that hold now. */
  readonly pressure: () => readonly string[];
  /** Ends a pod. */
  readonly kill: (uid: string, options: KillOptions) => void;
  /** Told when a pod has been taken in. */
  readonly onAdmitted: () => void;
}

/** Reason and message of a pod that makes room (runtime-contract.md section 17). */
const preempted = { reason: "Preempting", message: "Preempted in order to admit critical pod" } as const;
/** Message of its DisruptionTarget condition. */
const disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";

/** This node as admission sees it: in a cluster its labels and taints are the API's, and others may have given it more. */
function nodeOf(o: AgentOptions, features: RuntimeFeatures | undefined): NodeFacts {
  const facts = admissionFacts(o, features);
  const node = o.cluster?.node?.();
  if (!node) return facts;
  return {
    ...facts,
    labels: node.metadata?.labels ?? facts.labels,
    taints: node.spec?.taints ?? [],
    allocatable: { ...node.status?.allocatable, ...facts.allocatable },
  };
}

/** Decides whether this node takes a pod; for a critical pod that lacks room, ends others, each told by an event. */
export function makeAdmission(
  o: AgentOptions,
  parts: AdmissionParts,
): (pod: BoundPod, active: readonly BoundPod[]) => Admission {
  return (pod, active) => {
    const answer = admit({
      pod,
      active,
      node: { ...nodeOf(o, parts.features()), pressure: parts.pressure() },
      policy: {
        allowedUnsafeSysctls: o.config.allowedUnsafeSysctls,
        staticPodsEvictable: o.flags.denoletEvictionStaticPods,
      },
    });
    if (!answer.admit) return answer;
    for (const victim of answer.victims) {
      o.log.info("a pod is ended to make room for a critical one", {
        pod: podFullName(victim),
        podUid: victim.metadata.uid,
        critical: podFullName(pod),
      });
      o.events.pod({ pod: victim, type: "Warning", ...preempted });
      parts.kill(victim.metadata.uid, { why: preempted, failed: { ...preempted, disruption } });
    }
    parts.onAdmitted();
    return answer;
  };
}
