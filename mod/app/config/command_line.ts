import { KubeletError, messageOf } from "../../base/errors.ts";
import { allFlags, type FlagDefinition, flagNamed, type KubeletFlags, toKubeletFlags } from "./flags.ts";
import { parseFlagValue } from "./flag_value.ts";
import type { Json, JsonObject } from "./json.ts";
import { isObject, setKey, setPath } from "./json.ts";
import { didYouMean } from "./nearest.ts";

/** A command line that was understood. */
export interface ParsedCommandLine {
  readonly flags: KubeletFlags;
  /** Values by flag name, of the flags that were set; field flags in the form the configuration file has. */
  readonly values: ReadonlyMap<string, Json>;
  /** Names of the flags that were set, in order of first use. */
  readonly changed: readonly string[];
  readonly help: boolean;
  /** False, true, `raw`, or the version that the caller wants reported. */
  readonly version: boolean | string;
}

/** One use of a flag. */
interface Setting {
  readonly flag: FlagDefinition;
  readonly text: string;
}

const takesNoValue = (flag: FlagDefinition): boolean => flag.kind === "bool" || flag.kind === "version";
const byShorthand = new Map(allFlags.flatMap((flag) => flag.shorthand === undefined ? [] : [[flag.shorthand, flag]]));

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/** Splits the arguments as pflag does; problems are collected so that one run shows them all. */
class Splitter {
  readonly settings: Setting[] = [];
  readonly problems: string[] = [];
  /** A flag that nobody knows was met. */
  unknown = false;
  readonly #rest: string[];

  /** @param more flags that a subcommand has of its own, which a misspelt one may have meant */
  constructor(argv: readonly string[], private readonly more: readonly string[]) {
    this.#rest = [...argv].reverse();
  }

  split(): this {
    for (let argument = this.#rest.pop(); argument !== undefined; argument = this.#rest.pop()) {
      if (argument === "--") {
        this.#rest.reverse().forEach((positional) => this.#positional(positional));
        return this;
      }
      if (argument.startsWith("--")) this.#long(argument);
      else if (argument.startsWith("-") && argument.length > 1) this.#short(argument);
      else this.#positional(argument);
    }
    return this;
  }

  #positional(text: string): void {
    this.problems.push(
      `unknown command ${quote(text)}; the agent takes flags only, remove it (a value goes after its flag)`,
    );
  }

  #long(argument: string): void {
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument.slice(2) : argument.slice(2, equals);
    if (name === "" || name.startsWith("-")) {
      this.problems.push(`bad flag syntax: ${quote(argument)}; write --name=value`);
      return;
    }
    const flag = flagNamed(name);
    if (flag === undefined) {
      this.unknown = true;
      const known = [...this.more, ...allFlags.map((candidate) => candidate.name)];
      const hint = didYouMean(name.replaceAll("_", "-"), known, { prefix: "--", before: this.problems.length });
      this.problems.push(`unknown flag: --${name.slice(0, 80)}${hint}`);
      // A word after an unknown flag is most likely its value; calling it a command would only confuse.
      if (equals < 0 && !(this.#rest.at(-1) ?? "-").startsWith("-")) this.#rest.pop();
      return;
    }
    this.#add(flag, equals < 0 ? undefined : argument.slice(equals + 1), `--${name}`);
  }

  #short(argument: string): void {
    for (let letters = argument.slice(1); letters !== "";) {
      const letter = letters.slice(0, 1);
      const flag = byShorthand.get(letter);
      if (flag === undefined) {
        this.unknown = true;
        const long = flagNamed(argument.slice(1).split("=")[0] ?? "");
        const hint = long === undefined ? "" : `; did you mean --${argument.slice(1, 81)}?`;
        this.problems.push(`unknown shorthand flag: ${quote(letter)} in ${quote(argument)}${hint}`);
        return;
      }
      letters = letters.slice(1);
      if (letters.startsWith("=")) return this.#add(flag, letters.slice(1), `-${letter}`);
      if (takesNoValue(flag)) this.#add(flag, undefined, `-${letter}`);
      else return this.#add(flag, letters === "" ? undefined : letters, `-${letter}`);
    }
  }

  #add(flag: FlagDefinition, inline: string | undefined, shown: string): void {
    let text = inline;
    if (text === undefined) {
      text = takesNoValue(flag) ? "true" : this.#rest.pop();
      if (text === undefined) {
        this.problems.push(needsArgument(shown));
        return;
      }
    }
    this.settings.push({ flag, text });
  }
}

/** What to do about a flag that is not known. */
export const flagsHelp = "kubelet --help lists the flags";

/** A flag stands without its value. @param shown as it was written, with its dashes */
export function needsArgument(shown: string): string {
  return `flag needs an argument: ${shown}; write ${shown}${shown.startsWith("--") ? "=" : " "}VALUE`;
}

/**
 * Reads the kubelet's flags in pflag's syntax (contract config.md): `--a=b`, `--a b`, `--a`, `-v4`, `_` for `-`.
 * Throws one KubeletError (BadConfig) that lists every problem.
 * @param more names of flags that a subcommand has of its own: only to guess what a misspelt one means
 */
export function parseCommandLine(argv: readonly string[], more: readonly string[] = []): ParsedCommandLine {
  const { settings, problems, unknown } = new Splitter(argv, more).split();
  const values = new Map<string, Json>();
  for (const { flag, text } of settings) {
    if (flag.kind === "ip" && text === "") continue; // the reference takes an empty address as not given
    try {
      values.set(flag.name, parseFlagValue(flag.kind, text, values.get(flag.name)));
    } catch (thrown) {
      // Headers may hold credentials, so neither the text nor what the parser said of it is shown.
      const secret = flag.kind === "headers";
      const why = secret ? "it must be name:value,…" : messageOf(thrown);
      problems.push(`invalid argument ${secret ? "<masked>" : quote(text)} for --${flag.name}: ${why}`);
    }
  }
  if (problems.length > 0) throw badConfig("the command line has", problems, unknown ? flagsHelp : undefined);
  const version = values.get("version");
  return {
    flags: toKubeletFlags(values),
    values,
    changed: [...values.keys()],
    help: values.get("help") === true,
    version: typeof version === "string" || typeof version === "boolean" ? version : false,
  };
}

/** Problems that an error spells out; the rest is counted. */
const MAX_SHOWN = 100;

/** One error for a list of problems. @param remedy for all of them, told at the end */
export function badConfig(what: string, problems: readonly string[], remedy?: string): KubeletError {
  const head = problems.length === 1 ? `${what} a problem` : `${what} ${problems.length} problems`;
  const more = problems.length > MAX_SHOWN ? `; and ${problems.length - MAX_SHOWN} more` : "";
  const last = remedy === undefined ? "" : `; ${remedy}`;
  return new KubeletError("BadConfig", `${head}: ${problems.slice(0, MAX_SHOWN).join("; ")}${more}${last}`);
}

/** Puts the field flags over a configuration, in place: flags win, feature gates are merged by name. */
export function applyFieldFlags(config: JsonObject, parsed: ParsedCommandLine): void {
  for (const [name, value] of parsed.values) {
    const path = flagNamed(name)?.field;
    if (path === undefined) continue;
    if (path === "featureGates" && isObject(value)) {
      const merged: JsonObject = {};
      const before = isObject(config.featureGates) ? config.featureGates : {};
      for (const gates of [before, value]) {
        for (const [gate, on] of Object.entries(gates)) setKey(merged, gate, on);
      }
      setPath(config, path, merged);
    } else {
      setPath(config, path, structuredClone(value));
    }
  }
}
