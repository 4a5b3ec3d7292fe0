import type { BoundPod } from "../../mod/kube/types.ts";
import type { PodSample } from "../stats/types.ts";
import type { MemoryView } from "./observations.ts";
import { signalFacts } from "./signals.ts";
import type { DiskLayout, Signal } from "./types.ts";
import { diskUsage, memoryUsage, partsOn, requestOf } from "./usage.ts";

export interface RankInput extends MemoryView {
  readonly pods: readonly BoundPod[];
  /** By pod UID. */
  readonly stats: ReadonlyMap<string, PodSample>;
  readonly signal: Signal;
  readonly layout: DiskLayout;
}

/** What a pod is ranked by. */
interface Standing {
  readonly pod: BoundPod;
  readonly known: boolean;
  readonly exceeds: boolean;
  readonly priority: number;
  /** Usage beyond the request; processes as they are. */
  readonly beyond: number;
}

/**
 * The pods in the order in which they are to be evicted (runtime-contract.md section 20): those of which nothing is
 * known and those that use more than they request first, then by lower priority, then by how far usage exceeds the
 * request. Shortage of processes goes by priority, then by processes. Pods that are alike keep their order.
 */
export function rank(input: RankInput): BoundPod[] {
  const { resource } = signalFacts[input.signal];
  const standings = input.pods.map((pod): Standing => {
    const stats = input.stats.get(pod.metadata.uid);
    const priority = pod.spec.priority ?? 0;
    if (!stats) return { pod, known: false, exceeds: false, priority, beyond: 0 };
    const [usage, request] = figures(pod, stats, input);
    const exceeds = usage > (resource === "inodes" ? 0 : request);
    return { pod, known: true, exceeds, priority, beyond: usage - request };
  });
  const first = (a: boolean, b: boolean) => Number(b) - Number(a);
  return standings.sort((a, b) => {
    const unknown = first(!a.known, !b.known);
    if (resource === "pids") return a.priority - b.priority || unknown || b.beyond - a.beyond;
    return unknown || first(a.exceeds, b.exceeds) || a.priority - b.priority || b.beyond - a.beyond;
  }).map(({ pod }) => pod);
}

/** What a pod uses of what runs short, and what it requests of it. */
function figures(pod: BoundPod, stats: PodSample, input: RankInput): [usage: number, request: number] {
  const { resource } = signalFacts[input.signal];
  if (resource === "memory") return [memoryUsage(stats, input), requestOf(pod, "memory")];
  if (resource === "pids") return [stats.sample?.pids ?? 0, 0];
  const usage = diskUsage(pod, stats, partsOn(input.signal, input.layout), resource);
  // The reference takes the request in bytes off the inodes too, so that pods without one come first.
  return [usage, requestOf(pod, "ephemeral-storage")];
}
