import { knownGates } from "../config/feature_gates_table.ts";
import { allFlags, type FlagDefinition } from "../config/flags.ts";
import { type Subcommand, subcommands } from "./subcommands.ts";
import { kubernetesVersion } from "../version.ts";

const kinds: Readonly<Record<FlagDefinition["kind"], string>> = {
  bool: "",
  int32: "int",
  int64: "int",
  level: "level",
  string: "string",
  duration: "duration",
  quantity: "quantity",
  ip: "ip",
  list: "a,b,…",
  map: "key=value,…",
  mapEntry: "key=value",
  thresholds: "signal<amount,…",
  gates: "Gate=true|false,…",
  headers: "name:value,…",
  vmodule: "pattern=N,…",
  taints: "key=value:effect,…",
  reservedMemory: "node:type=amount,…",
  version: "",
};

/** What the launcher of the one executable answers itself, as the first word (scripts/compile/launcher.c). */
export const launcherOptions = [
  {
    words: "--denolet-permissions [flags]",
    about: "print which rights the agent would have with these flags (only the one executable has it, as first word)",
  },
  {
    words: "--denolet-clean [SECONDS]",
    about:
      "remove what other builds of the one executable unpacked into its cache, that nothing runs from and that was not " +
      "started for so long (a day)",
  },
] as const;

function wrap(text: string, indent: string, width: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((part) => `${indent}${part}`).join("\n");
}

function flagText(flag: FlagDefinition): string {
  const short = flag.shorthand === undefined ? "    " : `-${flag.shorthand}, `;
  const kind = kinds[flag.kind];
  const head = `  ${short}--${flag.name}${kind === "" ? "" : ` ${kind}`}`;
  const initial = flag.initial === undefined || flag.initial === "" ? "" : ` Default: ${flag.initial}.`;
  const old = flag.deprecated === true
    ? flag.field === undefined ? " DEPRECATED." : ` DEPRECATED: set ${flag.field} in the file of --config.`
    : "";
  return `${head}\n${wrap(`${flag.about}${initial}${old}`, "            ", 100)}`;
}

function commandText({ name, words, flags, about }: Subcommand): string {
  const own = flags.map((flag) => {
    const value = flag.value === undefined ? "" : ` ${flag.value}`;
    const short = flag.short === undefined ? "" : `-${flag.short}, `;
    return wrap(`${short}--${flag.name}${value}: ${flag.about}`, "              ", 100);
  });
  return [`  kubelet ${name}${words === "" ? "" : ` ${words}`} [flags]`, wrap(about, "            ", 100), ...own].join(
    "\n",
  );
}

/** The text of --help: every flag in groups. */
export function helpText(): string {
  const groups = new Map<string, FlagDefinition[]>();
  for (const flag of allFlags) groups.set(flag.group, [...(groups.get(flag.group) ?? []), flag]);
  const gates = Object.entries(knownGates)
    .filter(([, gate]) => gate.stage === "ALPHA" || gate.stage === "BETA")
    .map(([name, gate]) => `  ${name}=true|false (${gate.stage}, default ${gate.on})`);
  return [
    `A Kubernetes node agent that stands in for the kubelet of ${kubernetesVersion}: it runs the pods of a node through a\n` +
    "container runtime, from static manifests (files or a URL) and, with --kubeconfig, from an API server, and keeps them as\n" +
    "they should be. Flags and fields that nothing acts on yet are accepted, and named when the agent starts.",
    [
      "Usage:",
      "  kubelet [flags]",
      "            run the agent",
      ...subcommands.map(commandText),
      "  kubelet --version | --help",
      ...launcherOptions.map(({ words, about }) => `  kubelet ${words}\n${wrap(about, "            ", 100)}`),
      "",
      "The commands take the agent's flags too: --root-dir says which agent is meant.",
    ].join("\n"),
    ...[...groups].map(([title, flags]) => `${title}:\n${flags.map(flagText).join("\n")}`),
    `Feature gates (--feature-gates, featureGates):\n${gates.join("\n")}`,
  ].join("\n\n") + "\n";
}
