import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { messageOf } from "../../mod/base/errors.ts";
import { complain, print } from "./print.ts";

/** What is asked for is not done, for a reason that whoever asks can do something about: exit code 2. */
export class Refusal extends Error {
  override readonly name: string = "Refusal";
}

/** A command line that cannot be used; the message says why, and the usage is shown. */
export class UsageError extends Refusal {
  override readonly name = "UsageError";
}

/** The values of options as parseArgs reads them. Throws UsageError for what is none of them, words included. */
export function optionsOf<const T extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: T,
): ReturnType<typeof parseArgs<{ args: string[]; options: T }>>["values"] {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (thrown) {
    throw unparsed(thrown);
  }
}

/** What parseArgs has against a command line, as a UsageError. */
export function unparsed(thrown: unknown): UsageError {
  // Node goes on about positional arguments, of which our scripts' options take none.
  return new UsageError(messageOf(thrown).split(". To specify a positional")[0] ?? "", { cause: thrown });
}

/** Throws UsageError unless there are no arguments. */
export function noArguments(args: readonly string[]): void {
  if (args.length > 0) throw new UsageError(`Unexpected argument '${args[0]}'. This command takes none`);
}

/** A script that a task of deno.json runs. */
export interface Script {
  /** The task's name. */
  readonly name: string;
  readonly usage: string;
  /** Does it; the answer is the exit code. */
  readonly main: (args: readonly string[]) => number | Promise<number>;
  /** The exit code when it fails; 1 when not given. */
  readonly failed?: number;
  readonly print?: (line: string) => void;
  readonly complain?: (line: string) => void;
}

/** The exit code of a script: 2 when it is asked for something that it refuses. */
export async function outcomeOf(script: Script, args: readonly string[]): Promise<number> {
  const { name, usage, main } = script;
  const tell = script.complain ?? complain;
  if (args.length === 1 && (args[0] === "--help" || args[0] === "-h")) {
    (script.print ?? print)(usage);
    return 0;
  }
  try {
    return await main(args);
  } catch (thrown) {
    tell(`${name}: ${messageOf(thrown)}`);
    if (thrown instanceof UsageError) tell(`\n${usage}`);
    return thrown instanceof Refusal ? 2 : script.failed ?? 1;
  }
}

/** Runs a script with the process's arguments, and ends the process. */
export async function runScript(script: Script): Promise<never> {
  Deno.exit(await outcomeOf(script, Deno.args));
}
