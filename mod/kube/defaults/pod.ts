import type { Container, Pod, PodSpec } from "../types.ts";
import { defaultContainer } from "./container.ts";
import { defaultPodResources, requestsFromLimits, roundList, roundResources } from "./resources.ts";
import { defaultVolume } from "./volume.ts";

/**
 * A copy of the pod with every default that the API sets on a v1.36 pod, in the API's order
 * (pkg/apis/core/v1/defaults.go). Applying it twice changes nothing. A quantity that can't be read throws BadManifest.
 */
export function withDefaults(pod: Pod): Pod {
  const result = structuredClone(pod);
  const spec: PodSpec = result.spec ??= { containers: [] };
  const init = spec.initContainers ?? [];
  for (const container of [...spec.containers, ...init]) requestsFromLimits(container.resources);
  defaultPodResources(spec);
  spec.enableServiceLinks ??= true;
  if (spec.hostNetwork) defaultHostPorts([...spec.containers, ...init]);
  spec.serviceAccountName ||= spec.serviceAccount ?? "";
  if (spec.serviceAccountName === "") delete spec.serviceAccountName;
  else spec.serviceAccount = spec.serviceAccountName;

  spec.dnsPolicy ||= "ClusterFirst";
  spec.restartPolicy ||= "Always";
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ||= "default-scheduler";
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of [...init, ...spec.containers, ...(spec.ephemeralContainers ?? [])]) {
    defaultContainer(container);
  }
  if (spec.overhead) roundList(spec.overhead);
  roundResources(spec.resources);
  return result;
}

/** On the host's network a container port is a host port. */
function defaultHostPorts(containers: readonly Container[]): void {
  for (const port of containers.flatMap((container) => container.ports ?? [])) port.hostPort ||= port.containerPort;
}
