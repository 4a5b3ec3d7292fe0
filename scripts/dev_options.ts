import { parseArgs } from "node:util";
import { repository } from "./lib/files.ts";
import { unparsed, UsageError } from "./lib/script.ts";

/** What `deno task dev` was asked for. */
export interface DevOptions {
  readonly once: boolean;
  readonly keep: boolean;
  readonly help: boolean;
  readonly manifests: string;
  readonly name: string;
  readonly containerd: "debian" | "v2";
  readonly root: string;
  /** Milliseconds that --once may take. */
  readonly timeout: number;
  /** More flags for the agent. */
  readonly flags: readonly string[];
}

export const usage = `deno task dev [OPTIONS] [-- AGENT FLAGS...]
Runs pods on a private containerd with a private agent; Ctrl-C removes everything again.

  --once             start the pods, wait until each is ready, has run to its end or (annotated
                     denolet.dev/expect: crashloop) crash loops; print a table; exit 0, or 1 with the reasons
  --timeout SECONDS  how long --once may take (default: 300)
  --keep             leave everything running at the end; the next run of the same name removes it
  --manifests DIR    pods to run (default: examples/pods); your files stay as they are: the agent follows a copy,
                     in ROOT/agent/manifests; add, edit or remove a pod there to see it change
  --containerd V     debian (1.6 of the package, default) or v2 (built once, some minutes)
  --name NAME        makes several dev nodes differ (default: dev)
  --root DIR         where everything is kept (default: /var/lib/denolet-NAME)`;

/** Reads the command line. Throws UsageError. `directory`: what relative paths start from. */
export function devOptions(args: readonly string[], directory: string): DevOptions {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        once: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
        manifests: { type: "string", default: `${repository}/examples/pods` },
        containerd: { type: "string", default: "debian" },
        name: { type: "string", default: "dev" },
        root: { type: "string" },
        timeout: { type: "string", default: "300" },
      },
    });
  } catch (thrown) {
    throw unparsed(thrown);
  }
  const { values, positionals } = parsed;
  const after = args.indexOf("--");
  const flags = after < 0 ? [] : args.slice(after + 1);
  const stray = positionals.slice(0, positionals.length - flags.length);
  if (stray.length > 0) throw new UsageError(`unknown argument ${stray[0]}; the agent's flags go behind --`);
  const { containerd, name } = values;
  if (containerd !== "debian" && containerd !== "v2") {
    throw new UsageError(`--containerd ${containerd}: must be debian or v2`);
  }
  if (!/^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$/.test(name)) {
    throw new UsageError(`--name ${name}: must be 1 to 20 of a-z, 0-9 and '-'`);
  }
  if (!/^[1-9]\d{0,5}$/.test(values.timeout)) {
    throw new UsageError(`--timeout ${values.timeout}: must be whole seconds`);
  }
  const absolute = (path: string) => path.startsWith("/") ? path : `${directory}/${path}`;
  return {
    once: values.once,
    keep: values.keep,
    help: values.help,
    manifests: absolute(values.manifests),
    containerd,
    name,
    root: values.root === undefined ? `/var/lib/denolet-${name}` : absolute(values.root).replace(/\/+$/, ""),
    timeout: Number(values.timeout) * 1000,
    flags,
  };
}
