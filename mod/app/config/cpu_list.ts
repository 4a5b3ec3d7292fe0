import { KubeletError } from "../../base/errors.ts";

/** The highest CPU number taken; Linux has at most 8192 CPUs. */
const MAX_CPU = 65535;

/** Reads a CPU list (`0-3,8`), sorted and without doubles; throws a KubeletError (BadConfig). */
export function parseCpuList(text: string): number[] {
  const cpus = new Set<number>();
  for (const part of text.trim() === "" ? [] : text.trim().split(",")) {
    const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? first);
    if (match === null || last < first || last > MAX_CPU) {
      throw new KubeletError(
        "BadConfig",
        `${JSON.stringify(part.slice(0, 40))} is no CPU or range of CPUs; write for example 0-1,4`,
      );
    }
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}
