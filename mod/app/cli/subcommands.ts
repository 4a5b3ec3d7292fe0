/** A flag that only a subcommand has. */
export interface OwnFlag {
  readonly name: string;
  readonly short?: string;
  /** What its value is, as help shows it; a flag without one takes no value. */
  readonly value?: string;
  readonly about: string;
}

/** A command besides running the agent. The agent's flags are understood too, and say which agent is meant. */
export interface Subcommand {
  readonly name: string;
  /** Its words, as help shows them. */
  readonly words: string;
  /** Fewest and most words. */
  readonly count: readonly [number, number];
  readonly flags: readonly OwnFlag[];
  readonly about: string;
}

/** Shells that completion is there for. */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = typeof shells[number];

export const subcommands: readonly Subcommand[] = [
  {
    name: "ps",
    words: "",
    count: [0, 0],
    flags: [{ name: "output", short: "o", value: "json", about: "Print JSON instead of a table." }],
    about: "list the pods of the running agent, also those it did not take",
  },
  {
    name: "explain",
    words: "POD | config [FIELD] | image IMAGE",
    count: [1, 2],
    flags: [],
    about: "say why a pod is as it is and what to do; what a configuration field means; who uses an image",
  },
  {
    name: "logs",
    words: "POD",
    count: [1, 1],
    flags: [
      { name: "follow", short: "f", about: "Go on until the container ends." },
      { name: "tail", value: "lines", about: "Begin so many lines before the end." },
      { name: "since", value: "duration", about: "Leave out what is older, such as 10m." },
      { name: "previous", short: "p", about: "Of the instance before the last restart." },
      { name: "container", short: "c", value: "name", about: "Which container, where the pod has several." },
      { name: "timestamps", about: "Put the time before each line." },
    ],
    about: "print what a container wrote",
  },
  {
    name: "check",
    words: "",
    count: [0, 0],
    flags: [],
    about: "check that this machine can be a node with these flags; exit code 1 when it cannot",
  },
  {
    name: "completion",
    words: shells.join("|"),
    count: [1, 1],
    flags: [],
    about: "print a script that completes this command in a shell",
  },
];
