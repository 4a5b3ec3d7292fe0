import { KubeletError } from "../../base/errors.ts";
import { allFlags, flagNamed } from "../config/flags.ts";
import { badConfig, flagsHelp, needsArgument } from "../config/command_line.ts";
import type { OwnFlag, Subcommand } from "./subcommands.ts";

/** The parts of a subcommand's command line. */
export interface SplitLine {
  readonly words: readonly string[];
  /** Values of the subcommand's own flags by name; `true` for those without a value. */
  readonly own: ReadonlyMap<string, string | true>;
  /** The agent's flags, as they were written. */
  readonly argv: readonly string[];
}

const agentShorts = new Set(allFlags.flatMap((flag) => flag.shorthand ?? []));

/**
 * Parts a subcommand's arguments into its words, its own flags and those of the agent, in any order. Flags are written
 * as the agent's are: `--name=value`, `--name value`, `-n value`, `-nvalue`, `-fp`. Throws a KubeletError (BadConfig)
 * that lists every problem with a word or an own flag; the agent's flags are checked by whoever reads them.
 */
export function splitLine(command: Subcommand, args: readonly string[]): SplitLine {
  const rest = [...args].reverse();
  const words: string[] = [];
  const own = new Map<string, string | true>();
  const argv: string[] = [];
  const problems: string[] = [];

  const take = (flag: OwnFlag, inline: string | undefined, shown: string): void => {
    if (flag.value === undefined) {
      const off = inline === "false";
      if (inline !== undefined && inline !== "true" && !off) problems.push(`${shown} takes no value`);
      else if (!off) own.set(flag.name, true);
      return;
    }
    const value = inline ?? rest.pop();
    if (value === undefined) problems.push(needsArgument(shown));
    else own.set(flag.name, value);
  };
  const shorts = (argument: string): void => {
    for (let letters = argument.slice(1); letters !== "";) {
      const letter = letters.slice(0, 1);
      const flag = command.flags.find((f) => f.short === letter);
      letters = letters.slice(1);
      if (!flag) {
        if (!agentShorts.has(letter)) {
          problems.push(
            `unknown shorthand flag: ${JSON.stringify(letter)} in ${
              JSON.stringify(argument.slice(0, 80))
            }; ${flagsHelp}`,
          );
          return;
        }
        argv.push(`-${letter}${letters}`);
        if (letters === "" && letter !== "h") {
          const value = rest.pop();
          if (value !== undefined) argv.push(value);
        }
        return;
      }
      if (flag.value === undefined && !letters.startsWith("=")) take(flag, undefined, `-${letter}`);
      // The rest is its value, also where it takes none, which is then told.
      else return take(flag, letters === "" ? undefined : letters.replace(/^=/, ""), `-${letter}`);
    }
  };
  const long = (argument: string): void => {
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument.slice(2) : argument.slice(2, equals);
    const flag = command.flags.find((f) => f.name === name);
    if (flag) return take(flag, equals < 0 ? undefined : argument.slice(equals + 1), `--${name}`);
    argv.push(argument);
    const known = flagNamed(name);
    if (equals >= 0 || !known || known.kind === "bool" || known.kind === "version") return;
    const value = rest.pop();
    if (value !== undefined) argv.push(value);
  };

  for (let argument = rest.pop(); argument !== undefined; argument = rest.pop()) {
    if (argument === "--") words.push(...rest.splice(0).reverse());
    else if (argument.startsWith("--")) long(argument);
    else if (argument.startsWith("-") && argument.length > 1) shorts(argument);
    else words.push(argument);
  }
  if (problems.length > 0) throw badConfig(`kubelet ${command.name}: the command line has`, problems);
  return { words, own, argv };
}

/** Refuses too few or too many words. */
export function checkWords(command: Subcommand, words: readonly string[]): void {
  const [least, most] = command.count;
  if (words.length >= least && words.length <= most) return;
  throw new KubeletError(
    "BadConfig",
    `${command.name} takes ${
      most === 0 ? "no words" : least === most ? `${most} word` : `${least} or ${most} words`
    }, not ${words.length}; write: ${`kubelet ${command.name} ${command.words}`.trim()} [flags]`,
  );
}
