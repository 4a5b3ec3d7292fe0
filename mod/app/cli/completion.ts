import { allFlags } from "../config/flags.ts";
import { type Shell, shells, type Subcommand, subcommands } from "./subcommands.ts";

interface Word {
  readonly text: string;
  readonly about: string;
}

const agentFlags: readonly Word[] = allFlags.filter((flag) => !flag.deprecated).map(({ name, about }) => ({
  text: `--${name}`,
  about,
}));

function ownFlags(command: Subcommand): Word[] {
  return command.flags.map(({ name, about }) => ({ text: `--${name}`, about }));
}

function wordsOf(command: Subcommand): Word[] {
  switch (command.name) {
    case "completion":
      return shells.map((text) => ({ text, about: `for ${text}` }));
    case "explain":
      return [
        { text: "config", about: "what a configuration field means" },
        { text: "image", about: "who uses an image" },
        { text: "pod", about: "why a pod is as it is" },
      ];
    default:
      return [];
  }
}

const commandWords: readonly Word[] = subcommands.map(({ name, about }) => ({ text: name, about }));

/** A single-quoted word of bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

const texts = (words: readonly Word[]) => words.map(({ text }) => text).join(" ");

/** Pods that may be named, by asking the agent; nothing when it does not answer. */
const pods = "kubelet ps 2>/dev/null | awk 'NR > 1 { print $2 }'";
const namesPods = ["explain", "logs"];

function bash(): string {
  const cases = subcommands.map((command) =>
    [
      `    ${command.name})`,
      `      words=${quoted(texts([...wordsOf(command), ...ownFlags(command), ...agentFlags]))}`,
      ...(namesPods.includes(command.name) ? [`      [ "$COMP_CWORD" -eq 2 ] && words="$words $(${pods})"`] : []),
      "      ;;",
    ].join("\n")
  );
  return [
    "# Completion of kubelet for bash: source <(kubelet completion bash)",
    "_kubelet() {",
    "  local words current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}",
    "  COMPREPLY=()",
    "  case $previous in",
    '    --config|--kubeconfig|--lock-file) COMPREPLY=($(compgen -f -- "$current")); return ;;',
    '    --root-dir|--config-dir|--cert-dir) COMPREPLY=($(compgen -d -- "$current")); return ;;',
    "  esac",
    "  case ${COMP_WORDS[1]} in",
    ...cases,
    `    *) words=${quoted(texts(agentFlags))}`,
    `      [ "$COMP_CWORD" -eq 1 ] && words="$words ${texts(commandWords)}" ;;`,
    "  esac",
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    "}",
    "complete -F _kubelet kubelet",
    "",
  ].join("\n");
}

function zsh(): string {
  const described = (words: readonly Word[]) =>
    words.map(({ text, about }) => quoted(`${text.replaceAll(":", "\\:")}:${about}`)).join(" ");
  const cases = subcommands.map((command) =>
    [
      `    ${command.name})`,
      `      words_of=(${described([...wordsOf(command), ...ownFlags(command)])})`,
      ...(namesPods.includes(command.name) ? [`      (( CURRENT == 3 )) && compadd -- $(${pods})`] : []),
      "      ;;",
    ].join("\n")
  );
  return [
    "#compdef kubelet",
    "# Completion of kubelet for zsh, behind compinit: source <(kubelet completion zsh); or as the file _kubelet of $fpath",
    "_kubelet() {",
    "  local -a words_of flags_of",
    `  flags_of=(${described(agentFlags)})`,
    "  case $words[CURRENT-1] in",
    "    --config|--kubeconfig|--lock-file) _files; return ;;",
    "    --root-dir|--config-dir|--cert-dir) _files -/; return ;;",
    "  esac",
    "  case $words[2] in",
    ...cases,
    `    *) (( CURRENT == 2 )) && words_of=(${described(commandWords)}) ;;`,
    "  esac",
    "  _describe -t commands 'kubelet' words_of",
    "  _describe -t flags 'flag' flags_of",
    "}",
    // As a file `_kubelet` of $fpath this is the function's own first call; sourced, it only makes the function known.
    'if [ "$funcstack[1]" = _kubelet ]; then _kubelet "$@"; else compdef _kubelet kubelet; fi',
    "",
  ].join("\n");
}

function fish(): string {
  const text = (words: string) => `'${words.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const first = "-n __fish_use_subcommand";
  const after = (command: Subcommand) => `-n '__fish_seen_subcommand_from ${command.name}'`;
  const lines = ["# Completion of kubelet for fish: kubelet completion fish | source", "complete -c kubelet -f"];
  for (const command of subcommands) {
    lines.push(`complete -c kubelet ${first} -a ${command.name} -d ${text(command.about)}`);
    for (const word of wordsOf(command)) {
      lines.push(`complete -c kubelet ${after(command)} -a ${word.text} -d ${text(word.about)}`);
    }
    if (namesPods.includes(command.name)) lines.push(`complete -c kubelet ${after(command)} -a ${text(`(${pods})`)}`);
    for (const flag of command.flags) {
      const short = flag.short === undefined ? "" : ` -s ${flag.short}`;
      const value = flag.value === undefined ? "" : " -x";
      lines.push(`complete -c kubelet ${after(command)} -l ${flag.name}${short}${value} -d ${text(flag.about)}`);
    }
  }
  const valueless = new Set(
    allFlags.filter(({ kind }) => kind === "bool" || kind === "version").map(({ name }) => name),
  );
  for (const { text: word, about } of agentFlags) {
    const name = word.slice(2);
    lines.push(`complete -c kubelet -l ${name}${valueless.has(name) ? "" : " -r"} -d ${text(about)}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The script of `kubelet completion SHELL`, made from the tables of commands and flags; deprecated flags are left out. */
export function completionScript(shell: Shell): string {
  return { bash, zsh, fish }[shell]();
}
