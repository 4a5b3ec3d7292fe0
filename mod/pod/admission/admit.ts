import { criticalPriority, isCritical, isStatic, podContainers, podFullName } from "../../kube/pod.ts";
import type { AppArmorProfile, BoundPod } from "../../kube/types.ts";
import { hasPodLevelResources, qosClass } from "../resources.ts";
import { misfits, type Shortage, shortages, toleratesTaint } from "./predicates.ts";
import { chooseVictims } from "./preempt.ts";
import { checkSysctls } from "./sysctls.ts";
import {
  type Admission,
  type AdmissionInput,
  type AdmissionPolicy,
  type NodeFacts,
  reject,
  type Rejection,
} from "./types.ts";

const admitted: Admission = { admit: true, victims: [] };

/** Under pressure only critical pods come in, and under memory pressure alone those that ask for memory or bear it. */
function checkPressure(
  pod: BoundPod,
  pressure: readonly string[],
  { staticPodsEvictable = false }: AdmissionPolicy,
): Rejection | undefined {
  const important = staticPodsEvictable && isStatic(pod)
    ? (pod.spec.priority ?? 0) >= criticalPriority
    : isCritical(pod);
  if (pressure.length === 0 || important) return undefined;
  if (pressure.length === 1 && pressure[0] === "MemoryPressure") {
    const taint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" };
    if (qosClass(pod) !== "BestEffort" || toleratesTaint(pod, taint)) return undefined;
  }
  return reject("Evicted", `The node had condition: [${pressure.join(" ")}]. `);
}

function checkPlatform(pod: BoundPod, node: NodeFacts): Rejection | undefined {
  const label = pod.metadata.labels?.["kubernetes.io/os"];
  if (label !== undefined && label !== node.os) {
    const message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
    return reject("PodOSSelectorNodeLabelDoesNotMatch", message);
  }
  if (pod.spec.os !== undefined && pod.spec.os.name !== node.os) {
    return reject("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS");
  }
  const groups = pod.spec.securityContext?.supplementalGroupsPolicy;
  if (groups === "Strict" && !node.features.supplementalGroupsPolicy) {
    const message = "SupplementalGroupsPolicy=Strict is not supported in this node";
    return reject("SupplementalGroupsPolicyNotSupported", message);
  }
  return undefined;
}

function outOf({ resource, requested, used, capacity }: Shortage): Rejection {
  const figures = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return reject(`OutOf${resource}`, `Node didn't have enough resource: ${resource}, ${figures}`);
}

/** Resources, node affinity and name, ports and taints; a critical pod that only lacks resources has others killed. */
function checkFit(pod: BoundPod, node: NodeFacts, active: readonly BoundPod[]): Admission {
  const short = shortages(pod, node, active);
  const [misfit] = misfits(pod, node, active);
  const [first] = short;
  if (first && !isCritical(pod)) return outOf(first);
  if (misfit) {
    return reject(misfit.predicate, `Predicate ${misfit.predicate} failed: ${misfit.description}`);
  }
  if (!first) return admitted;
  const choice = chooseVictims(pod, active, short);
  if ("victims" in choice) return { admit: true, victims: choice.victims, short: first.resource };
  return reject(
    "UnexpectedAdmissionError",
    "Unexpected error while attempting to recover from admission failure: " +
      `preemption: error finding a set of pods to preempt: ${choice.failure}`,
  );
}

const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";

function checkAppArmor(pod: BoundPod, enabled: boolean): Rejection | undefined {
  // What already runs, or has ended, isn't asked again.
  if ((pod.status?.phase ?? "Pending") !== "Pending") return undefined;
  const containers = podContainers(pod).map((c) => c.spec.securityContext?.appArmorProfile);
  const profiles = [pod.spec.securityContext?.appArmorProfile, ...containers]
    .filter((p): p is AppArmorProfile => p !== undefined && p.type !== "Unconfined");
  const annotated = Object.entries(pod.metadata.annotations ?? {})
    .some(([key, value]) => key.startsWith(appArmorAnnotation) && value !== "unconfined");
  if (profiles.length === 0 && !annotated) return undefined;
  const refuse = (why: string) => reject("AppArmor", `Cannot enforce AppArmor: ${why}`);
  if (!enabled) return refuse("AppArmor is not enabled on the host");
  const nameless = profiles.some((p) => p.type === "Localhost" && !p.localhostProfile?.trim());
  return nameless ? refuse("invalid empty AppArmor profile name") : undefined;
}

function checkFeatures(pod: BoundPod, node: NodeFacts): Rejection | undefined {
  if (node.features.podLevelResources !== false || !hasPodLevelResources(pod)) return undefined;
  return reject("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled");
}

/**
 * Whether the pod may run on this node (runtime-contract.md section 17, in its order: eviction, sysctls, predicates,
 * AppArmor, pod features, node shutdown), and which pods have to be killed for a critical one. The managers of
 * topology, CPU, memory and devices have their say elsewhere. Throws BadPod or BadConfig on a quantity that can't be read.
 */
export function admit({ pod, node, active, policy = {} }: AdmissionInput): Admission {
  if (Object.keys(node.allocatable).length === 0) return reject("InvalidNodeInfo", "Kubelet cannot get node info.");
  const others = active.filter((other) => {
    if (other.metadata.uid === pod.metadata.uid) return false;
    // An older pod of the same static name ends before this one starts.
    return !(isStatic(pod) && isStatic(other) && podFullName(other) === podFullName(pod));
  });
  const early = checkPressure(pod, node.pressure ?? [], policy) ??
    checkSysctls(pod, policy.allowedUnsafeSysctls ?? [], node.kernelVersion) ??
    checkPlatform(pod, node);
  if (early) return early;
  const fit = checkFit(pod, node, others);
  if (!fit.admit) return fit;
  const late = checkAppArmor(pod, node.features.appArmor ?? false) ?? checkFeatures(pod, node);
  if (late) return late;
  return policy.shuttingDown ? reject("NodeShutdown", "Pod was rejected as the node is shutting down.") : fit;
}
