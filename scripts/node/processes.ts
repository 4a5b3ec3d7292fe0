import { systemClock } from "../../mod/base/clock.ts";
import { namesIn, unlessMissing } from "../lib/files.ts";

/** A process as /proc shows it. */
export interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  /** Arguments; empty for kernel threads and zombies. */
  readonly command: readonly string[];
}

/** Every process that can be seen now. */
export async function processes(): Promise<ProcessFacts[]> {
  const all = await Promise.all(
    (await namesIn("/proc")).filter((name) => /^\d+$/.test(name)).map((name) => processFacts(Number(name))),
  );
  return all.filter((one) => one !== undefined);
}

/** One process; undefined when it has ended (a zombie has). */
export async function processFacts(pid: number): Promise<ProcessFacts | undefined> {
  const stat = await unlessMissing(Deno.readTextFile(`/proc/${pid}/stat`));
  const command = await unlessMissing(Deno.readTextFile(`/proc/${pid}/cmdline`));
  const [state, parent] = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  if (command === undefined || parent === undefined || state === "Z" || state === "X") return undefined;
  return { pid, parent: Number(parent), command: command.split("\0").filter((word) => word !== "") };
}

/** A process as a text that no later process with the same number has; undefined when there is none. */
export async function identity(pid: number): Promise<string | undefined> {
  const stat = await unlessMissing(Deno.readTextFile(`/proc/${pid}/stat`));
  // field 22, the start time; the name in field 2 may hold blanks
  const started = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return started === undefined ? undefined : `${pid} ${started}`;
}

/** The given processes and all that descend from them, parents first. */
export function withDescendants(all: readonly ProcessFacts[], roots: readonly ProcessFacts[]): ProcessFacts[] {
  const found = new Map(roots.map((root) => [root.pid, root]));
  for (const one of found.values()) {
    for (const child of all) if (child.parent === one.pid) found.set(child.pid, child);
  }
  return [...found.values()];
}

/** Sends a signal; false when the process has ended already. */
export function signal(pid: number, name: Deno.Signal): boolean {
  try {
    Deno.kill(pid, name);
    return true;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound || /No such process/.test(String(thrown))) return false;
    throw thrown;
  }
}

/** Waits until the process has ended, at most so many milliseconds; tells whether it has. */
export async function ended(pid: number, within: number): Promise<boolean> {
  const deadline = systemClock.now() + within;
  while (await processFacts(pid) !== undefined) {
    if (systemClock.now() >= deadline) return false;
    await systemClock.sleep(20);
  }
  return true;
}

/** Ends a process: SIGTERM, after `grace` milliseconds SIGKILL; waits for its end. Throws when it outlives that. */
export async function end(pid: number, grace: number): Promise<void> {
  if (!signal(pid, "SIGTERM") || await ended(pid, grace)) return;
  if (!signal(pid, "SIGKILL") || await ended(pid, 10_000)) return;
  throw new Error(`process ${pid} outlived SIGKILL`);
}
