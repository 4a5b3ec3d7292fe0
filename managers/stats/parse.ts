import type { DeviceTraffic, InterfaceSample, Psi } from "./types.ts";

/**
 * Looks values up in a file of `key value` lines without reading the others: the kernel tells far more than anybody
 * asks for. Undefined for a key that is not there.
 */
export function lookUp(text: string): (key: string) => number | undefined {
  return (key) => {
    const wanted = `${key} `;
    let at = text.startsWith(wanted) ? 0 : text.indexOf(`\n${wanted}`) + 1;
    if (at === 0 && !text.startsWith(wanted)) return undefined;
    at += wanted.length;
    const end = text.indexOf("\n", at);
    return count(end < 0 ? text.slice(at) : text.slice(at, end));
  };
}

/** A number that a kernel file gives; undefined for `max`, for nothing and for what is none. */
export function count(text: string | undefined): number | undefined {
  const found = text === undefined ? null : digits.exec(text);
  return found ? Number(found[0]) : undefined;
}

const digits = /^\s*\d+\s*$/;

/** From here on a limit of the kernel means none. */
const unlimited = 2 ** 62;

/** A limit; undefined when there is none. */
export function limitOf(text: string | undefined): number | undefined {
  const value = count(text);
  return value === undefined || value >= unlimited ? undefined : value;
}

const nothing = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

const pressureLines = {
  some: /^some avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/m,
  full: /^full avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/m,
};

/** A pressure file; undefined when the kernel has none. The total is given in microseconds and told in nanoseconds. */
export function parsePsi(text: string | undefined): Psi | undefined {
  if (text === undefined) return undefined;
  const line = (kind: "some" | "full") => {
    const found = pressureLines[kind].exec(text);
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
    const told = (key: string) => count(pairs.find((pair) => pair.startsWith(`${key}=`))?.slice(key.length + 1));
    const of = (key: string) => told(key) ?? 0;
    found.push({
      device,
      readBytes: of("rbytes"),
      writtenBytes: of("wbytes"),
      reads: of("rios"),
      writes: of("wios"),
      ...(told("cost.usage") === undefined ? {} : {
        cost: {
          usageUs: of("cost.usage"),
          waitUs: of("cost.wait"),
          indebtUs: of("cost.indebt"),
          indelayUs: of("cost.indelay"),
        },
      }),
    });
  }
  return found;
}

/** blkio.throttle.io_service_bytes and io_serviced of v1: lines of `major:minor Operation value`. */
export function parseBlkio(bytes: string, served: string): DeviceTraffic[] {
  // Groups that never touched a device have only the line of the total.
  if (!bytes.includes("Read")) return [];
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
