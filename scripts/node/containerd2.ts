import { attempt } from "../lib/command.ts";
import { cacheDirectory, exists } from "../lib/files.ts";
import { print } from "../lib/print.ts";
import { goBuild } from "./go_build.ts";

const pinned = "2.4.2";
const programs = ["containerd", "containerd-shim-runc-v2", "ctr"] as const;

/**
 * The directory with containerd 2, its shim and ctr. Builds them from the Go modules pinned in containerd2/go.mod
 * (2 to 3 minutes on two cores the first time) into the cache directory; later it only looks.
 */
export async function ensureContainerd2(options: {
  cache?: string;
  log?: (line: string) => void;
} = {}): Promise<string> {
  const cache = options.cache ?? cacheDirectory();
  const target = `${cache}/containerd-${pinned}`;
  for (const directory of [target, "/var/tmp/node-conformance/bin"]) if (await complete(directory)) return directory;
  const module = "github.com/containerd/containerd/v2";
  await goBuild(target, {
    ...options,
    about: `building containerd ${pinned} (some minutes, once)`,
    module: new URL("containerd2", import.meta.url),
    packages: programs.map((program) => `${module}/cmd/${program}`),
    settings: [`${module}/version.Version=${pinned}`],
  });
  return target;
}

async function complete(directory: string): Promise<boolean> {
  for (const program of programs) if (!await exists(`${directory}/${program}`)) return false;
  const { code, stdout } = await attempt([`${directory}/containerd`, "--version"]);
  return code === 0 && / v?2\./.test(stdout);
}

if (import.meta.main) print(await ensureContainerd2({ log: print }));
