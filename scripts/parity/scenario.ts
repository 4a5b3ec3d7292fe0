import type { ContainerStatus, Event, Pod, PodSpec } from "../../mod/kube/types.ts";

/** What is known of a pod at a moment. */
export interface Seen {
  /** Its newest version; the last one when it is gone. */
  readonly pod: Pod;
  readonly deleted: boolean;
  /** The node's events about it. */
  readonly events: readonly Event[];
}

/** What a step may do to its pod. */
export interface Hands {
  /** Calls the API server as its administrator; a body is sent as JSON. */
  call(method: string, path: string, body?: unknown, type?: string): Promise<void>;
  /** The pod's path on the API server. */
  readonly path: string;
}

/** A moment in a pod's life at which the two kubelets are compared. */
export interface Step {
  readonly name: string;
  /** What is done first. */
  readonly act?: (hands: Hands) => Promise<void>;
  /** When it has come; the newest version that fits, a moment later, is compared. */
  readonly until: (seen: Seen) => boolean;
}

/** A pod with the moments at which it is looked at. */
export interface Scenario {
  readonly name: string;
  readonly pod: Pod;
  /** From a manifest, not from the API: what is compared is its mirror. */
  readonly static?: boolean;
  readonly steps: readonly Step[];
}

/** A container of the busybox image that runs until it is ended. */
export function box(name: string, more: Partial<PodSpec["containers"][number]> = {}): PodSpec["containers"][number] {
  return {
    name,
    image: "localhost/busybox:1",
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait $!"],
    ...more,
  };
}

/** A container that runs a line of shell. */
export function shell(
  name: string,
  line: string,
  more: Partial<PodSpec["containers"][number]> = {},
): PodSpec["containers"][number] {
  return box(name, { command: ["sh", "-c", line], ...more });
}

/** A container that says in its termination message what it sees, and ends. */
export function tells(
  name: string,
  line: string,
  more: Partial<PodSpec["containers"][number]> = {},
): PodSpec["containers"][number] {
  return shell(name, `( ${line} ) > /dev/termination-log 2>&1`, more);
}

/** A pod of the namespace `default`, bound to the node by whoever creates it. */
export function pod(name: string, spec: PodSpec, metadata: Pod["metadata"] = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", ...metadata },
    spec: { terminationGracePeriodSeconds: 2, ...spec },
  };
}

/** One moment, without anything done before. */
export function once(name: string, until: Step["until"]): Step[] {
  return [{ name, until }];
}

/** Whether the pod's condition has the status. */
export function condition(type: string, status = "True"): Step["until"] {
  return ({ pod }) => pod.status?.conditions?.some((one) => one.type === type && one.status === status) ?? false;
}

export const ready: Step["until"] = condition("Ready");

/** Whether the node has written of the pod at all. */
export function told({ pod }: Seen): boolean {
  return pod.status?.startTime !== undefined;
}

/** Whether the pod has come to a phase. */
export function phase(wanted: string): Step["until"] {
  return ({ pod }) => pod.status?.phase === wanted;
}

/** Whether the pod has ended with a phase, and its sandbox too. */
export function ended(wanted: string): Step["until"] {
  return all(phase(wanted), condition("PodReadyToStartContainers", "False"));
}

/** Whether a container of any kind is as wanted. */
export function container(name: string, look: (status: ContainerStatus) => boolean): Step["until"] {
  return ({ pod: { status } }) =>
    [
      ...status?.initContainerStatuses ?? [],
      ...status?.containerStatuses ?? [],
      ...status?.ephemeralContainerStatuses ?? [],
    ].some((one) => one.name === name && look(one));
}

/** Whether a container waits for a reason, after at least so many restarts. */
export function waiting(name: string, reason: string, restarts = 0): Step["until"] {
  return container(name, (one) => one.state?.waiting?.reason === reason && (one.restartCount ?? 0) >= restarts);
}

/** Whether the node told of a reason at least so many times. */
export function event(reason: string, times = 1): Step["until"] {
  return ({ events }) =>
    events.filter((one) => one.reason === reason).reduce((sum, one) => sum + (one.count ?? 1), 0) >= times;
}

/** Whether all of them hold. */
export function all(...looks: readonly Step["until"][]): Step["until"] {
  return (seen) => looks.every((look) => look(seen));
}

/** Deletes the pod, and waits until it is gone: what is compared is the last that was seen of it. */
export function deletion(name: string, gracePeriodSeconds?: number): Step {
  return {
    name,
    act: (hands) => hands.call("DELETE", hands.path, gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    until: ({ deleted }) => deleted,
  };
}
