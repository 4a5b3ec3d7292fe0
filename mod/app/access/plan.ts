import { posix } from "node:path";
import { readProviderConfigs } from "../../../managers/images/credentials/provider_config.ts";
import { createDenoHost } from "../../base/deno_host.ts";
import { silent } from "../../base/log.ts";
import { type Command, parseCommand } from "../cli/command.ts";
import { namedByKubeconfig, readKubeconfig } from "../../kube/api/kubeconfig.ts";
import { loadConfig } from "../config/load.ts";
import { parseCommandLine } from "../config/command_line.ts";
import { type PrivateMounts, privateMounts, usualPlaces } from "../private_mounts.ts";
import { podLogsDirOf } from "../trail.ts";
import { type AccessFacts, accessFlags, accessOf, accessOfLooking, type FileAccess, type Looking } from "./access.ts";

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

/** Which of the looking commands a command line is; undefined for the agent itself, help and version. */
function lookingOf(command: Command | undefined): Looking | undefined {
  switch (command?.command) {
    case "ps":
    case "logs":
    case "check":
    case "completion":
      return command.command;
    case "explain":
      return command.subject === "config" ? "explain config" : "explain";
    default:
      return undefined;
  }
}

/** Where an agent has said that its logs are; undefined when it has not, or may not be read. */
async function logsDirOf(rootDir: string): Promise<string | undefined> {
  try {
    return await podLogsDirOf(createDenoHost(), posix.resolve(Deno.cwd(), rootDir));
  } catch {
    return undefined;
  }
}

/** The programs of credential plugins; none when their configuration can't be used, which the agent itself then says. */
async function programsOf(flags: AccessFacts["flags"]): Promise<string[]> {
  const { imageCredentialProviderConfig: config, imageCredentialProviderBinDir: binDir } = flags;
  if (config === "" || binDir === "") return [];
  try {
    const { providers } = await readProviderConfigs(createDenoHost(), posix.resolve(Deno.cwd(), config));
    return providers.map(({ name }) => posix.resolve(Deno.cwd(), binDir, name));
  } catch {
    return [];
  }
}

/** The files and programs that the kubeconfigs name; none of one that can't be used, which the agent itself then says. */
async function namedByKubeconfigs({ kubeconfig, bootstrapKubeconfig }: AccessFacts["flags"]) {
  const files: string[] = [], programs: string[] = [];
  for (const path of [kubeconfig, bootstrapKubeconfig].filter((one) => one !== "")) {
    try {
      const named = namedByKubeconfig(await readKubeconfig(createDenoHost(), posix.resolve(Deno.cwd(), path)));
      files.push(...named.files);
      // A program without a path could be any of that name in PATH; it must be named whole.
      programs.push(...named.programs.filter((program) => program.startsWith("/")));
    } catch {
      continue;
    }
  }
  return { files, programs };
}

/** The paths for a command. */
async function accessFor(command: Command | undefined, mounts: PrivateMounts): Promise<FileAccess> {
  const looking = lookingOf(command);
  const argv = command && "argv" in command ? command.argv : [];
  const own = command?.command === "run" ? command.parsed.flags : undefined;
  const plugins = own ? await programsOf(own) : [];
  const named = own ? await namedByKubeconfigs(own) : { files: [], programs: [] };
  const facts: AccessFacts = {
    flags: command && "parsed" in command ? command.parsed.flags : parseCommandLine([]).flags,
    config: command?.command === "run" || looking === "check" || looking === "logs"
      ? await configOf(argv, mounts)
      : undefined,
    programs: [...plugins, ...named.programs],
    credentials: named.files,
    mounts,
    cwd: Deno.cwd(),
    notifySocket: Deno.env.get("NOTIFY_SOCKET") ?? "",
  };
  if (looking === undefined) return accessOf(facts);
  return accessOfLooking(looking, facts, looking === "logs" ? await logsDirOf(facts.flags.rootDir) : undefined);
}

/**
 * First step of the executable: makes the private mounts, and prints where they are, as variables, and the run-time's
 * flags for the files that the agent's configuration asks for, each word ended by a NUL. What only tells something
 * gets no mount but for `check`, and of files only those that it looks at. Runs with reading allowed and writing not
 * (docs/permissions.md).
 */
export async function plan(argv: readonly string[]): Promise<string> {
  const command = commandOf(argv);
  const mounted = command?.command === "run" || command?.command === "check";
  const mounts = mounted ? await privateMounts() : usualPlaces;
  const access = await accessFor(command, mounts);
  // The agent may not even look at the directory that they are in.
  const told = [
    `DENOLET_PROC=${mounts.procRoot}`,
    `DENOLET_CGROUP=${mounts.cgroupRoot}`,
    `DENOLET_SYS=${mounts.sysRoot}`,
    `DENOLET_KMSG=${mounts.kernelLog}`,
  ];
  return [...(mounted ? told : []), ...accessFlags(access)].map((word) => `${word}\0`).join("");
}

if (import.meta.main) {
  const bytes = new TextEncoder().encode(await plan(Deno.args));
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}
