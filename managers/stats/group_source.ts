import type { Host } from "../../mod/base/host.ts";
import { count } from "./parse.ts";
import type { CpuSpec } from "./types.ts";

/** The cgroup hierarchies of the machine, as managers/cgroups finds them. */
export interface StatHierarchies {
  readonly version: 1 | 2;
  /** Controller → directory of its hierarchy. */
  readonly roots: ReadonlyMap<string, string>;
}

/** What a group was set to: changes seldom, and is read again only now and then. */
export interface GroupSettings {
  readonly cpu: CpuSpec;
  readonly memoryLimit?: number;
  readonly memoryReservation?: number;
  readonly swapLimit?: number;
  readonly pidsLimit?: number;
}

/** What the readers of both versions share. */
export interface GroupSource {
  readonly host: Pick<Host, "readTextNow" | "cgroupRoot" | "procRoot">;
  readonly hierarchies: StatHierarchies;
  /** A file of a group; undefined when it is not there. */
  read(options: { controller: string; path: string; file: string }): string | undefined;
  /** The group's settings, read by `read` when they were not read lately. */
  settings(path: string, read: () => GroupSettings): GroupSettings;
}

/** Process ids that a list of the kernel's names; 0 stands for a process of another PID namespace. */
export function processesIn(text: string | undefined): number[] {
  const found: number[] = [];
  for (const line of (text ?? "").split("\n")) {
    const pid = count(line);
    if (pid !== undefined && pid > 0) found.push(pid);
  }
  return found;
}

/** A value that is built up: what is undefined is left out. */
export type Draft<T> = { -readonly [K in keyof T]?: T[K] | undefined };

/** The draft without what is undefined. */
export function finished<T extends object>(draft: Draft<T>): { [K in keyof T]?: T[K] } {
  const out: Record<string, unknown> = {};
  for (const key in draft) {
    const value = draft[key];
    if (value !== undefined) out[key] = value;
  }
  return out as { [K in keyof T]?: T[K] };
}
