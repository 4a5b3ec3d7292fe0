import type { Node, NodeStatus } from "../../mod/kube/types.ts";
import { nextConditions, statusEvent } from "./conditions.ts";
import { isExtendedResource, isHugePages } from "./resources.ts";
import type { DeviceResources, NodeEvent, NodeProfile, NodeSituation } from "./types.ts";

/** Tells an external cloud provider which addresses were given by --node-ip. */
export const providedIPAnnotation = "alpha.kubernetes.io/provided-node-ip";

/** A node as it should be now, and the events of what changed. */
export interface NextNode {
  readonly node: Node;
  readonly events: readonly NodeEvent[];
}

/**
 * The node as it should be now, from the object as it is: what others wrote is kept (runtime-contract.md section 19).
 * Pure; `before` is not changed.
 * @param now milliseconds since the epoch
 */
export function nextNode(before: Node, profile: NodeProfile, situation: NodeSituation, now: number): NextNode {
  const old = before.status ?? {};
  const { conditions, events } = nextConditions(profile.name, old.conditions ?? [], {
    pressure: situation.pressure,
    troubles: [...situation.troubles, ...missing(profile, situation.devices)],
    warning: situation.warning,
    now,
  });
  const capacity = nextCapacity(old.capacity ?? {}, profile, situation.devices);
  const bootID = old.nodeInfo?.bootID ?? "";
  const rebooted = bootID !== "" && bootID !== profile.info.bootID;
  const status: NodeStatus = {
    ...old,
    capacity,
    allocatable: nextAllocatable(old.allocatable ?? {}, capacity, profile, situation.devices),
    conditions,
    ...addresses(old, profile, situation),
    daemonEndpoints: { kubeletEndpoint: { Port: profile.port } },
    nodeInfo: {
      ...profile.info,
      containerRuntimeVersion: situation.runtimeVersion ?? old.nodeInfo?.containerRuntimeVersion ?? "",
    },
    ...(situation.images === undefined ? {} : { images: [...situation.images] }),
    runtimeHandlers: [...situation.handlers],
    ...(situation.supplementalGroupsPolicy === undefined
      ? {}
      : { features: { supplementalGroupsPolicy: situation.supplementalGroupsPolicy } }),
    ...(profile.declaredFeatures === undefined ? {} : { declaredFeatures: [...profile.declaredFeatures] }),
    ...(situation.volumesInUse === undefined ? {} : { volumesInUse: [...situation.volumesInUse] }),
  };
  return {
    node: {
      ...before,
      metadata: {
        ...before.metadata,
        labels: {
          ...before.metadata?.labels,
          "kubernetes.io/os": "linux",
          "kubernetes.io/arch": profile.arch,
        },
        annotations: nextAnnotations(before.metadata?.annotations ?? {}, profile),
      },
      status,
    },
    events: [
      ...(rebooted
        ? [{
          type: "Warning" as const,
          reason: "Rebooted",
          message: `Node ${profile.name} has been rebooted, boot id: ${profile.info.bootID}`,
        }]
        : []),
      ...events,
    ],
  };
}

/** The event of a change of `spec.unschedulable`; undefined when there was none. */
export function schedulableEvent(name: string, before: boolean, now: boolean): NodeEvent | undefined {
  return before === now ? undefined : statusEvent(name, now ? "NodeNotSchedulable" : "NodeSchedulable");
}

function missing(profile: NodeProfile, devices: DeviceResources | undefined): string[] {
  const lacking = profile.required.filter((name) =>
    !Object.hasOwn(profile.capacity, name) && !Object.hasOwn(devices?.capacity ?? {}, name)
  );
  return lacking.length > 0 ? [`missing node capacity for resources: ${lacking.join(", ")}`] : [];
}

/** True for the addresses of --node-ip that are addresses, not only the choice of a family. */
export function isGivenAddress(ip: string): boolean {
  return ip !== "0.0.0.0" && ip !== "::";
}

/** The annotation lives only with an external cloud provider and addresses of --node-ip; otherwise it is taken away. */
function nextAnnotations(old: Readonly<Record<string, string>>, profile: NodeProfile): Record<string, string> {
  const { [providedIPAnnotation]: _gone, ...rest } = old;
  const given = profile.nodeIPs.filter(isGivenAddress);
  return profile.externalCloud && given.length > 0 ? { ...rest, [providedIPAnnotation]: given.join(",") } : rest;
}

/** Addresses that an external cloud provider has set are its own. */
function addresses(old: NodeStatus, profile: NodeProfile, { addresses: found }: NodeSituation): Partial<NodeStatus> {
  if (profile.externalCloud && (old.addresses ?? []).length > 0) return {};
  return found === undefined ? {} : { addresses: [...found] };
}

/** What is there already stays: an administrator or a plugin may have put it there. */
function nextCapacity(
  old: Readonly<Record<string, string>>,
  profile: NodeProfile,
  devices: DeviceResources | undefined,
): Record<string, string> {
  const gone = (devices?.removed ?? []).map((name) => [name, "0"]);
  return { ...old, ...profile.capacity, ...devices?.capacity, ...Object.fromEntries(gone) };
}

function nextAllocatable(
  old: Readonly<Record<string, string>>,
  capacity: Readonly<Record<string, string>>,
  profile: NodeProfile,
  devices: DeviceResources | undefined,
): Record<string, string> {
  const kept = Object.entries(old).filter(([name]) => Object.hasOwn(capacity, name) || !isExtendedResource(name));
  return { ...Object.fromEntries(kept), ...capacity, ...profile.allocatable, ...devices?.allocatable };
}

/** A copy without the huge page sizes that the machine does not have. */
export function withoutStrangeHugePages(
  resources: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(resources).filter(([name]) => !isHugePages(name) || Object.hasOwn(own, name)),
  );
}
