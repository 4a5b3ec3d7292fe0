import { createDenoHost } from "../../base/deno_host.ts";
import { silent } from "../../base/log.ts";
import { type Command, parseCommand } from "../cli/command.ts";
import { loadConfig } from "../config/load.ts";
import { parseCommandLine } from "../config/command_line.ts";
import { type PrivateMounts, privateMounts, usualPlaces } from "../private_mounts.ts";
import { type AccessFacts, accessFlags, accessOf } from "./access.ts";

/** The command; undefined for a command line that is wrong. The agent is started all the same, and says what is wrong. */
function commandOf(argv: readonly string[]): Command | undefined {
  try {
    return parseCommand(argv);
  } catch {
    return undefined;
  }
}

/** The configuration; undefined when it can't be used, which the agent itself then says. */
async function configOf(argv: readonly string[], mounts: PrivateMounts): Promise<AccessFacts["config"]> {
  try {
    return (await loadConfig({ argv, host: createDenoHost(mounts), log: silent, cwd: Deno.cwd() })).config;
  } catch {
    return undefined;
  }
}

/**
 * First step of the executable: makes the private mounts, and prints where they are, as variables, and the run-time's
 * flags for the files that the agent's configuration asks for, each word ended by a NUL. What only tells something
 * (--version, --help, explain) gets no mount, and reads the configuration at most. Runs with reading allowed and
 * writing not (docs/permissions.md).
 */
export async function plan(argv: readonly string[]): Promise<string> {
  const command = commandOf(argv);
  const runs = command?.command === "run";
  const mounts = runs ? await privateMounts() : usualPlaces;
  const access = accessOf({
    flags: command && "parsed" in command ? command.parsed.flags : parseCommandLine([]).flags,
    config: runs ? await configOf(command.argv, mounts) : undefined,
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
  return [...(runs ? told : []), ...accessFlags(access)].map((word) => `${word}\0`).join("");
}

if (import.meta.main) {
  const bytes = new TextEncoder().encode(await plan(Deno.args));
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}
