import { KubeletError } from "../../mod/base/errors.ts";
import type { QosClass } from "../../mod/pod/resources.ts";

export type Driver = "cgroupfs" | "systemd";

/** A group's name as parts from the root, whatever the driver: `["kubepods", "burstable", "pod<uid>"]`. */
export type GroupName = readonly string[];

/** Reads a configured cgroup root such as `/` or `/agents/one` (cgroupfs form). Throws Cgroup. */
export function parseRoot(root: string): GroupName {
  const parts = root.split("/").filter((p) => p !== "");
  if (!root.startsWith("/") || parts.some((p) => p === "." || p === ".." || p.includes("\0"))) {
    throw new KubeletError("Cgroup", `cgroupRoot ${JSON.stringify(root)} must be an absolute path without . and ..`);
  }
  return parts;
}

/** `a-b-c.slice` → `/a.slice/a-b.slice/a-b-c.slice`, as systemd nests slices. */
export function expandSlice(slice: string): string {
  const words = slice.replace(/\.slice$/, "").split("-");
  if (words.some((w) => w === "")) {
    throw new KubeletError("Cgroup", `slice ${JSON.stringify(slice)} has an empty part between its dashes`);
  }
  return words.map((_, i) => `/${words.slice(0, i + 1).join("-")}.slice`).join("");
}

/** The group's path below a hierarchy (runtime-contract.md section 6); `/` for the root. */
export function groupPath(name: GroupName, driver: Driver): string {
  if (name.length === 0) return "/";
  if (driver === "cgroupfs") return `/${name.join("/")}`;
  return expandSlice(`${name.map((part) => part.replaceAll("-", "_")).join("-")}.slice`);
}

/** The unit name of a slice path, and of the slice it lies in. */
export function sliceUnit(path: string): { unit: string; parent: string } {
  const parts = path.split("/").filter((p) => p !== "");
  return { unit: parts.at(-1) ?? "-.slice", parent: parts.at(-2) ?? "-.slice" };
}

/** The last part of a pod's group. Throws Cgroup for a UID that can be no part of a path. */
export function podPart(uid: string): string {
  if (!/^[A-Za-z0-9._:-]{1,200}$/.test(uid) || uid.includes("..")) {
    throw new KubeletError("Cgroup", `pod UID ${JSON.stringify(uid)} cannot name a cgroup`);
  }
  return `pod${uid}`;
}

/** Where pods of a class have their groups: Guaranteed ones directly in the kubepods group. */
export function qosName(root: GroupName, qos: QosClass): GroupName {
  return qos === "Guaranteed" ? root : [...root, qos.toLowerCase()];
}

/** The pod UID in a directory name below a QoS group at `parent`, or undefined when it is no pod's. */
export function podUidOf(directory: string, parent: GroupName, driver: Driver): string | undefined {
  if (driver === "cgroupfs") return /^pod(.+)$/.exec(directory)?.[1];
  const prefix = `${parent.map((part) => part.replaceAll("-", "_")).join("-")}-pod`;
  if (!directory.startsWith(prefix) || !directory.endsWith(".slice")) return undefined;
  const uid = directory.slice(prefix.length, -".slice".length);
  // A dash would be a slice nested in the pod's.
  return uid === "" || uid.includes("-") ? undefined : uid.replaceAll("_", "-");
}
