import type { ContainerStats } from "../../cri/gen/runtime_pb.ts";
import type { GroupSample } from "./types.ts";

/** What the runtime tells of a container. */
export interface ToldContainer {
  readonly layer?: { readonly at: number; readonly used?: number; readonly inodes?: number };
  /** CPU and memory, where it tells any. */
  readonly sample?: GroupSample;
}

/** A figure of the runtime's; 0 for one that it does not tell. */
function of(figure: { readonly value: bigint } | undefined): number {
  return Number(figure?.value ?? 0n);
}

function millis(timestamp: bigint, now: number): number {
  return Number(timestamp / 1_000_000n) || now;
}

/** Reads a container's CRI statistics. @param now what stands for a time that the runtime left out, milliseconds */
export function toldContainer({ cpu, memory, writableLayer, swap }: ContainerStats, now: number): ToldContainer {
  const layer = writableLayer && {
    at: millis(writableLayer.timestamp, now),
    ...(writableLayer.usedBytes ? { used: of(writableLayer.usedBytes) } : {}),
    ...(writableLayer.inodesUsed ? { inodes: of(writableLayer.inodesUsed) } : {}),
  };
  const sample = (cpu ?? memory) && {
    at: millis(cpu?.timestamp ?? memory?.timestamp ?? 0n, now),
    ...(cpu?.usageCoreNanoSeconds ? { cpuNs: of(cpu.usageCoreNanoSeconds) } : {}),
    ...(memory?.workingSetBytes
      ? {
        memory: {
          usage: of(memory.usageBytes),
          workingSet: of(memory.workingSetBytes),
          rss: of(memory.rssBytes),
          cache: 0,
          mappedFile: 0,
          activeFile: 0,
          inactiveFile: 0,
          pageFaults: of(memory.pageFaults),
          majorPageFaults: of(memory.majorPageFaults),
          allPageFaults: of(memory.pageFaults),
          allMajorPageFaults: of(memory.majorPageFaults),
        },
      }
      : {}),
    ...(swap?.swapUsageBytes ? { swap: { usage: of(swap.swapUsageBytes) } } : {}),
  };
  return { ...(layer ? { layer } : {}), ...(sample ? { sample } : {}) };
}
