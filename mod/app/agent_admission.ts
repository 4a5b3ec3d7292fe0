import type { RuntimeFeatures } from "../../cri/gen/runtime_pb.ts";
import { messageOf } from "../base/errors.ts";
import type { Scope } from "../base/scope.ts";
import { isStatic, podFullName } from "../kube/pod.ts";
import type { BoundPod, Node } from "../kube/types.ts";
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
  readonly scope: Scope;
  /** True while a container of the pod runs. */
  readonly runs: (uid: string) => boolean;
}

/** Reason and message of a pod that makes room (runtime-contract.md section 17). */
const preempted = { reason: "Preempting", message: "Preempted in order to admit critical pod" } as const;
/** Message of its DisruptionTarget condition. */
const disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";

/** This node as admission sees it: in a cluster its labels and taints are the API's, and others may have given it more. */
function nodeOf(o: AgentOptions, features: RuntimeFeatures | undefined, fetched: Node | undefined): NodeFacts {
  const facts = admissionFacts(o, features);
  const node = newer(o.cluster?.node?.(), fetched);
  if (!node) return facts;
  return {
    ...facts,
    labels: node.metadata?.labels ?? facts.labels,
    taints: node.spec?.taints ?? [],
    allocatable: { ...node.status?.allocatable, ...facts.allocatable },
  };
}

/** The newer of two looks at one object: its versions are numbers that grow. */
function newer(watched: Node | undefined, fetched: Node | undefined): Node | undefined {
  const version = (node: Node | undefined) => Number(node?.metadata?.resourceVersion ?? "0");
  return fetched?.metadata?.uid === watched?.metadata?.uid && version(fetched) > version(watched) ? fetched : watched;
}

/** Decides whether this node takes a pod. */
export interface AgentAdmission {
  /** For a critical pod that lacks room, others are ended, each told by an event. */
  admit(pod: BoundPod, active: readonly BoundPod[]): Admission;
  /**
   * True when the pod fits but for the node's labels, of which the API server may know newer ones: they are read, then
   * `again` is called, also when they could not be had (features.md B14).
   */
  lookAgain(pod: BoundPod, reason: string, again: () => void): boolean;
  /** True when the pod needs devices: they are asked for, then `done` is called (runtime-contract.md section 17). */
  prepare(pod: BoundPod, done: (answer: Admission) => void): boolean;
}

export function makeAdmission(o: AgentOptions, parts: AdmissionParts): AgentAdmission {
  let fetched: Node | undefined;
  return {
    admit(pod, active): Admission {
      const node = nodeOf(o, parts.features(), fetched);
      const allocatable = o.devices?.wantedBy(pod) ? o.devices.withGiven(node.allocatable) : node.allocatable;
      const answer = admit({
        pod,
        active,
        node: { ...node, allocatable, pressure: parts.pressure() },
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
        o.meter?.work.preempted(answer.short ?? "");
        o.events.pod({ pod: victim, type: "Warning", ...preempted });
        parts.kill(victim.metadata.uid, { why: preempted, failed: { ...preempted, disruption } });
      }
      parts.onAdmitted();
      return answer;
    },
    prepare(pod, done): boolean {
      const { devices } = o;
      // What runs has its devices.
      if (!devices?.wantedBy(pod) || parts.runs(pod.metadata.uid)) return false;
      parts.scope.spawn("devices of a pod", async (signal) => {
        try {
          await devices.allocate(pod, signal);
          done({ admit: true });
        } catch (thrown) {
          if (signal.aborted) throw thrown;
          const message = `Allocate failed due to ${messageOf(thrown)}, which is unexpected`;
          done({ admit: false, reason: "UnexpectedAdmissionError", message });
        }
      });
      return true;
    },
    lookAgain(pod, reason, again): boolean {
      const fetchNode = o.cluster?.fetchNode;
      if (reason !== "NodeAffinity" || isStatic(pod) || !fetchNode) return false;
      parts.scope.spawn("node's labels", async (signal) => {
        try {
          fetched = await fetchNode(signal);
        } catch (thrown) {
          if (signal.aborted) throw thrown;
          o.log.warn("the node could not be read once more for a pod that its labels do not fit", {
            pod: podFullName(pod),
            error: messageOf(thrown),
          });
        }
        again();
      });
      return true;
    },
  };
}
