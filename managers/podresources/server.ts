import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { GrpcError } from "../../mod/base/grpc_error.ts";
import { served, type ServedMethod, serveGrpc } from "../../mod/base/grpc_server.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import { PodResourcesLister } from "../../mod/kube/gen/plugins/pod_resources_pb.ts";
import { PodResourcesLister as AlphaLister } from "../../mod/kube/gen/plugins/pod_resources_v1alpha1_pb.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import type { Devices, ResourceDevices } from "../devices/types.ts";

/** Calls a second, and at once (features.md G12). */
const qps = 100;
const burst = 10;
const socketName = "kubelet.sock";

export interface PodResourcesOptions {
  /** `<root>/pod-resources`. */
  readonly dir: string;
  readonly host: Pick<Host, "mkdir" | "remove">;
  readonly devices: Pick<Devices, "given" | "allocatable" | "release">;
  /** The pods that are listed: those that have not ended. */
  readonly pods: () => Iterable<BoundPod>;
  readonly podByName: (namespace: string, name: string) => BoundPod | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of each call that was answered, or failed; not of those that were too many. */
  readonly onCall?: (call: PodResourcesCall) => void;
}

/** A call, for the metrics. */
export interface PodResourcesCall {
  readonly version: "v1" | "v1alpha1";
  readonly method: "list" | "get" | "get_allocatable";
  readonly failed: boolean;
}

/**
 * Tells which resources containers have, to monitoring agents of the node, until the signal aborts (features.md G12). An
 * agent that can't have its socket goes on without; that is logged.
 */
export async function servePodResources(options: PodResourcesOptions, signal: AbortSignal): Promise<void> {
  const { dir, host, log } = options;
  const path = `${dir}/${socketName}`;
  try {
    await host.mkdir(dir, { mode: 0o750 });
    await host.remove(path);
    await serveGrpc({ path, methods: podResourcesMethods(options), log, signal });
  } catch (thrown) {
    if (!signal.aborted) {
      log.error("the resources of pods cannot be asked for", { socket: path, error: messageOf(thrown) });
    }
  }
}

/** What is answered; of all methods together a limited number a second. */
export function podResourcesMethods(options: PodResourcesOptions): ServedMethod[] {
  const { devices, pods, podByName, onCall } = options;
  const limit = rateLimit(options.clock);
  const counted = <I, O>(call: Omit<PodResourcesCall, "failed">, answer: (request: I) => O) => (request: I): O => {
    limit();
    let failed = true;
    try {
      const told = answer(request);
      failed = false;
      return told;
    } finally {
      onCall?.({ ...call, failed });
    }
  };
  const containerOf = (pod: BoundPod) => ({ name }: Container) => ({
    name,
    devices: listed(devices.given(pod.metadata.uid, name)),
  });
  const resourcesOf = (pod: BoundPod) => ({
    name: pod.metadata.name,
    namespace: pod.metadata.namespace,
    containers: [
      ...(pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always"),
      ...pod.spec.containers,
    ].map(containerOf(pod)),
  });
  const { list, get, getAllocatableResources } = PodResourcesLister.method;
  return [
    served(
      list,
      counted({ version: "v1", method: "list" }, () => {
        devices.release();
        return { podResources: [...pods()].map(resourcesOf) };
      }),
    ),
    served(
      get,
      counted(
        { version: "v1", method: "get" },
        ({ podName, podNamespace }: { podName: string; podNamespace: string }) => {
          const pod = podByName(podNamespace, podName);
          if (!pod) throw new KubeletError("BadPod", `pod ${podName} in namespace ${podNamespace} not found`);
          return { podResources: resourcesOf(pod) };
        },
      ),
    ),
    served(
      getAllocatableResources,
      counted({ version: "v1", method: "get_allocatable" }, () => ({ devices: listed(devices.allocatable()) })),
    ),
    served(
      AlphaLister.method.list,
      counted({ version: "v1alpha1", method: "list" }, () => {
        devices.release();
        return {
          podResources: [...pods()].map((pod) => ({
            name: pod.metadata.name,
            namespace: pod.metadata.namespace,
            containers: pod.spec.containers.map(containerOf(pod)).map(({ name, devices: own }) => ({
              name,
              devices: own.map(({ resourceName, deviceIds }) => ({ resourceName, deviceIds })),
            })),
          })),
        };
      }),
    ),
  ];
}

/** Each device by itself, and once for each NUMA node that it has, as the reference lists them. */
function listed(resources: readonly ResourceDevices[]) {
  return resources.flatMap(({ resource, devices }) =>
    devices.flatMap(({ id, nodes }) => {
      const one = { resourceName: resource, deviceIds: [id] };
      return nodes.length === 0
        ? [one]
        : nodes.map((node) => ({ ...one, topology: { nodes: [{ ID: BigInt(node) }] } }));
    })
  );
}

/** Throws when there have been too many calls; nobody waits. */
function rateLimit(clock: Clock): () => void {
  let tokens = burst, at = clock.now();
  return () => {
    const now = clock.now();
    tokens = Math.min(burst, tokens + Math.max(0, now - at) / 1000 * qps);
    at = now;
    if (tokens < 1) throw new GrpcError("ResourceExhausted", "rejected by rate limit");
    tokens--;
  };
}
