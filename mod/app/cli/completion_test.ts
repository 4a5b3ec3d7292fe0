import assert from "@assert";
import { allFlags } from "../config/flags.ts";
import { completionScript } from "./completion.ts";
import { shells, subcommands } from "./subcommands.ts";

for (const shell of shells) {
  Deno.test(`completion for ${shell} has every command and every flag that is not deprecated`, () => {
    const script = completionScript(shell);
    for (const { name, flags } of subcommands) {
      assert(script.includes(name), name);
      for (const flag of flags) assert(script.includes(flag.name), flag.name);
    }
    for (const { name, deprecated } of allFlags) {
      const shown = new RegExp(`(--|-l )${name}[ :']`).test(script);
      if (!subcommands.some(({ flags }) => flags.some((flag) => flag.name === name))) {
        assert.equal(shown, !deprecated, name);
      }
    }
  });
}

/** Completes a line by the script in a real bash. */
async function completed(words: string[]): Promise<string[]> {
  const script = `${completionScript("bash")}
kubelet() { printf 'NAMESPACE NAME\\ndefault web-n\\n'; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kubelet; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = await new Deno.Command("bash", { args: ["-c", script, "bash", ...words] }).output();
  assert.equal(new TextDecoder().decode(stderr), "");
  return new TextDecoder().decode(stdout).split("\n").filter((word) => word !== "");
}

const lines: [words: string[], expected: string[]][] = [
  [["kubelet", "exp"], ["explain"]],
  [["kubelet", "--root-d"], ["--root-dir"]],
  [["kubelet", "logs", "--fol"], ["--follow"]],
  [["kubelet", "logs", "we"], ["web-n"]],
  [["kubelet", "completion", ""], ["bash", "zsh", "fish"]],
];
for (const [words, expected] of lines) {
  Deno.test({
    name: `bash completes ${words.join(" ")}`,
    fn: async () => {
      const found = await completed(words);
      for (const word of expected) assert(found.includes(word), `${word} in ${found.slice(0, 5)}`);
    },
  });
}
