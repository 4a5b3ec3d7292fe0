import { unlessMissing } from "../../scripts/lib/files.ts";
import { processes } from "../../scripts/node/processes.ts";

/** USER_HZ is 100 wherever Deno runs. */
const hertz = 100;

/**
 * User and system time that processes have used so far, milliseconds: `own` is theirs, `all` is with that of children
 * that have ended and were waited for.
 */
export interface CpuUsed {
  readonly own: number;
  readonly all: number;
}

/** CPU time of a process; zero when it has ended. */
export async function cpuOf(pid: number): Promise<CpuUsed> {
  const stat = await unlessMissing(Deno.readTextFile(`/proc/${pid}/stat`));
  if (stat === undefined) return { own: 0, all: 0 };
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15);
  const own = (user + system) * 1000 / hertz;
  return { own, all: own + (childrenUser + childrenSystem) * 1000 / hertz };
}

/** The processes of a runtime that stay: containerd and the shims of its containers, which wait for all that they run. */
export async function runtimePids(containerd: { readonly pid: number; readonly socket: string }): Promise<number[]> {
  const shims = (await processes()).filter(({ command: [program = "", ...args] }) =>
    program.includes("containerd-shim") && args.some((arg) => arg.includes(containerd.socket))
  );
  return [containerd.pid, ...shims.map(({ pid }) => pid)];
}

/** CPU time of all of them with their ended children, milliseconds. */
export async function cpuOfAll(pids: readonly number[]): Promise<number> {
  const used = await Promise.all(pids.map(cpuOf));
  return used.reduce((sum, { all }) => sum + all, 0);
}
