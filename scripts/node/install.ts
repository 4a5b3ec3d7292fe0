import { attempt } from "../lib/command.ts";
import { exists } from "../lib/files.ts";
import { complain, print } from "../lib/print.ts";

/** What is missing and cannot be installed; the message says what to do. */
export class InstallError extends Error {
  override readonly name = "InstallError";
}

/** Debian 12's packages that a dev node needs, each with files that show that it is there (one of each inner list). */
export const packages: readonly { readonly name: string; readonly files: readonly (readonly string[])[] }[] = [
  { name: "containerd", files: [["/usr/bin/containerd"], ["/usr/bin/ctr"]] },
  { name: "runc", files: [["/usr/sbin/runc", "/usr/bin/runc"]] },
  { name: "containernetworking-plugins", files: [["/usr/lib/cni/bridge"], ["/usr/lib/cni/portmap"]] },
  { name: "busybox-static", files: [["/bin/busybox", "/usr/bin/busybox"]] },
  { name: "iproute2", files: [["/sbin/ip", "/bin/ip", "/usr/sbin/ip"]] },
  { name: "iptables", files: [["/sbin/iptables", "/usr/sbin/iptables"]] },
  { name: "gcc", files: [["/usr/bin/gcc"]] },
  {
    name: "libc6-dev",
    files: [["/usr/include/stdio.h"], ["/usr/lib/x86_64-linux-gnu/libc.a", "/usr/lib/aarch64-linux-gnu/libc.a"]],
  },
  { name: "util-linux", files: [["/usr/bin/nsenter"], ["/usr/bin/unshare"]] },
  { name: "mount", files: [["/bin/mount", "/usr/bin/mount"]] },
  { name: "procps", files: [["/bin/ps", "/usr/bin/ps"]] },
];

/**
 * Installs with apt-get what a dev node needs and this machine lacks; silent and without effect when all is there.
 * Throws InstallError when not root, without apt-get, or when apt-get fails.
 */
export async function ensureInstalled(options: {
  /** More packages, as in `packages`. */
  more?: typeof packages;
  log?: (line: string) => void;
  /** Whether a file is there; for tests. */
  isThere?: (path: string) => Promise<boolean>;
  uid?: number | null;
} = {}): Promise<void> {
  const missing = await missingPackages([...packages, ...options.more ?? []], options.isThere ?? isThere);
  if (missing.length === 0) return;
  const remedy = `apt-get install -y --no-install-recommends ${missing.join(" ")}`;
  if ((options.uid === undefined ? Deno.uid() : options.uid) !== 0) {
    throw new InstallError(`missing Debian packages: ${missing.join(" ")}. Run this as root, or first: ${remedy}`);
  }
  options.log?.(`installing ${missing.join(" ")}`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const refreshed = await attempt(["apt-get", "update", "-q"], { env });
  if (refreshed.code === 127) {
    throw new InstallError(
      `missing: ${missing.join(" ")}, and there is no apt-get to install them: use Debian 12, or install their like`,
    );
  }
  const installed = await attempt(
    ["apt-get", "install", "-y", "-q", "--no-install-recommends", ...missing],
    { env },
  );
  if (installed.code !== 0) {
    const said = (text: string) => text.trim().split("\n").slice(-8).join("\n");
    const update = refreshed.code === 0 ? "" : `\napt-get update failed too: ${said(refreshed.stderr)}`;
    throw new InstallError(`${remedy} failed (exit code ${installed.code}):\n${said(installed.stderr)}${update}`);
  }
}

/** The names of those whose files are not all there. */
export async function missingPackages(
  wanted: typeof packages,
  isThere: (path: string) => Promise<boolean>,
): Promise<string[]> {
  const missing: string[] = [];
  for (const { name, files } of wanted) {
    const found = await Promise.all(files.map(async (some) => (await Promise.all(some.map(isThere))).includes(true)));
    if (found.includes(false)) missing.push(name);
  }
  return missing;
}

async function isThere(path: string): Promise<boolean> {
  if (!await exists(path)) return false;
  // the package `busybox` puts a dynamically linked program in the same place, which no image can run
  return !path.endsWith("/busybox") || !await isDynamic(path);
}

async function isDynamic(path: string): Promise<boolean> {
  using file = await Deno.open(path);
  const start = new Uint8Array(4096);
  const read = await file.read(start) ?? 0;
  return new TextDecoder("latin1").decode(start.subarray(0, read)).includes("/ld-");
}

if (import.meta.main) {
  try {
    await ensureInstalled({ log: print });
  } catch (thrown) {
    if (!(thrown instanceof InstallError)) throw thrown;
    complain(thrown.message);
    Deno.exit(1);
  }
}
