import type { PressureCondition, PsiSignal, Resource, Signal } from "./types.ts";

const memory = { condition: "MemoryPressure", resource: "memory" } as const;
const bytes = { condition: "DiskPressure", resource: "ephemeral-storage" } as const;
const inodes = { condition: "DiskPressure", resource: "inodes" } as const;

/** Each signal's node condition, and the resource that runs short (runtime-contract.md section 20). */
export const signalFacts: Readonly<
  Record<Signal, { readonly condition: PressureCondition; readonly resource: Resource }>
> = {
  "memory.available": memory,
  "allocatableMemory.available": memory,
  "memory.some.avg10": memory,
  "memory.some.avg60": memory,
  "memory.some.avg300": memory,
  "memory.full.avg10": memory,
  "memory.full.avg60": memory,
  "memory.full.avg300": memory,
  "nodefs.available": bytes,
  "nodefs.inodesFree": inodes,
  "imagefs.available": bytes,
  "imagefs.inodesFree": inodes,
  "containerfs.available": bytes,
  "containerfs.inodesFree": inodes,
  "pid.available": { condition: "PIDPressure", resource: "pids" },
};

/** Signals of lost time, with the line and the average that each reads. */
export const psiSignals = (["some", "full"] as const).flatMap((line) =>
  (["avg10", "avg60", "avg300"] as const).map((average) => ({
    signal: `memory.${line}.${average}` satisfies PsiSignal,
    line,
    average,
  }))
);

/** True for a signal of lost time, which is no amount. */
export function isPsi(signal: Signal): signal is PsiSignal {
  return psiSignals.some((psi) => psi.signal === signal);
}
