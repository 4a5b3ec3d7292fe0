import type { BoundPod } from "../../kube/types.ts";
import { reject, type Rejection } from "./types.ts";

type Namespace = "IPC" | "Net";

/** The sysctls that every pod may set, with the least kernel where it is namespaced. */
const safe: readonly (readonly [name: string, kernel?: readonly [number, number]])[] = [
  ["kernel.shm_rmid_forced"],
  ["net.ipv4.ip_local_port_range"],
  ["net.ipv4.tcp_syncookies"],
  ["net.ipv4.ping_group_range"],
  ["net.ipv4.ip_unprivileged_port_start"],
  ["net.ipv4.ip_local_reserved_ports", [3, 16]],
  ["net.ipv4.tcp_keepalive_time", [4, 5]],
  ["net.ipv4.tcp_fin_timeout", [4, 6]],
  ["net.ipv4.tcp_keepalive_intvl", [4, 5]],
  ["net.ipv4.tcp_keepalive_probes", [4, 5]],
  ["net.ipv4.tcp_rmem", [4, 15]],
  ["net.ipv4.tcp_wmem", [4, 15]],
];

/** A sysctl's name with dots between its parts: `net/ipv4/a.b` is `net.ipv4.a/b`. */
export function dottedSysctl(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === "/" ? name.replace(/[./]/g, (c) => c === "/" ? "." : "/") : name;
}

/** The namespace that a sysctl, or every sysctl of a prefix, belongs to. */
function namespaceOf(name: string): Namespace | undefined {
  if (name === "kernel.sem" || ["kernel.shm", "kernel.msg", "fs.mqueue."].some((p) => name.startsWith(p))) return "IPC";
  return name.startsWith("net.") ? "Net" : undefined;
}

function prefixOf(pattern: string): string {
  const dotted = dottedSysctl(pattern);
  return dotted.endsWith("*") ? dotted.slice(0, -1) : dotted;
}

/** The patterns of `allowedUnsafeSysctls` that are not known to be namespaced and so can't be allowed to any pod. */
export function badSysctlPatterns(patterns: readonly string[]): string[] {
  return patterns.filter((p) => namespaceOf(prefixOf(p)) === undefined);
}

function kernelAtLeast(version: string | undefined, [major, minor]: readonly [number, number]): boolean {
  const found = /^(\d+)\.(\d+)/.exec(version ?? "");
  if (!found) return false;
  const [have, haveMinor] = [Number(found[1]), Number(found[2])];
  return have > major || (have === major && haveMinor >= minor);
}

/** Refuses a pod that sets a sysctl that is neither safe nor allowed, or one of a namespace it shares with the host. */
export function checkSysctls(
  pod: BoundPod,
  allowed: readonly string[],
  kernelVersion: string | undefined,
): Rejection | undefined {
  const exact = safe.filter(([, kernel]) => !kernel || kernelAtLeast(kernelVersion, kernel)).map(([name]) => name);
  const good = allowed.filter((p) => namespaceOf(prefixOf(p)) !== undefined);
  const names = new Set([...exact, ...good.filter((p) => !p.endsWith("*")).map(dottedSysctl)]);
  const prefixes = good.filter((p) => p.endsWith("*")).map(prefixOf);
  for (const { name } of pod.spec.securityContext?.sysctls ?? []) {
    const dotted = dottedSysctl(name);
    const quoted = JSON.stringify(dotted);
    const prefix = names.has(dotted) ? dotted : prefixes.find((p) => dotted.startsWith(p));
    if (prefix === undefined) return reject("SysctlForbidden", `forbidden sysctl: ${quoted} not allowlisted`);
    const namespace = namespaceOf(prefix);
    if ((namespace === "IPC" && pod.spec.hostIPC) || (namespace === "Net" && pod.spec.hostNetwork)) {
      return reject("SysctlForbidden", `forbidden sysctl: ${quoted} not allowed with host ${namespace} enabled`);
    }
  }
  return undefined;
}
