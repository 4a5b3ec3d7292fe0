import { tuningOf } from "./compile/flags.ts";
import { bundle } from "./lib/bundle.ts";
import { run } from "./lib/command.ts";
import { repository } from "./lib/files.ts";

// `deno task bundle`: dist/kubelet.js, which scripts/agent.sh starts while no source is newer. It is run once with the
// flags of the agent, as Deno keeps the compiled code for those flags only, and a start that must compile takes 30 MiB more.
const made = `${repository}/dist/kubelet.js`;
const part = `${repository}/dist/part.js`;
await Deno.mkdir(`${repository}/dist`, { recursive: true });
await bundle("main.ts", part);
await Deno.rename(part, made);
const { flags } = tuningOf(await Deno.readTextFile(`${repository}/scripts/agent.sh`));
await run([
  Deno.execPath(),
  "run",
  "--quiet",
  ...flags,
  "--config",
  `${repository}/deno.json`,
  "-P=agent",
  made,
  "--version",
]);
