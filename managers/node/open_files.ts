import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";

const prlimit = "/usr/bin/prlimit";

/** Soft and hard limit of open files in a /proc/<pid>/limits table; undefined when it does not have them. */
export function openFilesLimits(table: string): { readonly soft: number; readonly hard: number } | undefined {
  const [, soft, hard] = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)\s/m.exec(table) ?? [];
  if (soft === undefined || hard === undefined) return undefined;
  const number = (text: string) => text === "unlimited" ? Infinity : Number(text);
  return { soft: number(soft), hard: number(hard) };
}

/**
 * Lets this process have as many open files as the configuration says (features.md A28). Where the hard limit may not be
 * raised, which takes CAP_SYS_RESOURCE, the soft one is raised up to it; what could not be had is told. Never rejects
 * but when aborted.
 */
export async function raiseOpenFiles(options: {
  readonly host: Pick<Host, "readText" | "run" | "procRoot">;
  readonly pid: number;
  /** maxOpenFiles. */
  readonly wanted: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { host, pid, wanted, log, signal } = options;
  const set = async (soft: number, hard: number) => {
    const { code, stderr } = await host.run(prlimit, [`--pid=${pid}`, `--nofile=${soft}:${hard}`], { signal });
    if (code !== 0) throw new Error(stderr.trim() || `${prlimit} ended with ${code}`);
  };
  try {
    const before = openFilesLimits(await host.readText(`${host.procRoot}/self/limits`));
    if (!before || before.soft >= wanted) return;
    try {
      await set(wanted, Math.max(wanted, before.hard === Infinity ? wanted : before.hard));
      return;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.warn("the limit of open files cannot be raised as far as maxOpenFiles says", {
        wanted,
        hard: before.hard,
        error: messageOf(thrown),
      });
    }
    if (before.soft < before.hard) await set(before.hard, before.hard);
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    log.warn("the limit of open files stays as it is", { error: messageOf(thrown) });
  }
}
