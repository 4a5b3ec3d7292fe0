import { parseQuantity } from "../../mod/kube/quantity.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { ContainerSample, FsSample, MemorySample, NodeSample, PodSample, StatsSnapshot } from "../stats/types.ts";
import type { EvictionPolicy, Signal, Threshold } from "./types.ts";

export const Mi = 1024 * 1024;
export const Gi = 1024 * Mi;

/** A threshold from texts, such as `hard("memory.available", "100Mi")`. */
export function hard(signal: Signal, text: string, more: { grace?: number; reclaim?: string } = {}): Threshold {
  const amount = (of: string) =>
    of.endsWith("%") ? { share: Number(of.slice(0, -1)) / 100 } : { quantity: parseQuantity(of) };
  return {
    signal,
    value: amount(text),
    gracePeriodMs: more.grace ?? 0,
    ...(more.reclaim === undefined ? {} : { minReclaim: amount(more.reclaim) }),
  };
}

/** Memory of a group of which only these figures matter. */
export function memory(workingSet: number, more: Partial<MemorySample> = {}): MemorySample {
  const none = { rss: 0, cache: 0, mappedFile: 0, activeFile: 0, inactiveFile: 0 };
  const faults = { pageFaults: 0, majorPageFaults: 0, allPageFaults: 0, allMajorPageFaults: 0 };
  return { usage: workingSet, workingSet, ...none, ...faults, ...more };
}

/** A file system. */
export function fs(at: number, available: number, capacity: number, more: Partial<FsSample> = {}): FsSample {
  return { at, available, capacity, inodesFree: 900, inodes: 1000, ...more };
}

/** A node of 10 GiB of memory and a 100 GiB disk of which half is free, unless told otherwise. */
export function snapshot(at: number, node: Partial<NodeSample> = {}, pods: readonly PodSample[] = []): StatsSnapshot {
  return {
    at,
    detail: "summary",
    node: {
      name: "node1",
      startedAt: 0,
      memoryCapacity: 10 * Gi,
      swapCapacity: 0,
      cpus: 2,
      sample: { at, memory: memory(2 * Gi) },
      system: [],
      fs: fs(at, 50 * Gi, 100 * Gi),
      imageFs: fs(at, 50 * Gi, 100 * Gi),
      rlimit: { at, maxPid: 1000, running: 100 },
      ...node,
    },
    pods,
  };
}

/** What the statistics tell of a pod. */
export function podStats(uid: string, more: Partial<PodSample> = {}): PodSample {
  return {
    uid,
    name: uid,
    namespace: "ns",
    startedAt: 0,
    group: undefined,
    sample: undefined,
    containers: [],
    ...more,
  };
}

/** What the statistics tell of a container. */
export function containerStats(name: string, more: Partial<ContainerSample> = {}): ContainerSample {
  return { name, id: name, image: "i", startedAt: 0, group: undefined, sample: undefined, ...more };
}

/** An ordinary pod. */
export function pod(
  name: string,
  spec: Partial<BoundPod["spec"]> = {},
  annotations?: Record<string, string>,
): BoundPod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "ns", uid: name, ...(annotations ? { annotations } : {}) },
    spec: { containers: [{ name: "main", image: "i" }], ...spec },
  };
}

/** A policy that evicts nothing until thresholds are given. */
export const policy: EvictionPolicy = {
  thresholds: [],
  allocatableEnforced: false,
  transitionMs: 300_000,
  maxPodGraceSeconds: 0,
  storageLimits: true,
  ignorePageCache: false,
  dryRun: false,
  staticPods: false,
};
