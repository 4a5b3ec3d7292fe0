import { systemClock } from "../../mod/base/clock.ts";
import { cgroupRoots } from "../../scripts/node/cgroups.ts";
import { cpuOf } from "./cpu.ts";
import { type Figure, median, ratio } from "./report.ts";

/** Pages that monitoring asks for, each with what a scrape of 50 pods may take, milliseconds. */
const pages = [
  ["/metrics/cadvisor", 50],
  ["/metrics/resource", 50],
  ["/stats/summary", 50],
  ["/metrics", 50],
] as const;
/** Collections are shared for a second: two scrapes closer than this would measure only one. */
const apartMs = 1100;
/** Pods that the limits are for. */
const podsOfLimits = 50;

/** What the kernel shows of a group that a full scrape cannot do without: usage, not settings. */
const floorFiles = new Set([
  "cpuacct.usage",
  "cpuacct.stat",
  "memory.usage_in_bytes",
  "memory.stat",
  "pids.current",
  "blkio.throttle.io_service_bytes",
  "cpu.stat",
  "memory.current",
  "io.stat",
]);

/** Those files of all groups below one. */
function filesBelow(roots: readonly string[], group: string): string[] {
  const found: string[] = [];
  const look = (directory: string) => {
    for (const { name, isDirectory } of Deno.readDirSync(directory)) {
      if (isDirectory) look(`${directory}/${name}`);
      else if (floorFiles.has(name)) found.push(`${directory}/${name}`);
    }
  };
  for (const root of roots) look(`${root}${group}`);
  return found;
}

/** Milliseconds that it takes to read these files, one after another, and nothing else. */
function readBare(files: readonly string[]): number {
  const began = performance.now();
  for (const file of files) Deno.readTextFileSync(file);
  return performance.now() - began;
}

/**
 * Scrapes each page so many times, over a connection that stays. The floor is to read the usage files of the same
 * groups bare, in this process.
 */
export async function scrapeFigures(options: {
  port: number;
  /** The agent's process. */
  pid: number;
  /** The agent's own group, below which its pods are. */
  group: string;
  pods: number;
  rounds: number;
}): Promise<Figure[]> {
  const { port, pid, group, pods, rounds } = options;
  const files = filesBelow([...new Set(await cgroupRoots())], group);
  const scrape = async (page: string): Promise<number> => {
    const began = performance.now();
    const answer = await fetch(`http://127.0.0.1:${port}${page}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${page}: ${answer.status} ${text.slice(0, 200)}`);
    return performance.now() - began;
  };
  const figures: Figure[] = [];
  for (const [page, limit] of pages) {
    const took: number[] = [], floor: number[] = [];
    let spent = 0;
    // The first two warm up: code is loaded and what does not change is read once.
    for (let round = -1; round <= rounds; round++) {
      await systemClock.sleep(apartMs);
      const before = (await cpuOf(pid)).own;
      const ms = await scrape(page);
      if (round <= 0) continue;
      spent += (await cpuOf(pid)).own - before;
      took.push(ms);
      floor.push(readBare(files));
    }
    figures.push(
      // Of all threads, in steps of 10 ms: the mean says what no load of the machine can change.
      { name: `${pods} pods: ${page}, CPU of the agent`, unit: "ms", values: [spent / rounds] },
      { name: `${pods} pods: ${page}`, unit: "ms", values: took, ...(pods <= podsOfLimits ? { limit } : {}) },
      ratio(`${pods} pods: ${page} / reading ${files.length} files bare (${median(floor).toFixed(0)} ms)`, took, floor),
    );
  }
  return figures;
}
