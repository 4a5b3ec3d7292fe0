import type { LocalPod } from "../../../server/local/types.ts";
import { line } from "./words.ts";

/** An image's name without what the default registry adds. */
function plain(image: string): string {
  const short = image.replace(/^docker\.io\/(library\/)?/, "");
  return /[:@]/.test(short.slice(short.lastIndexOf("/") + 1)) ? short : `${short}:latest`;
}

/** Says which containers use an image and what is wrong with its pull, as far as the pods' statuses tell. Pure. */
export function explainImage(image: string, pods: readonly LocalPod[]): string {
  const wanted = plain(image);
  const uses = pods.flatMap(({ pod, status }) => {
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
  if (uses.length === 0) return `Image ${line(image)}: no pod of this agent uses it.`;
  return [`Image ${line(image)} is used by:`, ...uses].join("\n");
}
