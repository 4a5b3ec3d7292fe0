import { complain } from "../../scripts/lib/print.ts";
import { endPods, residentMiB, startPods, type Subject } from "./agent.ts";
import { settle } from "./marks.ts";
import type { Figure } from "./report.ts";

/** Pods between two looks. */
const step = 250;

/**
 * Starts and ends many pods, a batch after another, and looks at the agent's resident memory, with no pod there, after
 * each 250. The floor is the look in the middle: after 1,000 pods of 2,000 every code path has run, and what is kept of
 * what was done (10,000 journal records, some ten a pod) is as full as it gets. What grows beyond that is a leak.
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
  const middle = Math.ceil(looks.length / 2);
  const floor = looks[middle - 1];
  const later = looks.slice(middle).map(({ mib }) => mib / (floor?.mib ?? NaN));
  return [
    ...looks.map(({ pods, mib }): Figure => ({ name: `memory after ${pods} pods`, unit: "MiB", values: [mib] })),
    { name: `memory of the later half / after ${floor?.pods ?? 0} pods`, unit: "ratio", values: later, limit: 1.05 },
  ];
}
