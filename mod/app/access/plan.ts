import { createDenoHost } from "../../base/deno_host.ts";
import { silent } from "../../base/log.ts";
import { parseCommand } from "../cli/command.ts";
import { loadConfig } from "../config/load.ts";
import { parseCommandLine } from "../config/command_line.ts";
import { privateMounts } from "../private_mounts.ts";
import { type AccessFacts, accessFlags, accessOf } from "./access.ts";

/** The flags of a command line, and the configuration that they lead to; neither for a command line that is wrong. */
async function asked(
  argv: readonly string[],
  host: ReturnType<typeof createDenoHost>,
): Promise<Pick<AccessFacts, "flags" | "config">> {
  const none = { flags: parseCommandLine([]).flags, config: undefined };
  try {
    const command = parseCommand(argv);
    if (!("argv" in command)) return none;
    const { flags } = command.parsed;
    try {
      const { config } = await loadConfig({ argv: command.argv, host, log: silent, cwd: Deno.cwd() });
      return { flags, config };
    } catch {
      return { flags, config: undefined };
    }
  } catch {
    // The agent is started all the same, and says what is wrong: that is its part.
    return none;
  }
}

/**
 * First step of the executable: makes the private mounts, and prints where they are, as variables, and the
 * run-time's flags for the files that the agent's configuration asks for, each word ended by a NUL. Runs with reading allowed and writing not (docs/permissions.md).
 */
export async function plan(argv: readonly string[]): Promise<string> {
  const mounts = await privateMounts();
  const { flags, config } = await asked(argv, createDenoHost(mounts));
  const access = accessOf({
    flags,
    config,
    mounts,
    cwd: Deno.cwd(),
    notifySocket: Deno.env.get("NOTIFY_SOCKET") ?? "",
  });
  // The agent may not even look at the directory that they are in.
  const told = [
    `DENOLET_PROC=${mounts.procRoot}`,
    `DENOLET_CGROUP=${mounts.cgroupRoot}`,
    `DENOLET_SYS=${mounts.sysRoot}`,
  ];
  return [...told, ...accessFlags(access)].map((word) => `${word}\0`).join("");
}

if (import.meta.main) {
  const bytes = new TextEncoder().encode(await plan(Deno.args));
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}
