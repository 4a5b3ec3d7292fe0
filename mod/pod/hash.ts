import { fnv1a32, fnv1a64 } from "../base/hash.ts";
import type { BoundPod, Container, ResourceRequirements } from "../kube/types.ts";

const utf8 = new TextEncoder();

/** JSON text as the reference writes it: `<`, `>`, `&` and the two line separators are escaped too. */
function htmlSafeJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * The hash that tells whether a container was made from another definition (runtime-contract.md section 1). Only name
 * and image matter, so that an agent that takes over a node leaves the containers of the one before it alone.
 */
export function containerHash(container: Pick<Container, "name" | "image">): number {
  const json = htmlSafeJson({ image: container.image ?? "", name: container.name });
  return fnv1a32(`([]uint8)[${utf8.encode(json).join(" ")}]`);
}

/** Resources as one text that does not depend on the order of the keys. */
function resourcesText(resources: ResourceRequirements | undefined): string {
  const list = (of: Record<string, string> | undefined) =>
    Object.entries(of ?? {}).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => `${k}=${v}`).join(",");
  const claims = (resources?.claims ?? []).map((c) => c.name).join(",");
  return `limits{${list(resources?.limits)}} requests{${list(resources?.requests)}} claims{${claims}}`;
}

/**
 * The key of a container's restart back-off (runtime-contract.md section 1): a new image or new resources give a new
 * key, which starts the back-off anew. Never leaves the agent, so the text of the resources is our own.
 */
export function backOffKey(pod: BoundPod, container: Container): string {
  const { name, namespace, uid } = pod.metadata;
  const parts = [name, namespace, uid, container.name, container.image ?? "", resourcesText(container.resources)];
  return fnv1a64(parts.join("/")).toString(16);
}

/** The key of an image's pull back-off: per pod, and per image as the spec writes it (section 1). */
export function imageBackOffKey(podUid: string, image: string): string {
  return `${podUid}_${image}`;
}
