import { KubeletError } from "../../base/errors.ts";
import { parseCommandLine, type ParsedCommandLine } from "../config/command_line.ts";
import { didYouMean } from "../config/nearest.ts";
import { rawVersion, versionLine } from "../version.ts";
import { helpText } from "./help.ts";

/** Exit codes, as the reference has them: 0 for help, version and a clean end, 1 for everything else. */
export const exitCodes = { ok: 0, failed: 1 } as const;

/** What a command line asks for. */
export type Command =
  | { readonly command: "run"; readonly argv: readonly string[]; readonly parsed: ParsedCommandLine }
  | {
    readonly command: "explain";
    /** `config`, or what else is to be explained, such as a pod. */
    readonly subject: string;
    /** Words after the subject, such as a field. */
    readonly rest: readonly string[];
    /** The flags, for loadConfig. */
    readonly argv: readonly string[];
    readonly parsed: ParsedCommandLine;
  }
  | { readonly command: "help"; readonly text: string }
  | { readonly command: "version"; readonly text: string };

const subcommands = ["explain"];

/**
 * Decides what a command line asks for. Pure. Throws a KubeletError (BadConfig) that lists every problem; the caller
 * prints `Error: <message>` to stderr and exits with 1.
 */
export function parseCommand(argv: readonly string[]): Command {
  const [first, ...others] = argv;
  if (first === "explain") return parseExplain(others);
  if (first === "help" && others.length === 0) return { command: "help", text: helpText() };
  if (first !== undefined && !first.startsWith("-")) {
    throw new KubeletError(
      "BadConfig",
      `unknown command ${JSON.stringify(first.slice(0, 80))}${
        didYouMean(first, subcommands)
      }; the agent takes flags, or "explain"`,
    );
  }
  const parsed = parseCommandLine(argv);
  return shortcut(parsed) ?? { command: "run", argv, parsed };
}

function shortcut(parsed: ParsedCommandLine): Command | undefined {
  if (parsed.help) return { command: "help", text: helpText() };
  const { version } = parsed;
  if (version === "raw") return { command: "version", text: `${rawVersion}\n` };
  // --version=v1.36.3-x changes the version that is reported; this agent reports one version, so it is only checked.
  if (version === true) return { command: "version", text: `${versionLine}\n` };
  return undefined;
}

function parseExplain(words: readonly string[]): Command {
  const at = words.findIndex((word) => word.startsWith("-"));
  // A flag may itself be what is to be explained: `explain config --max-pods` has nothing but that one word.
  const onlyFlag = at === 1 && words.length === 2 && words[0] === "config" && /^--[a-z_-]+$/.test(words[1] ?? "") &&
    words[1] !== "--help";
  const end = at < 0 || onlyFlag ? words.length : at;
  const [subject, ...rest] = words.slice(0, end);
  const argv = words.slice(end);
  const parsed = parseCommandLine(argv);
  if (parsed.help) return { command: "help", text: helpText() };
  if (subject === undefined) {
    throw new KubeletError("BadConfig", "explain needs a subject; write: kubelet explain config [FIELD]");
  }
  if (subject === "config" && rest.length > 1) {
    throw new KubeletError(
      "BadConfig",
      `explain config takes one field, not ${rest.length}; write: kubelet explain config ${rest[0]}`,
    );
  }
  return { command: "explain", subject, rest, argv, parsed };
}
