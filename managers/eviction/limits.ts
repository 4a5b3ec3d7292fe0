import { compareQuantities, formatQuantity, tryParseQuantity } from "../../mod/kube/quantity.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { PodSample } from "../stats/types.ts";
import type { LimitSignal } from "./types.ts";
import { bytesOf, storageLimit } from "./usage.ts";

/** A limit of its own that a pod has gone beyond. */
export interface Excess {
  readonly signal: LimitSignal;
  readonly message: string;
}

/** True for a pod that has a limit on storage of the node. */
export function hasStorageLimit(pod: BoundPod): boolean {
  return (pod.spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined) ||
    [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]
      .some(({ resources }) => resources?.limits?.["ephemeral-storage"] !== undefined);
}

/**
 * The first limit on storage of the node that a pod has gone beyond: of an emptyDir, of the pod, of a container
 * (runtime-contract.md section 20, features F24). What is not measured yet exceeds nothing.
 * @param dedicatedImageFs writable layers lie on another disk, and do not count for a container's limit
 */
export function storageExcess(
  pod: BoundPod,
  stats: PodSample,
  { dedicatedImageFs }: { dedicatedImageFs: boolean },
): Excess | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    const limit = emptyDir?.sizeLimit === undefined ? undefined : tryParseQuantity(emptyDir.sizeLimit);
    const used = stats.volumes?.findLast((volume) => volume.name === name)?.used;
    if (!limit || limit.nano <= 0n || used === undefined || compareQuantities(bytesOf(used), limit) <= 0) continue;
    const message = `Usage of EmptyDir volume ${quoted(name)} exceeds the limit ${quoted(formatQuantity(limit))}. `;
    return { signal: "emptydirfs.limit", message };
  }
  const ofPod = storageLimit(pod);
  if (ofPod && compareQuantities(bytesOf(stats.ephemeralStorage?.used ?? 0), ofPod) > 0) {
    const limit = formatQuantity(ofPod);
    const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}. `;
    return { signal: "ephemeralpodfs.limit", message };
  }
  for (const { name, rootfs, logs } of stats.containers) {
    const text = pod.spec.containers.find((spec) => spec.name === name)?.resources?.limits?.["ephemeral-storage"];
    const limit = text === undefined ? undefined : tryParseQuantity(text);
    if (!limit || limit.nano === 0n) continue;
    const used = (logs?.used ?? 0) + (dedicatedImageFs ? 0 : rootfs?.used ?? 0);
    if (compareQuantities(limit, bytesOf(used)) >= 0) continue;
    const message = `Container ${name} exceeded its local ephemeral storage limit ${quoted(formatQuantity(limit))}. `;
    return { signal: "ephemeralcontainerfs.limit", message };
  }
  return undefined;
}

/** Names and quantities are plain text: their quotes need no escapes. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
