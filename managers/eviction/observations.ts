import { type QuantityFormat, quantityOf } from "../../mod/kube/quantity.ts";
import type { FsSample, MemorySample, StatsSnapshot } from "../stats/types.ts";
import { psiSignals } from "./signals.ts";
import { percentOf } from "./thresholds.ts";
import type { Observation, Observations, Signal } from "./types.ts";

export interface MemoryView {
  /** File cache in use does not count as used. */
  readonly ignorePageCache: boolean;
}

/** Bytes that count as used. */
export function usedMemory(memory: MemorySample, { ignorePageCache }: MemoryView): number {
  return Math.max(0, memory.workingSet - (ignorePageCache ? memory.activeFile : 0));
}

function observation(
  available: number | undefined,
  capacity: number | undefined,
  at: number,
  format: QuantityFormat,
): Observation | undefined {
  if (!usable(available) || !usable(capacity)) return undefined;
  return { available: quantityOf(available, format), capacity: quantityOf(capacity, format), at };
}

/** Figures come from files that another program or a container may have shaped. */
function usable(figure: number | undefined): figure is number {
  return figure !== undefined && Number.isFinite(figure);
}

/** What a reading says of each signal (runtime-contract.md section 20). What is not known is left out. */
export function observe(snapshot: StatsSnapshot, view: MemoryView): Observations {
  const { node } = snapshot;
  const found = new Map<Signal, Observation>();
  const put = (signal: Signal, seen: Observation | undefined) => {
    if (seen) found.set(signal, seen);
  };
  const memory = (signal: Signal, sample: MemorySample | undefined, limit: number | undefined, at: number) => {
    if (!sample || limit === undefined) return;
    const used = usedMemory(sample, view);
    const available = Math.max(0, limit - used);
    put(signal, observation(available, available + used, at, "BinarySI"));
  };
  memory("memory.available", node.sample.memory, node.memoryCapacity, node.sample.at);
  const pods = node.system.find(({ name }) => name === "pods")?.sample;
  if (pods) memory("allocatableMemory.available", pods.memory, pods.memory?.limit, pods.at);
  const disk = (signal: "nodefs" | "imagefs" | "containerfs", fs: FsSample | undefined) => {
    if (!fs) return;
    put(`${signal}.available`, observation(fs.available, fs.capacity, fs.at, "BinarySI"));
    // A file system that makes inodes as it needs them (btrfs) tells of none.
    if (fs.inodes !== 0) put(`${signal}.inodesFree`, observation(fs.inodesFree, fs.inodes, fs.at, "DecimalSI"));
  };
  disk("nodefs", node.fs);
  disk("imagefs", node.imageFs);
  // The runtime tells of one file system for both (metrics.md section 9).
  disk("containerfs", node.imageFs);
  const { at = 0, maxPid, running } = node.rlimit ?? {};
  if (maxPid !== undefined && running !== undefined) {
    put("pid.available", observation(maxPid - running, maxPid, at, "DecimalSI"));
  }
  const lost = node.sample.psi?.memory;
  for (const { signal, line, average } of psiSignals) {
    const percent = lost?.[line][average];
    if (!usable(percent)) continue;
    put(signal, { available: percentOf(100 - percent), capacity: percentOf(100), at: node.sample.at });
  }
  return found;
}
