import type { Host, MountEntry } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import { count, parseNetDev } from "./parse.ts";
import type { FsSample, NetworkSample, NodeSample } from "./types.ts";

type Files = Pick<Host, "readText" | "procRoot">;

async function optional(host: Files, path: string): Promise<string | undefined> {
  try {
    return await host.readText(path);
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

/** Interfaces in the network namespace of a process; undefined when it is gone. @param pid 1 for the node's own */
export async function networkOf(host: Files, pid: number, now: () => number): Promise<NetworkSample | undefined> {
  const at = now();
  const text = await optional(host, `${host.procRoot}/${pid}/net/dev`);
  return text === undefined ? undefined : { at, interfaces: parseNetDev(text) };
}

/** When the machine booted, milliseconds since the epoch; 0 when the kernel does not tell. */
export async function bootTime(host: Files): Promise<number> {
  const text = await optional(host, `${host.procRoot}/stat`) ?? "";
  return (count(/^btime (\d+)$/m.exec(text)?.[1]) ?? 0) * 1000;
}

/** How many tasks there may be (the lower of the kernel's two limits), and how many there are. */
export async function rlimit(host: Files, now: () => number): Promise<NonNullable<NodeSample["rlimit"]>> {
  const at = now();
  const proc = host.procRoot;
  const [pidMax, threadsMax, load] = await Promise.all([
    optional(host, `${proc}/sys/kernel/pid_max`),
    optional(host, `${proc}/sys/kernel/threads-max`),
    optional(host, `${proc}/loadavg`),
  ]);
  const limits = [count(pidMax), count(threadsMax)].filter((each) => each !== undefined);
  const running = count(/\d+\/(\d+)/.exec(load ?? "")?.[1]);
  return {
    at,
    ...(limits.length > 0 ? { maxPid: Math.min(...limits) } : {}),
    ...(running === undefined ? {} : { running }),
  };
}

/** The file system that a path lies on, whole. */
export async function fsOf(host: Pick<Host, "space">, path: string, now: () => number): Promise<FsSample> {
  const at = now();
  const { total, free, available, inodes, inodesFree } = await host.space(path);
  return {
    at,
    available,
    capacity: total,
    used: total - free,
    inodesFree,
    inodes,
    inodesUsed: Math.max(0, inodes - inodesFree),
  };
}

/** The mount that a path lies on, by the mount table; later lines cover earlier ones. */
export function mountOf(table: readonly MountEntry[], path: string): MountEntry | undefined {
  let found: MountEntry | undefined;
  for (const entry of table) {
    const covers = entry.target === "/" || path === entry.target || path.startsWith(`${entry.target}/`);
    if (covers && entry.target.length >= (found?.target.length ?? 0)) found = entry;
  }
  return found;
}
