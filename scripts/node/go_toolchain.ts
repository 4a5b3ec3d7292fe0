import { attempt, run } from "../lib/command.ts";
import { cacheDirectory, exists, remove } from "../lib/files.ts";
import { ensureInstalled } from "./install.ts";

const wanted = "1.26.6";

/**
 * A Go tool that can build our pinned modules: the machine's own when it is 1.21 or newer (it fetches the version that
 * a go.mod asks for), else Debian's old one is used once to fetch the pinned tool chain, as a module, into the cache.
 * Returns its path. Throws when there is none and it cannot be installed.
 */
export async function ensureGo(options: { cache?: string; log?: (line: string) => void } = {}): Promise<string> {
  const own = await firstGo(["go", "/usr/local/go/bin/go"]);
  if (own !== undefined && isRecent(own.version)) return own.path;
  const home = `${options.cache ?? cacheDirectory()}/go-${wanted}`;
  const tool = `${home}/bin/go`;
  if (await exists(tool)) return tool;
  await ensureInstalled({
    more: [{ name: "golang-go", files: [["/usr/bin/go"]] }, {
      name: "ca-certificates",
      files: [["/etc/ssl/certs/ca-certificates.crt"]],
    }],
    ...(options.log ? { log: options.log } : {}),
  });
  options.log?.(`fetching Go ${wanted}`);
  const arch = Deno.build.arch === "aarch64" ? "arm64" : "amd64";
  const module = `golang.org/toolchain@v0.0.1-go${wanted}.linux-${arch}`;
  const { Dir } = JSON.parse(await run(["go", "mod", "download", "-json", module], { cwd: "/" }));
  if (typeof Dir !== "string") throw new Error(`go mod download ${module}: no directory in its answer`);
  const part = `${home}.${crypto.randomUUID()}`;
  try {
    await run(["cp", "-r", "--no-preserve=mode", Dir, part]);
    await run(["chmod", "-R", "755", `${part}/bin`, `${part}/pkg/tool`]);
    // the module's zip may not hold other modules, so their go.mod files carry another name in it
    await run(["find", part, "-name", "_go.mod", "-execdir", "mv", "{}", "go.mod", ";"]);
    await Deno.rename(part, home);
  } finally {
    await remove(part);
  }
  return tool;
}

/** Whether `go version` tells of 1.21 or newer. */
export function isRecent(version: string): boolean {
  const [, major, minor] = /\bgo(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 21);
}

async function firstGo(paths: readonly string[]): Promise<{ path: string; version: string } | undefined> {
  for (const path of paths) {
    const { code, stdout } = await attempt([path, "version"], { cwd: "/" });
    if (code === 0) return { path, version: stdout };
  }
  return undefined;
}
