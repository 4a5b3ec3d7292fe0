import { parseQuantity, valueBig } from "../../mod/kube/quantity.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { VolumeSpecError } from "./plugin.ts";

const anySize = "HugePages";
const medium = /^HugePages(?:-(.+))?$/;
const resource = /^hugepages-(.+)$/;

/** True for an emptyDir's medium that means huge pages, with or without a size. */
export function isHugePages(text: string): boolean {
  return medium.test(text);
}

/**
 * The size of the pages of a huge page volume (features.md section 11), as a quantity such as `2Mi`. A medium without
 * a size takes the one that the pod's containers request. Throws VolumeSpecError when they request none, or several.
 */
export function hugePageSize(pod: BoundPod, text: string): string {
  const wanted = medium.exec(text)?.[1];
  const requests = [...pod.spec.containers, ...pod.spec.initContainers ?? []].map((c) => c.resources);
  const requested = new Map<bigint, string>();
  for (const { requests: some = {}, limits = {} } of [pod.spec.resources ?? {}, ...requests.map((r) => r ?? {})]) {
    // Requests and limits of huge pages are equal; a manifest may have only the latter.
    for (const name of [...Object.keys(some), ...Object.keys(limits)]) {
      const size = resource.exec(name)?.[1];
      if (size !== undefined) requested.set(bytesOf(size, name), size);
    }
  }
  if (wanted === undefined) {
    if (requested.size > 1) {
      throw new VolumeSpecError(`medium: ${anySize} can't be used if container requests multiple huge page sizes`);
    }
    const [size] = requested.values();
    if (size !== undefined) return size;
  } else {
    const size = requested.get(bytesOf(wanted, `emptyDir medium ${text}`));
    if (size !== undefined) return size;
  }
  throw new VolumeSpecError(
    `medium ${text}: hugePages storage requested, but there is no resource request for huge pages`,
  );
}

function bytesOf(text: string, what: string): bigint {
  return valueBig(parseQuantity(text, { what, code: "BadPod" }));
}
