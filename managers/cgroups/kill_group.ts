import type { Clock } from "../../mod/base/clock.ts";
import { asError, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { GroupTree } from "./hierarchies.ts";

/** Rounds of killing before a group counts as stuck, and milliseconds between two. */
const killRounds = 5;
const killPause = 100;

export interface GroupKillOptions {
  readonly host: Pick<Host, "kill" | "stat" | "writeControl">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tree: GroupTree;
}

/**
 * Kills every process of a group and of those below it: by the kernel's `cgroup.kill` where it has that (v2, from Linux
 * 5.14 on), which no fork escapes, else one by one, in rounds, frozen meanwhile where v1 can do that. Returns the processes that were there.
 * @throws KubeletError Cgroup when some survive: they wait in the kernel
 */
export async function killGroup(options: GroupKillOptions, path: string, podUid: string): Promise<number[]> {
  const { host, clock, log, tree } = options;
  const seen = new Set<number>();
  let failure: Error | undefined;
  for (let round = 0; round < killRounds; round++) {
    if ((await tree.pids(path)).length === 0) return [...seen].sort((a, b) => a - b);
    // Frozen processes begin no others while they are being listed and killed.
    await tree.freeze(path, true);
    const pids = await tree.pids(path);
    try {
      for (const pid of pids) seen.add(pid);
      failure = await atOnce(options, path) ? undefined : oneByOne(host, pids);
    } finally {
      await tree.freeze(path, false);
    }
    log.detail(3, "killed what was in a pod's cgroup", { podUid, cgroup: path, pids, round });
    await clock.sleep(killPause);
  }
  const left = await tree.pids(path);
  if (left.length === 0) return [...seen].sort((a, b) => a - b);
  throw new KubeletError(
    "Cgroup",
    `cgroup ${path}: processes ${left.slice(0, 10).join(", ")} survived ${killRounds} rounds of SIGKILL ` +
      `(they wait in the kernel, most often for a disk or a network file system)` +
      (failure ? `: ${messageOf(failure)}` : ""),
    { cause: failure },
  );
}

/** True when the kernel took the whole group at once. */
async function atOnce({ host, tree }: GroupKillOptions, path: string): Promise<boolean> {
  const file = tree.killFile(path);
  if (file === undefined || !await host.stat(file)) return false;
  try {
    await host.writeControl(file, "1");
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return true;
    // A threaded group has none; its processes are still found one by one.
    return false;
  }
}

/** The last failure, if any. */
function oneByOne(host: Pick<Host, "kill">, pids: readonly number[]): Error | undefined {
  let failure: Error | undefined;
  for (const pid of pids) {
    try {
      host.kill(pid, "SIGKILL");
    } catch (thrown) {
      failure = asError(thrown);
    }
  }
  return failure;
}
