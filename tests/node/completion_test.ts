import assert from "@assert";
import { completionScript } from "../../mod/app/cli/completion.ts";
import { run } from "../../scripts/lib/command.ts";
import { remove } from "../../scripts/lib/files.ts";
import { ensureInstalled } from "../../scripts/node/install.ts";

const packages = [
  { name: "zsh", files: [["/usr/bin/zsh", "/bin/zsh"]] },
  { name: "fish", files: [["/usr/bin/fish"]] },
];

/** Stands for the agent, which names one pod. */
const answer = "NAMESPACE NAME\\ndefault web-n\\n";

/** What a line is completed to, at least. */
const lines: [line: string, expected: string[]][] = [
  ["kubelet exp", ["explain"]],
  ["kubelet --root-d", ["--root-dir"]],
  ["kubelet logs --fol", ["--follow"]],
  ["kubelet logs we", ["web-n"]],
  ["kubelet explain ", ["config", "image", "web-n"]],
  ["kubelet completion ", ["bash", "zsh", "fish"]],
];

async function withScript(shell: "zsh" | "fish", test: (path: string, directory: string) => Promise<void>) {
  await ensureInstalled({ more: packages });
  const directory = await Deno.makeTempDir({ prefix: "denolet-completion-" });
  try {
    const path = `${directory}/_kubelet`;
    await Deno.writeTextFile(path, completionScript(shell));
    await test(path, directory);
  } finally {
    await remove(directory);
  }
}

/** Runs a script to its end; fails when it writes to standard error. */
async function quietly(command: string[], env: Record<string, string>): Promise<string> {
  const [program = "", ...args] = command;
  const { code, stdout, stderr } = await new Deno.Command(program, { args, env, stdin: "null" }).output();
  assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
  return new TextDecoder().decode(stdout);
}

Deno.test("fish loads the completion, and completes commands, flags and pods by it", () =>
  withScript("fish", async (path, home) => {
    const env = { HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home };
    await quietly(["fish", "--no-execute", path], env);
    for (const [line, expected] of lines) {
      const script = `source ${path}; function kubelet; printf '${answer}'; end; complete --do-complete '${line}'`;
      const found = (await quietly(["fish", "--no-config", "-c", script], env)).split("\n")
        .map((one) => one.split("\t")[0]);
      for (const word of expected) assert(found.includes(word), `${line}: ${word} in ${found.slice(0, 8)}`);
    }
  }));

/**
 * Presses TAB behind each of the lines in an interactive zsh of its own terminal, and prints what that shows between
 * lines that say TOLD. The key that says so answers only when all before it are done. It also empties the line: a key for
 * that, sent before the next one, came at times while the terminal was not yet the editor's, and was lost.
 */
const zshPresses = String.raw`
zmodload zsh/zpty
zpty shell TERM=dumb zsh -f -i
zpty -w shell "$1"
zpty -w shell 'PROMPT=; LISTMAX=10000; unsetopt list_beep; bindkey "^I" list-choices
kubelet() { printf "${answer}" }; told() { zle -I; BUFFER=; print TO""LD }; zle -N told; bindkey "^X" told; print BE""GUN'
zpty -r shell shown '*BEGUN*'
print -r -- "$shown"
shift
for line; do
  zpty -w -n shell "$line"$'\t\C-x'
  zpty -r shell shown '*TOLD*'
  print -r -- "$shown"
done
zpty -d shell`;

const ways: [way: string, load: (path: string, directory: string) => string][] = [
  ["sourced", (path) => `autoload -U compinit; compinit -u -D; source ${path}`],
  ["found in fpath", (_, directory) => `fpath=(${directory} $fpath); autoload -U compinit; compinit -u -D`],
];
for (const [way, load] of ways) {
  Deno.test(`zsh loads the completion ${way}, and completes commands, flags and pods by it`, () =>
    withScript("zsh", async (path, directory) => {
      const env = { HOME: directory, ZDOTDIR: directory };
      const loading = load(path, directory);
      await quietly(["zsh", "-f", "-n", path], env);
      assert.equal(await quietly(["zsh", "-f", "-c", loading], env), "");
      const typed = lines.map(([line]) => line);
      const all = await run(["zsh", "-f", "-c", zshPresses, "zsh", loading, ...typed], { env });
      assert.doesNotMatch(all, /not found|parse error|bad (pattern|math)|_kubelet:/);
      const shown = all.slice(all.indexOf("BEGUN")).split("TOLD");
      for (const [i, [line, expected]] of lines.entries()) {
        for (const word of expected) {
          assert.match(shown[i] ?? "", new RegExp(`(^|\\s)${word}(\\s|$)`, "m"), `${line}: ${shown[i]}`);
        }
      }
    }));
}
