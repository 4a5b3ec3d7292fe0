import { tuningOf } from "./compile/flags.ts";
import { bundle } from "./lib/bundle.ts";
import { run } from "./lib/command.ts";
import { repository } from "./lib/files.ts";
import { noArguments, runScript } from "./lib/script.ts";

const usage = `deno task bundle
Makes dist/kubelet.js, which scripts/agent.sh starts while no source is newer. It takes no arguments.`;

/** It is run once with the agent's flags: Deno keeps the compiled code for those only, and to compile takes 30 MiB more. */
async function main(args: readonly string[]): Promise<number> {
  noArguments(args);
  const made = `${repository}/dist/kubelet.js`;
  const part = `${repository}/dist/part.js`;
  await Deno.mkdir(`${repository}/dist`, { recursive: true });
  await bundle("main.ts", part);
  await Deno.rename(part, made);
  const { flags } = tuningOf(await Deno.readTextFile(`${repository}/scripts/agent.sh`));
  const config = ["--config", `${repository}/deno.json`, "-P=agent"];
  await run([Deno.execPath(), "run", "--quiet", ...flags, ...config, made, "--version"]);
  return 0;
}

if (import.meta.main) await runScript({ name: "bundle", usage, main });
