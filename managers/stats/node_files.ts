import type { Host, MountEntry } from "../../mod/base/host.ts";
import { count, parseNetDev } from "./parse.ts";
import type { DiskTraffic, FsSample, NetworkSample, NodeSample } from "./types.ts";

type Files = Pick<Host, "readTextNow" | "procRoot">;

/** Interfaces in the network namespace of a process; undefined when it is gone. @param pid 1 for the node's own */
export function networkOf(host: Files, pid: number, now: () => number): NetworkSample | undefined {
  const at = now();
  const text = host.readTextNow(`${host.procRoot}/${pid}/net/dev`);
  return text === undefined ? undefined : { at, interfaces: parseNetDev(text) };
}

/** When the machine booted, milliseconds since the epoch; 0 when the kernel does not tell. */
export function bootTime(host: Files): number {
  const text = host.readTextNow(`${host.procRoot}/stat`) ?? "";
  return (count(/^btime (\d+)$/m.exec(text)?.[1]) ?? 0) * 1000;
}

/** How many tasks there may be (the lower of the kernel's two limits), and how many there are. */
export function rlimit(host: Files, now: () => number): NonNullable<NodeSample["rlimit"]> {
  const at = now();
  const read = (file: string) => host.readTextNow(`${host.procRoot}/${file}`);
  const limits = [count(read("sys/kernel/pid_max")), count(read("sys/kernel/threads-max"))]
    .filter((each) => each !== undefined);
  const running = count(/\d+\/(\d+)/.exec(read("loadavg") ?? "")?.[1]);
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

/** What the machine's block devices have done, by their names (`vda1`). */
export function diskTraffic(host: Files): ReadonlyMap<string, DiskTraffic> {
  const found = new Map<string, DiskTraffic>();
  for (const line of (host.readTextNow(`${host.procRoot}/diskstats`) ?? "").split("\n")) {
    const [, , name = "", ...fields] = line.trim().split(/\s+/);
    const n = fields.map(Number);
    if (name === "" || n.length < 11 || n.some((each) => !Number.isFinite(each))) continue;
    const [reads = 0, readsMerged = 0, sectorsRead = 0, readMs = 0, writes = 0, writesMerged = 0, ...rest] = n;
    const [sectorsWritten = 0, writeMs = 0, inFlight = 0, ioMs = 0, weightedMs = 0] = rest;
    found.set(name, {
      reads,
      readsMerged,
      sectorsRead,
      readMs,
      writes,
      writesMerged,
      sectorsWritten,
      writeMs,
      inFlight,
      ioMs,
      weightedMs,
    });
  }
  return found;
}
