import { attempt } from "../lib/command.ts";
import { cacheDirectory, exists } from "../lib/files.ts";
import { print } from "../lib/print.ts";
import { ensureContainerd2 } from "./containerd2.ts";
import { goBuild } from "./go_build.ts";
import { ensureInstalled } from "./install.ts";

const pinned = "1.3.3";
const headers = { name: "libseccomp-dev", files: [["/usr/include/seccomp.h"]] };

/**
 * A directory with containerd 2 and beside it a runc that can map the ids of mounts, which Debian 12's cannot: pods
 * with user namespaces need both. Builds runc from the module pinned in runc/go.mod the first time (half a minute).
 */
export async function ensureContainerd2WithRunc(options: {
  cache?: string;
  log?: (line: string) => void;
} = {}): Promise<string> {
  const containerd = await ensureContainerd2(options);
  const target = `${options.cache ?? cacheDirectory()}/containerd2-runc-${pinned}`;
  if (await complete(target, containerd)) return target;
  await ensureInstalled({ more: [headers, { name: "pkg-config", files: [["/usr/bin/pkg-config"]] }] });
  await goBuild(target, {
    ...options,
    about: `building runc ${pinned} (once)`,
    module: new URL("runc", import.meta.url),
    packages: ["github.com/opencontainers/runc"],
    settings: [`main.version=${pinned}`],
    tags: "seccomp",
    cgo: true,
    finish: async (directory) => {
      for (const program of ["containerd", "containerd-shim-runc-v2", "ctr"]) {
        await Deno.symlink(`${containerd}/${program}`, `${directory}/${program}`);
      }
    },
  });
  return target;
}

async function complete(directory: string, containerd: string): Promise<boolean> {
  if (!await exists(`${directory}/runc`)) return false;
  if (await Deno.realPath(`${directory}/containerd`) !== await Deno.realPath(`${containerd}/containerd`)) return false;
  const { code, stdout } = await attempt([`${directory}/runc`, "--version"]);
  return code === 0 && stdout.includes(`runc version ${pinned}\n`);
}

if (import.meta.main) print(await ensureContainerd2WithRunc({ log: print }));
