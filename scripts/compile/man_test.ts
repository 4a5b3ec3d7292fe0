import assert from "@assert";
import { launcherOptions } from "../../mod/app/cli/help.ts";
import { subcommands } from "../../mod/app/cli/subcommands.ts";
import { attempt } from "../lib/command.ts";
import { repository } from "../lib/files.ts";
import { manualPage } from "./man.ts";

const page = async () => manualPage(await Deno.readTextFile(`${repository}/packaging/deb/kubelet.8`));

Deno.test("the manual page's synopsis has every command with its words and flags", async () => {
  const synopsis = /^\.SH SYNOPSIS\n([^]*?)^\.SH /m.exec((await page()).replaceAll("\\-", "-"))?.[1]?.split("\n") ?? [];
  for (const { name, words, flags } of subcommands) {
    const line = synopsis.find((one) => one.startsWith(`kubelet ${name} `)) ?? "";
    assert(line.includes(words), line);
    for (const flag of flags) assert(line.includes(`[--${flag.name}`), `${name}: ${flag.name}`);
  }
  for (const { words } of launcherOptions) assert(synopsis.includes(`kubelet ${words}`), words);
});

Deno.test("the manual page is one that man takes, and tells of each command", async () => {
  const text = await page();
  for (const { about } of subcommands) assert(text.includes(about.replaceAll("-", "\\-")), about);
  const lines = text.split("\n");
  assert.deepEqual(lines.filter((line) => /^[.'](?!(TH|SH|TP|PP|br|B|BR|I|IR|RI|RB)\b|\\")/.test(line)), []);
  const { code, stderr } = await attempt([
    "sh",
    "-c",
    "command -v man >/dev/null || exit 0; man --warnings -l - <<E >/dev/null\n" + text + "\nE",
  ]);
  assert.deepEqual([code, stderr], [0, ""]);
});

Deno.test("a template without a place for the commands is refused", () => {
  assert.throws(() => manualPage('.\\" SYNOPSIS\n'), /no place for its COMMANDS/);
});
