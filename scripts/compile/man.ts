import { launcherOptions } from "../../mod/app/cli/help.ts";
import { type Subcommand, subcommands } from "../../mod/app/cli/subcommands.ts";

/** Text as roff prints it: dashes that can be copied, nothing taken for a request. */
function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^[.']/, "\\&$&");
}

function usage({ name, words, flags }: Subcommand): string {
  const own = flags.map((flag) => `[--${flag.name}${flag.value === undefined ? "" : ` ${flag.value}`}]`);
  return [`kubelet ${name}`, words, ...own, "[flags]"].filter((part) => part !== "").join(" ");
}

/** The first word in bold is what is typed; the rest follows it. */
function synopsis(): string {
  const lines = ["kubelet [--config FILE] [flags]", ...subcommands.map(usage)];
  lines.push(...launcherOptions.map(({ words }) => `kubelet ${words}`));
  return lines.map((line) => roff(line)).join("\n.br\n");
}

function commands(): string {
  return subcommands.map((command) => {
    const flags = command.flags.map((flag) => {
      const short = flag.short === undefined ? "" : `-${flag.short}, `;
      return `.br\n${roff(`${short}--${flag.name}${flag.value === undefined ? "" : ` ${flag.value}`}: ${flag.about}`)}`;
    });
    return [".TP", `.B ${roff(`kubelet ${command.name}`)}`, roff(command.about), ...flags].join("\n");
  }).join("\n");
}

const parts: Readonly<Record<string, () => string>> = { SYNOPSIS: synopsis, COMMANDS: commands };

/**
 * The manual page: a template in which the comments `.\" SYNOPSIS` and `.\" COMMANDS` stand for what is known of the
 * command line. Throws when one of them is missing.
 */
export function manualPage(template: string): string {
  let page = template;
  for (const [name, text] of Object.entries(parts)) {
    const place = `.\\" ${name}\n`;
    if (!page.includes(place)) throw new Error(`the manual page has no place for its ${name}`);
    page = page.replace(place, () => `${text()}\n`);
  }
  return page;
}
