import { fnv1a128 } from "../../mod/base/hash.ts";
import type { PodEvent } from "../../mod/kube/events.ts";
import type { ObjectReference } from "../../mod/kube/types.ts";
import type { CountedEvent, Occurrence } from "./types.ts";

/** The component that events name as their source (runtime-contract.md section 16). */
export const component = "kubelet";

/** A reference to the pod that an event is about, with the part of it where there is one. */
export function podReference({ pod, fieldPath }: Pick<PodEvent, "pod" | "fieldPath">): ObjectReference {
  const { name, namespace, uid, resourceVersion } = pod.metadata;
  return {
    kind: "Pod",
    namespace,
    name,
    uid,
    apiVersion: "v1",
    ...(resourceVersion ? { resourceVersion } : {}),
    ...(fieldPath ? { fieldPath } : {}),
  };
}

/** A reference to the node. It has no UID: events come before the object is known. */
export function nodeReference(name: string): ObjectReference {
  return { apiVersion: "v1", kind: "Node", name };
}

/** A time as events have it: whole seconds. */
function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** The longest name that an object may have. */
const longestName = 253;

/**
 * A name for an event that is new: that of its object and the time in nanoseconds, in hexadecimal; a digest of that
 * where it would be too long.
 * @param at milliseconds since the epoch @param distinct sets apart events of one millisecond
 */
export function eventName(about: string, at: number, distinct: number): string {
  const nanos = BigInt(Math.trunc(at)) * 1_000_000n + BigInt(distinct % 1_000_000);
  const name = `${about}.${nanos.toString(16)}`;
  return name.length > longestName ? fnv1a128(name).toString(16).padStart(32, "0") : name;
}

/** An event of something that happened now. @param host the node's name @param at milliseconds since the epoch */
export function newEvent(what: Occurrence, host: string, at: number, distinct: number): CountedEvent {
  const { about, type, reason, message, annotations } = what;
  const time = seconds(at);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: eventName(about.name ?? "", at, distinct),
      namespace: about.namespace ?? "default",
      ...(annotations ? { annotations: { ...annotations } } : {}),
    },
    involvedObject: about,
    reason,
    message,
    source: { component, host },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    type,
    reportingComponent: component,
    reportingInstance: host,
  };
}
