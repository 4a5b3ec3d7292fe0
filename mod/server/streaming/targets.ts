import type { BoundPod } from "../../kube/types.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../../pod/observed.ts";
import type { ServerBackend } from "../types.ts";

/**
 * What runs of a desired pod: the newest pod of its full name that the runtime knows (and of this UID, where one is
 * given), and of several the one that has something running (http.md section 4). A static pod's predecessor may still
 * be there under its name.
 */
async function runtimePods(
  backend: ServerBackend,
  pod: BoundPod,
  uid: string | undefined,
  signal: AbortSignal,
): Promise<ObservedPod[]> {
  const { name, namespace, uid: own } = pod.metadata;
  // Looked at now: a container that has just started is not in the last picture yet.
  const current = await backend.refresh(own, signal);
  const others = [...backend.allObserved()].filter((p) =>
    p.namespace === namespace && p.name === name && p.uid !== own
  );
  const made = (p: ObservedPod) => p.sandboxes[0]?.createdAt ?? 0;
  return [...(current ? [current] : []), ...others]
    .filter((p) => uid === undefined || p.uid === uid)
    .sort((a, b) => made(b) - made(a));
}

/** The container that is meant, among those that run; undefined when there is none. */
export async function runningContainer(
  backend: ServerBackend,
  wanted: { pod: BoundPod; uid: string | undefined; container: string },
  signal: AbortSignal,
): Promise<ObservedContainer | undefined> {
  const running = (p: ObservedPod) => p.containers.filter((c) => c.state === "running");
  const pods = await runtimePods(backend, wanted.pod, wanted.uid, signal);
  const pod = pods.find((p) => running(p).length > 0);
  return pod && running(pod).find((c) => c.name === wanted.container);
}

/** The pod's newest sandbox; undefined when nothing of the pod is there. */
export async function newestSandbox(
  backend: ServerBackend,
  wanted: { pod: BoundPod; uid: string | undefined },
  signal: AbortSignal,
): Promise<ObservedSandbox | undefined> {
  const pods = await runtimePods(backend, wanted.pod, wanted.uid, signal);
  return pods.find((p) => p.sandboxes.some((s) => s.ready))?.sandboxes[0];
}
