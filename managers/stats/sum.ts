import type { ContainerSample, RatedSample } from "./types.ts";

/** A pod without a group of its own: the sum of its containers, without pressure. */
export function sumOf(containers: readonly ContainerSample[]): RatedSample | undefined {
  const samples = containers.map(({ sample }) => sample).filter((each) => each !== undefined);
  const [first] = samples;
  if (!first) return undefined;
  const sum = (of: (sample: RatedSample) => number | undefined) => {
    const values = samples.map(of).filter((each) => each !== undefined);
    return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0);
  };
  const cpuNs = sum((s) => s.cpuNs), nanoCores = sum((s) => s.nanoCores), swap = sum((s) => s.swap?.usage);
  const memories = samples.map(({ memory }) => memory).filter((each) => each !== undefined);
  const total = (of: (memory: (typeof memories)[number]) => number) => memories.reduce((a, m) => a + of(m), 0);
  return {
    at: first.at,
    ...(cpuNs === undefined ? {} : { cpuNs }),
    ...(nanoCores === undefined ? {} : { nanoCores }),
    ...(swap === undefined ? {} : { swap: { usage: swap } }),
    ...(memories.length === 0 ? {} : {
      memory: {
        usage: total((m) => m.usage),
        workingSet: total((m) => m.workingSet),
        rss: total((m) => m.rss),
        cache: total((m) => m.cache),
        mappedFile: total((m) => m.mappedFile),
        activeFile: total((m) => m.activeFile),
        inactiveFile: total((m) => m.inactiveFile),
        pageFaults: total((m) => m.pageFaults),
        majorPageFaults: total((m) => m.majorPageFaults),
        allPageFaults: total((m) => m.allPageFaults),
        allMajorPageFaults: total((m) => m.allMajorPageFaults),
      },
    }),
  };
}
