import type { DeviceTraffic, InterfaceSample, Psi } from "./types.ts";

/** A file of `key value` lines; lines that are not so are left out. */
export function flatKeys(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const at = line.indexOf(" ");
    if (at <= 0) continue;
    const value = count(line.slice(at + 1));
    if (value !== undefined) values.set(line.slice(0, at), value);
  }
  return values;
}

/** A number that a kernel file gives; undefined for `max`, for nothing and for what is none. */
export function count(text: string | undefined): number | undefined {
  const word = text?.trim() ?? "";
  if (!/^\d+$/.test(word)) return undefined;
  return Number(word);
}

/** From here on a limit of the kernel means none. */
const unlimited = 2 ** 62;

/** A limit; undefined when there is none. */
export function limitOf(text: string | undefined): number | undefined {
  const value = count(text);
  return value === undefined || value >= unlimited ? undefined : value;
}

const nothing = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/** A pressure file; undefined when the kernel has none. The total is given in microseconds and told in nanoseconds. */
export function parsePsi(text: string | undefined): Psi | undefined {
  if (text === undefined) return undefined;
  const line = (kind: string) => {
    const found = new RegExp(`^${kind} avg10=([\\d.]+) avg60=([\\d.]+) avg300=([\\d.]+) total=(\\d+)$`, "m").exec(text);
    if (!found) return undefined;
    return {
      total: Number(found[4]) * 1000,
      avg10: Number(found[1]),
      avg60: Number(found[2]),
      avg300: Number(found[3]),
    };
  };
  const some = line("some");
  // The CPU of a whole machine cannot be short for all: older kernels have no such line.
  return some ? { some, full: line("full") ?? nothing } : undefined;
}

/** Interfaces that are never told of: the loopback, and the node's ends of pods' links. */
const ignored = /^(lo|veth|docker|nerdctl)/;

/** `/proc/<pid>/net/dev`. */
export function parseNetDev(text: string): InterfaceSample[] {
  const found: InterfaceSample[] = [];
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(":");
    if (at < 0) continue;
    const name = line.slice(0, at).trim();
    const n = line.slice(at + 1).trim().split(/\s+/).map(Number);
    if (name === "" || ignored.test(name) || n.length < 12 || n.some((each) => !Number.isFinite(each))) continue;
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0, , , , , ...tx] = n;
    const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = tx;
    found.push({ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped });
  }
  return found;
}

/** io.stat of v2. */
export function parseIoStat(text: string): DeviceTraffic[] {
  const found: DeviceTraffic[] = [];
  for (const line of text.split("\n")) {
    const [device = "", ...pairs] = line.trim().split(/\s+/);
    if (!/^\d+:\d+$/.test(device)) continue;
    const of = (key: string) => count(pairs.find((pair) => pair.startsWith(`${key}=`))?.slice(key.length + 1)) ?? 0;
    found.push({
      device,
      readBytes: of("rbytes"),
      writtenBytes: of("wbytes"),
      reads: of("rios"),
      writes: of("wios"),
    });
  }
  return found;
}

/** blkio.throttle.io_service_bytes and io_serviced of v1: lines of `major:minor Operation value`. */
export function parseBlkio(bytes: string, served: string): DeviceTraffic[] {
  const devices = new Map<string, { readBytes: number; writtenBytes: number; reads: number; writes: number }>();
  const take = (text: string, read: "readBytes" | "reads", write: "writtenBytes" | "writes") => {
    for (const line of text.split("\n")) {
      const [device = "", operation, value] = line.trim().split(/\s+/);
      const key = operation === "Read" ? read : operation === "Write" ? write : undefined;
      if (!/^\d+:\d+$/.test(device) || key === undefined) continue;
      const entry = devices.get(device) ?? { readBytes: 0, writtenBytes: 0, reads: 0, writes: 0 };
      devices.set(device, entry);
      entry[key] = count(value) ?? 0;
    }
  };
  take(bytes, "readBytes", "writtenBytes");
  take(served, "reads", "writes");
  return [...devices].map(([device, entry]) => ({ device, ...entry }));
}
