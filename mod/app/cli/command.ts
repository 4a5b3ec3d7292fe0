import { KubeletError, messageOf } from "../../base/errors.ts";
import { parseCommandLine, type ParsedCommandLine } from "../config/command_line.ts";
import { parseDuration } from "../../base/duration.ts";
import { badConfig } from "../config/command_line.ts";
import { didYouMean } from "../config/nearest.ts";
import { rawVersion, versionLine } from "../version.ts";
import { helpText } from "./help.ts";
import { checkWords, type SplitLine, splitLine } from "./split.ts";
import { type Shell, shells, type Subcommand, subcommands } from "./subcommands.ts";

/** Exit codes, as the reference has them: 0 for help, version and a clean end, 1 for everything else. */
export const exitCodes = { ok: 0, failed: 1 } as const;

/** What `kubelet logs` was asked. */
export interface LogsRequest {
  /** A name, namespace/name or the beginning of a UID. */
  readonly pod: string;
  readonly container?: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tailLines?: number;
  /** Milliseconds. */
  readonly sinceMs?: number;
}

/** The agent's flags beside a subcommand's own: they say which agent is meant. */
interface OfAgent {
  readonly argv: readonly string[];
  readonly parsed: ParsedCommandLine;
}

/** What a command line asks for. */
export type Command =
  | ({ readonly command: "ps"; readonly json: boolean } & OfAgent)
  | ({ readonly command: "logs"; readonly request: LogsRequest } & OfAgent)
  | ({ readonly command: "check" } & OfAgent)
  | ({ readonly command: "completion"; readonly shell: Shell } & OfAgent)
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

/**
 * Decides what a command line asks for. Pure. Throws a KubeletError (BadConfig) that lists every problem; the caller
 * prints `Error: <message>` to stderr and exits with 1.
 */
export function parseCommand(argv: readonly string[]): Command {
  const [first, ...others] = argv;
  const subcommand = subcommands.find(({ name }) => name === first);
  if (subcommand) return parseSubcommand(subcommand, others);
  if (first === "help" && others.length === 0) return { command: "help", text: helpText() };
  if (first !== undefined && !first.startsWith("-")) {
    const names = subcommands.map(({ name }) => name);
    throw new KubeletError(
      "BadConfig",
      `unknown command ${JSON.stringify(first.slice(0, 80))}${
        didYouMean(first, names)
      }; the agent takes flags, or one of ${names.join(", ")}`,
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

function parseSubcommand(subcommand: Subcommand, args: readonly string[]): Command {
  // A flag may itself be what is to be explained: `explain config --max-pods` has nothing but that one word.
  const [word, flag = "", ...more] = args;
  const onlyFlag = subcommand.name === "explain" && word === "config" && more.length === 0 &&
    /^--[a-z_-]+$/.test(flag) && flag !== "--help";
  const line = onlyFlag ? { words: args, own: new Map(), argv: [] } : splitLine(subcommand, args);
  const parsed = parseCommandLine(line.argv, subcommand.flags.map(({ name }) => name));
  if (parsed.help) return { command: "help", text: helpText() };
  const agent = { argv: line.argv, parsed };
  if (subcommand.name === "explain") return parseExplain(line.words, agent);
  checkWords(subcommand, line.words);
  switch (subcommand.name) {
    case "ps":
      return { command: "ps", json: wantsJson(line), ...agent };
    case "logs":
      return { command: "logs", request: logsRequest(line), ...agent };
    case "check":
      return { command: "check", ...agent };
    default:
      return { command: "completion", shell: shellNamed(line.words[0] ?? ""), ...agent };
  }
}

function textOf(line: SplitLine, name: string): string | undefined {
  const value = line.own.get(name);
  return typeof value === "string" ? value : undefined;
}

function wantsJson(line: SplitLine): boolean {
  const output = textOf(line, "output");
  if (output === undefined || output === "json") return output === "json";
  throw new KubeletError("BadConfig", `ps: --output is ${JSON.stringify(output.slice(0, 80))}; the one form is json`);
}

function shellNamed(name: string): Shell {
  const shell = shells.find((each) => each === name);
  if (shell) return shell;
  throw new KubeletError(
    "BadConfig",
    `completion: there is none for ${JSON.stringify(name.slice(0, 80))}; write one of ${shells.join(", ")}`,
  );
}

function logsRequest(line: SplitLine): LogsRequest {
  const problems: string[] = [];
  const [tail, since, container] = ["tail", "since", "container"].map((name) => textOf(line, name));
  const tailLines = tail === undefined ? undefined : Number(tail);
  if (tail !== undefined && (!/^\d{1,15}$/.test(tail))) {
    problems.push(`--tail is ${JSON.stringify(tail.slice(0, 80))}; write a number of lines, 0 or more`);
  }
  let sinceMs: number | undefined;
  try {
    if (since !== undefined) sinceMs = parseDuration(since, { what: "--since" });
    if (sinceMs !== undefined && sinceMs <= 0) {
      problems.push(`--since is ${since}; write a time that has passed, such as 10m`);
    }
  } catch (thrown) {
    problems.push(messageOf(thrown));
  }
  if (problems.length > 0) throw badConfig("kubelet logs: the command line has", problems);
  return {
    pod: line.words[0] ?? "",
    follow: line.own.has("follow"),
    previous: line.own.has("previous"),
    timestamps: line.own.has("timestamps"),
    ...(container === undefined ? {} : { container }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
  };
}

function parseExplain(words: readonly string[], agent: OfAgent): Command {
  const [subject, ...rest] = words;
  if (subject === undefined) {
    throw new KubeletError(
      "BadConfig",
      "explain needs a subject; write: kubelet explain POD, kubelet explain config [FIELD] or kubelet explain image IMAGE",
    );
  }
  if (subject === "config" && rest.length > 1) {
    throw new KubeletError(
      "BadConfig",
      `explain config takes one field, not ${rest.length}; write: kubelet explain config ${rest[0]}`,
    );
  }
  const named = subject === "image" || subject === "pod";
  if (subject !== "config" && rest.length !== (named ? 1 : 0)) {
    throw new KubeletError(
      "BadConfig",
      named
        ? `explain ${subject} takes one name, not ${rest.length}; write: kubelet explain ${subject} NAME`
        : `explain takes one pod, not ${rest.length + 1}; write: kubelet explain ${subject.slice(0, 80)}`,
    );
  }
  return { command: "explain", subject, rest, ...agent };
}
