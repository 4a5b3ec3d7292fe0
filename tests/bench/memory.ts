import { complain } from "../../scripts/lib/print.ts";
import { endPods, residentMiB, startPods, type Subject } from "./agent.ts";
import { settle } from "./marks.ts";
import type { Figure } from "./report.ts";

/** Pods between two looks. */
const step = 250;

/** After so many pods what the agent keeps of all that it did is full: 10,000 journal records, seven a pod. */
const full = 1500;

/**
 * Starts and ends many pods, a batch after another, and looks at the agent's resident memory, with no pod there, after
 * each 250. The floor is the look after 1,500: what still grows then is a leak.
 */
export async function memoryFigures(subject: Subject, options: { pods: number; atOnce: number }): Promise<Figure[]> {
  const { pods, atOnce } = options;
  const looks: { pods: number; mib: number }[] = [];
  for (let done = 0; done < pods;) {
    const batch = Array.from({ length: Math.min(atOnce, pods - done) }, (_, i) => `churn-${done + i}`);
    await startPods(subject, batch);
    await endPods(subject, batch);
    const before = done;
    done += batch.length;
    if (Math.floor(done / step) === Math.floor(before / step) && done < pods) continue;
    await settle();
    const mib = await residentMiB(subject.agent.pid);
    looks.push({ pods: done, mib });
    complain(`  memory after ${done} pods: ${mib.toFixed(1)} MiB`);
  }
  const floor = looks.find(({ pods }) => pods >= full);
  const later = floor ? looks.slice(looks.indexOf(floor) + 1).map(({ mib }) => mib / floor.mib) : [];
  return [
    ...looks.map(({ pods, mib }): Figure => ({ name: `memory after ${pods} pods`, unit: "MiB", values: [mib] })),
    // fewer pods tell nothing of it
    ...(floor && later.length > 0
      ? [{ name: `memory later / after ${floor.pods} pods`, unit: "ratio", values: later, limit: 1.05 } as const]
      : []),
  ];
}
