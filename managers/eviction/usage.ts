import { addQuantities, parseQuantity, type Quantity, quantityOf, zeroQuantity } from "../../mod/kube/quantity.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";
import { podRequests } from "../../mod/pod/resources.ts";
import type { FsSample, PodSample } from "../stats/types.ts";
import { type MemoryView, usedMemory } from "./observations.ts";
import type { DiskLayout, Signal } from "./types.ts";

/** Parts of what a pod keeps on disks: writable layers, logs, and volumes that are directories of the node. */
export type DiskPart = "root" | "logs" | "volumes";

const everything: readonly DiskPart[] = ["root", "logs", "volumes"];

/** Which parts count when a file system runs full; none of them do for images that nothing but images lie on. */
export function partsOn(signal: Signal, layout: DiskLayout): readonly DiskPart[] {
  if (layout === "single") return everything;
  const fs = signal.split(".")[0];
  if (layout === "imagefs") return fs === "nodefs" ? ["logs", "volumes"] : ["root"];
  return fs === "imagefs" ? [] : everything;
}

/** Volumes whose files are the node's own: hostPath too, but neither memory nor what the agent itself writes. */
function isLocal(volume: Volume): boolean {
  if (volume.hostPath || volume.configMap || volume.gitRepo) return true;
  return volume.emptyDir !== undefined && !volume.emptyDir.medium;
}

/** Bytes, or inodes, that a pod keeps on a disk. */
export function diskUsage(
  pod: BoundPod,
  stats: PodSample,
  parts: readonly DiskPart[],
  resource: "ephemeral-storage" | "inodes",
): number {
  const of = (fs: FsSample | undefined) => (resource === "inodes" ? fs?.inodesUsed : fs?.used) ?? 0;
  let sum = 0;
  for (const { rootfs, logs } of stats.containers) {
    if (parts.includes("root")) sum += of(rootfs);
    if (parts.includes("logs")) sum += of(logs);
  }
  if (!parts.includes("volumes")) return sum;
  const local = new Set((pod.spec.volumes ?? []).filter(isLocal).map(({ name }) => name));
  for (const volume of stats.volumes ?? []) if (local.has(volume.name)) sum += of(volume);
  return sum;
}

/** Bytes of memory that a pod uses; 0 when that is not known. */
export function memoryUsage({ sample }: PodSample, view: MemoryView): number {
  return sample?.memory ? usedMemory(sample.memory, view) : 0;
}

/** What a pod asks for, in bytes; its sandbox's overhead counts where it asks for anything. */
export function requestOf(pod: BoundPod, resource: "memory" | "ephemeral-storage"): number {
  const own = podRequests(pod, { overhead: false })[resource] ?? 0n;
  return Number(own === 0n ? own : podRequests(pod)[resource] ?? own);
}

/** The sum of the containers' limits on storage of the node, as the reference adds them up; undefined without any. */
export function storageLimit(pod: BoundPod): Quantity | undefined {
  const resource = "ephemeral-storage";
  const { initContainers = [], containers, overhead } = pod.spec;
  const limitOf = (list: Readonly<Record<string, string>> | undefined) => {
    const text = list?.[resource];
    return text === undefined ? undefined : parseQuantity(text, { what: resource, code: "BadPod" });
  };
  let found = false;
  const add = (sum: Quantity, more: Quantity | undefined) => {
    if (!more) return sum;
    found = true;
    return sum.nano === 0n ? more : addQuantities(sum, more);
  };
  const larger = (a: Quantity, b: Quantity) => b.nano > a.nano ? b : a;
  let sum = zeroQuantity, sidecars = zeroQuantity, peak = zeroQuantity;
  for (const { resources } of containers) sum = add(sum, limitOf(resources?.limits));
  for (const { resources, restartPolicy } of initContainers) {
    const own = limitOf(resources?.limits);
    if (restartPolicy === "Always") {
      sum = add(sum, own);
      peak = larger(peak, sidecars = add(sidecars, own));
    } else peak = larger(peak, add(sidecars, own));
  }
  if (!found) return undefined;
  const total = larger(sum, peak);
  const extra = limitOf(overhead);
  return extra && total.nano > 0n ? addQuantities(total, extra) : total;
}

/** A number of bytes as messages show it. */
export function bytesOf(bytes: number): Quantity {
  return quantityOf(bytes, "BinarySI");
}
