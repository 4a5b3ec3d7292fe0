import assert from "@assert";
import { KubeletError } from "../../base/errors.ts";
import { allFlags } from "../config/flags.ts";
import { type Command, parseCommand } from "./command.ts";
import { subcommands } from "./subcommands.ts";

function textOf(command: Command): string {
  if (!("text" in command)) throw new Error(`${command.command} has no text`);
  return command.text;
}

Deno.test("flags run the agent", () => {
  const command = parseCommand(["--max-pods=5", "-v", "2"]);
  assert.equal(command.command, "run");
  assert.deepEqual(command.command === "run" && command.argv, ["--max-pods=5", "-v", "2"]);
  assert.equal(parseCommand([]).command, "run");
  assert.equal(parseCommand(["--version=false"]).command, "run");
  assert.equal(parseCommand(["--help=false"]).command, "run");
});

for (const argv of [["--version"], ["--version=true"], ["--version=1"], ["--max-pods=1", "--version"]]) {
  Deno.test(`${argv.join(" ")} prints the version`, () => {
    assert.deepEqual(parseCommand(argv), { command: "version", text: "Kubernetes v1.36.3\n" });
  });
}

Deno.test("--version=raw prints every field of the version", () => {
  const command = parseCommand(["--version=raw"]);
  assert.equal(command.command, "version");
  const text = textOf(command);
  assert.match(text, /"gitVersion":"v1\.36\.3"/);
});

for (const argv of [["-h"], ["--help"], ["help"], ["explain", "--help"], ["--help", "--version"]]) {
  Deno.test(`${argv.join(" ")} prints help`, () => assert.equal(parseCommand(argv).command, "help"));
}

Deno.test("help has every flag and marks the deprecated ones", () => {
  const command = parseCommand(["-h"]);
  assert.equal(command.command, "help");
  const text = textOf(command);
  for (const flag of allFlags) assert(text.includes(`--${flag.name}`), flag.name);
  assert.match(
    text,
    /--max-pods int\n +Most pods on this node\. Default: 110\. DEPRECATED: set maxPods in the file of --config\./,
  );
  assert.match(text, /-v, --v level\n/);
  assert.match(text, /MemoryQoS=true\|false \(ALPHA, default false\)/);
  assert(text.split("\n").every((line: string) => line.length <= 130));
});

const explains: [argv: string[], subject: string, rest: string[], flags: string[]][] = [
  [["explain", "config"], "config", [], []],
  [["explain", "config", "maxPods"], "config", ["maxPods"], []],
  [["explain", "config", "--max-pods"], "config", ["--max-pods"], []],
  [["explain", "config", "maxPods", "--config=/c"], "config", ["maxPods"], ["--config=/c"]],
  [["explain", "config", "--config", "/c"], "config", [], ["--config", "/c"]],
  [["explain", "config", "--config=/c"], "config", [], ["--config=/c"]],
  [["explain", "web-node1", "-v4"], "web-node1", [], ["-v4"]],
];
for (const [argv, subject, rest, flags] of explains) {
  Deno.test(argv.join(" "), () => {
    const command = parseCommand(argv);
    if (command.command !== "explain") throw new Error(command.command);
    assert.deepEqual([command.subject, command.rest, command.argv], [subject, rest, flags]);
  });
}

const asked: [argv: string[], expected: Record<string, unknown>][] = [
  [["ps"], { command: "ps", json: false, argv: [] }],
  [["ps", "-o", "json", "--root-dir", "/r"], { command: "ps", json: true, argv: ["--root-dir", "/r"] }],
  [["ps", "--output=json", "-v4"], { command: "ps", json: true, argv: ["-v4"] }],
  [["ps", "-ojson", "-v", "4", "--seccomp-default"], { json: true, argv: ["-v", "4", "--seccomp-default"] }],
  [["logs", "web"], { request: { pod: "web", follow: false, previous: false, timestamps: false } }],
  [
    ["logs", "-fp", "-c", "main", "--tail=5", "--since", "1m", "web", "--timestamps", "--root-dir=/r"],
    {
      argv: ["--root-dir=/r"],
      request: {
        pod: "web",
        container: "main",
        follow: true,
        previous: true,
        timestamps: true,
        tailLines: 5,
        sinceMs: 60_000,
      },
    },
  ],
  [["logs", "--", "-web"], { request: { pod: "-web", follow: false, previous: false, timestamps: false } }],
  [["logs", "--follow=false", "web"], { request: { pod: "web", follow: false, previous: false, timestamps: false } }],
  [["check", "--config=/c", "--max-pods", "7"], { command: "check", argv: ["--config=/c", "--max-pods", "7"] }],
  [["completion", "zsh"], { command: "completion", shell: "zsh" }],
  [["explain", "pod", "config"], { command: "explain", subject: "pod", rest: ["config"] }],
  [["explain", "--root-dir", "/r", "web"], { subject: "web", argv: ["--root-dir", "/r"] }],
];
for (const [argv, expected] of asked) {
  Deno.test(argv.join(" "), () => {
    const command: Record<string, unknown> = { ...parseCommand(argv) };
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(command[key], value, key);
  });
}

Deno.test("help names every command and its flags", () => {
  const text = textOf(parseCommand(["--help"]));
  for (const { name, flags } of subcommands) {
    assert.match(text, new RegExp(`^  kubelet ${name}\\b`, "m"));
    for (const flag of flags) assert(text.includes(`--${flag.name}`), flag.name);
  }
  assert.match(text, /^ {2}kubelet --denolet-permissions \[flags\]\n {12}print which rights/m);
});

const bad: [argv: string[], message: RegExp][] = [
  [["run"], /unknown command "run"/],
  [["explian", "config"], /unknown command "explian"; did you mean explain/],
  [["explain"], /needs a subject/],
  [["explain", "config", "a", "b"], /takes one field, not 2/],
  [["explain", "config", "a", "--nope=1"], /unknown flag: --nope/],
  [["explain", "a", "b"], /takes one pod, not 2/],
  [["explain", "image"], /explain image takes one name, not 0/],
  [["ps", "web"], /ps takes no words, not 1; write: kubelet ps \[flags\]/],
  [["ps", "-o", "yaml"], /the one form is json/],
  [["ps", "-o"], /flag needs an argument: -o; write -o VALUE$/],
  [["ps", "--nope"], /unknown flag: --nope; kubelet --help lists the flags$/],
  [["logs", "web", "--folow"], /unknown flag: --folow; did you mean --follow\?; kubelet --help lists the flags$/],
  [["ps", "-x"], /unknown shorthand flag: "x" in "-x"; kubelet --help lists the flags$/],
  [["logs"], /logs takes 1 word, not 0/],
  [["logs", "a", "--tail=-1", "--since=x"], /2 problems: --tail is "-1".*--since: duration "x"/],
  [["logs", "a", "--tail", "1e3"], /--tail is "1e3"/],
  [["logs", "a", "--since=-5m"], /--since is -5m/],
  [["logs", "a", "-f=7"], /-f takes no value/],
  [["completion"], /completion takes 1 word/],
  [["completion", "csh"], /none for "csh"; write one of bash, zsh, fish/],
  [["--max-pods=1", "explain"], /unknown command "explain"/],
  [["--help", "--nope"], /unknown flag: --nope/],
];
for (const [argv, message] of bad) {
  Deno.test(`refused: ${argv.join(" ")}`, () => {
    assert.throws(
      () => parseCommand(argv),
      (thrown: unknown) =>
        thrown instanceof KubeletError && thrown.code === "BadConfig" && message.test(thrown.message),
    );
  });
}
