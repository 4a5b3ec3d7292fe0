import type { Pod } from "../../types.ts";
import { resources } from "../resources.ts";
import type { ApiError, ObjectName, ResourceType } from "../types.ts";
import type { Call } from "./faults.ts";
import { failures } from "./failures.ts";
import type { ObjectStore } from "./store.ts";

/**
 * What a node may not do (the Node authorizer and NodeRestriction, as far as the agent meets them): other nodes'
 * objects, pods of other nodes, and Secrets and ConfigMaps that no pod of its own names. Undefined when it may.
 */
export function refusedForNode(
  node: string,
  resource: ResourceType,
  call: Call,
  store: ObjectStore,
): ApiError | undefined {
  const { name, namespace, verb, fieldSelector } = call;
  const target: Partial<ObjectName> = {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
  };
  const refuse = (why: string) =>
    failures.forbidden(resource, target, `system:node:${node}`, `cannot ${verb} resource "${resource.plural}": ${why}`);
  const selected = new Map((fieldSelector ?? "").split(",").map((term) => term.split("=") as [string, string]));
  const one = name ?? selected.get("metadata.name");
  switch (resource.plural) {
    case "nodes":
    case "csinodes":
      return one === undefined || one === node || verb === "create"
        ? one === undefined && verb !== "create" ? refuse("only its own node") : undefined
        : refuse("only its own node");
    case "leases":
      return (one === undefined || one === node) && namespace === "kube-node-lease"
        ? undefined
        : refuse("only the lease of its own node");
    case "pods": {
      if (verb === "list" || verb === "watch") {
        return selected.get("spec.nodeName") === node ? undefined : refuse("only pods of its own node");
      }
      if (verb === "create" && name === undefined) return undefined;
      if (verb === "create" && call.subresource === undefined) {
        // A node makes mirror pods only, which belong to its object.
        const { ownerReferences = [] } = (call.body as Pod | undefined)?.metadata ?? {};
        const known = store.get(resources.nodes, { name: node })?.metadata?.uid;
        const own = ownerReferences.length === 1 && ownerReferences[0]?.kind === "Node" &&
          known !== undefined && ownerReferences[0].uid === known;
        return own ? undefined : refuse("can only create pods with an owner reference set to itself");
      }
      const pod = name === undefined ? undefined : store.get(resources.pods, { name, ...target }) as Pod | undefined;
      return pod === undefined || pod.spec?.nodeName === node ? undefined : refuse("only pods of its own node");
    }
    case "secrets":
    case "configmaps":
      if (one === undefined || !["get", "list", "watch"].includes(verb)) return refuse("no relationship found");
      return namedByPod(store, node, resource.plural, { name: one, namespace: namespace ?? "" })
        ? undefined
        : refuse("no relationship found between node and this object");
    default:
      return undefined;
  }
}

/** Whether a pod of the node names the object anywhere in its spec. */
function namedByPod(
  store: ObjectStore,
  node: string,
  plural: "secrets" | "configmaps",
  { name, namespace }: ObjectName,
): boolean {
  const pods = store.all(resources.pods) as Pod[];
  const quoted = JSON.stringify(name);
  const keys = plural === "secrets" ? ["secret", "Secret"] : ["configMap"];
  return pods.some(({ spec, metadata }) => {
    if (spec?.nodeName !== node || metadata?.namespace !== namespace) return false;
    const text = JSON.stringify(spec);
    return text.includes(quoted) && keys.some((key) => text.includes(key));
  });
}
