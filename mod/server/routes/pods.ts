import type { Container, Pod, PodCondition } from "../../kube/types.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { send, sendJson, writeError } from "../respond.ts";
import type { PodWithStatus, RequestContext, RouteGroup, ServerBackend } from "../types.ts";

/** A condition as Go prints it: its two times are never left out. */
function condition({ type, status, lastProbeTime, lastTransitionTime, ...rest }: PodCondition) {
  return {
    type,
    ...(rest.observedGeneration === undefined ? {} : { observedGeneration: rest.observedGeneration }),
    status,
    lastProbeTime: lastProbeTime ?? null,
    lastTransitionTime: lastTransitionTime ?? null,
    ...rest,
  };
}

/** A desired pod as /pods shows it: with the status that the agent would report, or an empty one. */
export function podJson({ pod, status }: PodWithStatus): unknown {
  const { metadata, spec } = pod;
  // Like the times of a condition, a container's resources are printed where there are none.
  const full = <T extends Pick<Container, "resources">>(list: readonly T[]) =>
    list.map((each) => ({ ...each, resources: each.resources ?? {} }));
  const shown = status ?? pod.status ?? {};
  return {
    metadata,
    spec: {
      ...spec,
      ...(spec.initContainers ? { initContainers: full(spec.initContainers) } : {}),
      containers: full(spec.containers),
    },
    status: shown.conditions ? { ...shown, conditions: shown.conditions.map(condition) } : shown,
  };
}

/** A pod of the runtime as /runningpods shows it: identity, and name and image of its running containers. */
export function runningPod(observed: ObservedPod): Pod {
  const running = observed.containers.filter((container) => container.state === "running");
  return {
    metadata: { name: observed.name, namespace: observed.namespace, uid: observed.uid },
    spec: { containers: running.map(({ name, image }) => ({ name, image, resources: {} })) },
    status: {},
  };
}

function podList(items: readonly unknown[]): string {
  // A list of Go that was never added to prints as null.
  return JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: {}, items: items.length > 0 ? items : null });
}

/** True when the Accept header admits JSON. */
export function acceptsJson(context: RequestContext): boolean {
  const accept = context.request.headers.accept ?? "";
  if (accept === "") return true;
  return accept.split(",").some((each) => {
    const type = each.split(";", 1)[0]?.trim();
    return type === "*/*" || type === "application/*" || type === "application/json";
  });
}

/** Sends JSON where the client takes it, else 406 as the API says it. */
export function offerJson(context: RequestContext, make: () => string): void {
  if (acceptsJson(context)) return sendJson(context, make());
  writeError(context, 406, "406: Not Acceptable\n\nAvailable representations: application/json");
}

/** /pods (group A). */
export function podsGroup(backend: ServerBackend): RouteGroup {
  return {
    name: "pods",
    access: "A",
    buckets: ["pods"],
    routes: [{
      methods: ["GET"],
      path: "/pods",
      handler: (context) => offerJson(context, () => podList(backend.pods().map(podJson))),
    }],
  };
}

/** /runningpods/ (group B): pods of which the runtime runs something. */
export function runningPodsGroup(backend: ServerBackend): RouteGroup {
  const running = () =>
    [...backend.allObserved()].filter((pod) =>
      pod.sandboxes.some((sandbox) => sandbox.ready) || pod.containers.some((each) => each.state === "running")
    );
  return {
    name: "runningpods",
    access: "B",
    buckets: ["runningpods"],
    root: "/runningpods/",
    routes: [{
      methods: ["GET"],
      path: "/runningpods/",
      handler: (context) => offerJson(context, () => podList(running().map(runningPod))),
    }],
  };
}

/** /configz (group B). */
export function configzGroup(backend: ServerBackend): RouteGroup {
  return {
    name: "configz",
    access: "B",
    buckets: ["configz"],
    routes: [{
      methods: "*",
      path: "/configz",
      handler: (context) =>
        send(context, 200, JSON.stringify({ kubeletconfig: backend.configz() }), {
          "content-type": "application/json",
          "x-content-type-options": "nosniff",
        }),
    }],
  };
}
