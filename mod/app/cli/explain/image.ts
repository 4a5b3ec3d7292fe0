import type { LocalImage, LocalPod } from "../../../server/local/types.ts";
import { line } from "./words.ts";

/** An image's name without what the default registry adds. */
function plain(image: string): string {
  const short = image.replace(/^docker\.io\/(library\/)?/, "");
  return /[:@]/.test(short.slice(short.lastIndexOf("/") + 1)) ? short : `${short}:latest`;
}

/** What the agent tells of the node's images; a text says why it tells nothing. */
export type SeenImages = { readonly images: readonly LocalImage[]; readonly usagePercent: number } | string;

/**
 * Says which containers use an image, what is wrong with its pull as far as the pods' statuses tell, and whether the
 * next collection of unused images removes it. Pure.
 */
export function explainImage(image: string, pods: readonly LocalPod[], seen: SeenImages): string {
  const uses = usesOf(image, pods);
  const first = uses.length === 0
    ? `Image ${line(image)}: no pod of this agent uses it.`
    : [`Image ${line(image)} is used by:`, ...uses].join("\n");
  return [first, fate(image, seen)].join("\n\n");
}

function usesOf(image: string, pods: readonly LocalPod[]): string[] {
  const wanted = plain(image);
  return pods.flatMap(({ pod, status }) => {
    const specs = [...pod.spec.initContainers ?? [], ...pod.spec.containers];
    const states = [...status?.initContainerStatuses ?? [], ...status?.containerStatuses ?? []];
    return specs.flatMap((spec) => {
      const state = states.find((one) => one.name === spec.name);
      const names = [spec.image ?? "", state?.image ?? ""].filter((name) => name !== "").map(plain);
      const byId = state?.imageID !== undefined && state.imageID !== "" && state.imageID.includes(image);
      if (!names.includes(wanted) && !byId) return [];
      const { waiting, running } = state?.state ?? {};
      const how = running
        ? "runs"
        : waiting
        ? `waits: ${waiting.reason ?? ""}${waiting.message ? `: ${line(waiting.message)}` : ""}`
        : "ended";
      const { namespace, name } = pod.metadata;
      return [
        `  ${namespace}/${name}, container ${spec.name} (imagePullPolicy ${spec.imagePullPolicy ?? "by tag"}): ${how}`,
      ];
    });
  });
}

/** Fewest characters of an id that may stand for it. */
const shortest = 6;

function fate(image: string, seen: SeenImages): string {
  if (typeof seen === "string") return `Whether it would be removed is not known: ${line(seen)}`;
  const wanted = plain(image);
  const found = seen.images.filter(({ id, names }) =>
    names.some((name) => plain(name) === wanted) ||
    (image.length >= shortest && (id.startsWith(image) || id.replace(/^sha256:/, "").startsWith(image)))
  );
  if (found.length === 0) return "The node does not have it.";
  return found.map(({ id, size, remove, message }) => {
    const what = `On the node as ${line(id)}, ${(size / 2 ** 20).toFixed(1)} MiB`;
    const disk = `the disk of the images is ${seen.usagePercent} % full`;
    return `${what}: ${remove ? "the next collection removes it" : "it stays"}, as ${line(message)} (${disk}).`;
  }).join("\n");
}
