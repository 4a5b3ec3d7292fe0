import type { Host } from "../../base/host.ts";
import type { MachineFacts } from "./validate/context.ts";

/** What validation wants to know of the machine; what can't be read is left out, and not checked. */
export async function gatherFacts(host: Host): Promise<MachineFacts> {
  const [cgroupVersion, onlineCpus, memoryBytes] = await Promise.all([
    cgroupVersionOf(host),
    onlineCpusOf(host),
    host.capacity().then((capacity) => capacity.memory, () => undefined),
  ]);
  return {
    ...(cgroupVersion === undefined ? {} : { cgroupVersion }),
    ...(onlineCpus === undefined ? {} : { onlineCpus }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
  };
}

async function cgroupVersionOf(host: Host): Promise<1 | 2 | undefined> {
  const there = (path: string) => host.stat(path).then((info) => info !== undefined, () => false);
  if (await there(`${host.cgroupRoot}/cgroup.controllers`)) return 2;
  for (const controller of ["memory", "cpu", "cpu,cpuacct", "pids"]) {
    if (await there(`${host.cgroupRoot}/${controller}/cgroup.procs`)) return 1;
  }
  return undefined;
}

async function onlineCpusOf(host: Host): Promise<number[] | undefined> {
  try {
    const stat = await host.readText(`${host.procRoot}/stat`);
    const cpus = [...stat.matchAll(/^cpu(\d+) /gm)].map((match) => Number(match[1]));
    return cpus.length > 0 ? cpus : undefined;
  } catch {
    return undefined; // no procfs here: the subset rule can't be checked
  }
}
