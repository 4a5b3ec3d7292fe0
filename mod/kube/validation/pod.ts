import type { BoundPod, PodSpec } from "../types.ts";
import { checkContainers } from "./containers.ts";
import { checkMetadata } from "./metadata.ts";
import { checkLabel, checkSubdomain } from "./names.ts";
import { checkNetwork } from "./network.ts";
import { type FieldProblem, Problems } from "./problem.ts";
import { checkAmounts, checkPodResources } from "./resources.ts";
import { checkScheduling } from "./scheduling.ts";
import { checkPodSecurity } from "./security.ts";
import { checkVolumes } from "./volumes.ts";

/**
 * Every problem that the API would find with a new pod, as far as it matters to a Linux node; empty for a good one. The
 * pod must have its defaults (defaults/pod.ts). Rules and limits: pkg/apis/core/validation with the gates of v1.36.
 * Not checked: pod affinity, topology spread, persistent claims' specs, cloud volumes, Windows options.
 */
export function validatePod(pod: BoundPod): FieldProblem[] {
  const p = new Problems();
  checkMetadata(p, pod);
  checkVolumes(p, pod.spec, pod.metadata.name);
  checkContainers(p, pod.spec);
  checkSpec(p, pod.spec);
  checkPodSecurity(p, pod.spec);
  checkNetwork(p, pod.spec);
  checkScheduling(p, pod.spec);
  checkPodResources(p, pod.spec);
  checkAmounts(p, "spec.overhead", pod.spec.overhead, "container");
  return p.list;
}

function checkSpec(p: Problems, spec: PodSpec): void {
  p.oneOf("spec.restartPolicy", spec.restartPolicy, ["Always", "OnFailure", "Never"]);
  if (spec.terminationGracePeriodSeconds === undefined) {
    p.required("spec.terminationGracePeriodSeconds", "use 0 or more");
  }
  // The API takes a negative period and treats it as 1 s; nobody means it.
  p.notNegative("spec.terminationGracePeriodSeconds", spec.terminationGracePeriodSeconds);
  p.range("spec.activeDeadlineSeconds", spec.activeDeadlineSeconds, 1, 2 ** 31 - 1);
  for (const field of ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] as const) {
    const name = spec[field];
    if (name || (field === "runtimeClassName" && name !== undefined)) checkSubdomain(p, `spec.${field}`, name);
  }
  if (spec.os) p.oneOf("spec.os.name", spec.os.name, ["linux", "windows"]);
  spec.resourceClaims?.forEach((claim, i) => {
    checkLabel(p, `spec.resourceClaims[${i}].name`, claim.name);
    if ((claim.resourceClaimName === undefined) === (claim.resourceClaimTemplateName === undefined)) {
      const remedy = "use exactly one of resourceClaimName, resourceClaimTemplateName";
      p.add(`spec.resourceClaims[${i}]`, undefined, "needs one claim", remedy);
    }
  });
}
