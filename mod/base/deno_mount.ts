import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { CommandResult, Host, MountEntry } from "./host.ts";
import { beyond } from "./deno_outside.ts";
import { errnoOf, HostError, hostError, isMissing } from "./host_error.ts";

const mountProgram = "/usr/bin/mount";
const umountProgram = "/usr/bin/umount";

/** O_PATH: a handle on a file or directory that can be mounted but not read. */
const pathOnly = 0o10000000;

interface Context {
  readonly procRoot: string;
  run(command: string, args: string[], options: { env: Record<string, string> }): Promise<CommandResult>;
  mounts(): Promise<MountEntry[]>;
}

/** Error numbers behind what the mount programs print in the C locale. */
const texts: [RegExp, string][] = [
  [/permission denied|must be superuser/i, "EACCES"],
  [/operation not permitted/i, "EPERM"],
  [/busy/i, "EBUSY"],
  [/does not exist|no such file/i, "ENOENT"],
  [/not a directory/i, "ENOTDIR"],
  [/no space left/i, "ENOSPC"],
  [/read-only file ?system|write-protected/i, "EROFS"],
  [/unknown filesystem type/i, "ENODEV"],
  [/bad option|invalid argument|wrong fs type/i, "EINVAL"],
];

function failed(operation: string, target: string, result: CommandResult): HostError {
  const hint = /^\s*dmesg\(1\) may have more information.*$/m;
  const said =
    result.stderr.replace(hint, "").replace(/^u?mount: [^\n]*?: (?=\S)/, "").trim().replaceAll(/\s*\n\s*/g, "; ") ||
    `exit code ${result.code}`;
  const errno = texts.find(([pattern]) => pattern.test(said))?.[1] ?? "";
  const wrapped = hostError(operation, target, Object.assign(new Error(said), { code: errno }));
  return new HostError(operation, target, errno, wrapped.message);
}

const env = { LC_ALL: "C" };

/** Mounts with /usr/bin/mount. */
export async function mount(context: Context, options: Parameters<Host["mount"]>[0]): Promise<void> {
  const args = ["-n"];
  if (options.type !== undefined) args.push("-t", options.type);
  if (options.options?.length) args.push("-o", options.options.join(","));
  // A magic link of procfs must reach the kernel as it is.
  if (options.source.startsWith(`${context.procRoot}/`)) args.push("--no-canonicalize");
  const result = await context.run(mountProgram, [...args, "--", options.source, options.target], { env });
  if (result.code !== 0) throw failed("mount", options.target, result);
}

/** The path with links in its directory resolved, as the mount table names it; "" when there is no such directory. */
async function tableName(path: string): Promise<string> {
  const slash = path.lastIndexOf("/");
  try {
    const directory = await Deno.realPath(path.slice(0, slash) || "/");
    return `${directory === "/" ? "" : directory}${path.slice(slash)}`;
  } catch (thrown) {
    if (isMissing(thrown)) return "";
    throw hostError("unmount", path, thrown);
  }
}

/** Unmounts the newest mount at the target with /usr/bin/umount; no mount there is no error. */
export async function unmount(context: Context, target: string): Promise<void> {
  const path = await tableName(target.replace(/\/+$/, ""));
  const mounted = async () => (await context.mounts()).some((m) => m.target === path);
  if (path === "" || !await mounted()) return;
  const result = await context.run(umountProgram, ["-n", "--", path], { env });
  if (result.code !== 0 && await mounted()) throw failed("unmount", target, result);
}

/** See Host.mountBelow. */
export async function mountBelow(
  context: Context,
  options: Parameters<Host["mountBelow"]>[0],
): Promise<void> {
  const { root, target, mode = 0o755 } = options;
  const parts = options.path.split("/").filter((p) => p !== "" && p !== ".");
  if (options.path.startsWith("/") || parts.includes("..")) {
    throw new HostError(
      "mountBelow",
      options.path,
      "EINVAL",
      `mountBelow ${root}: path ${options.path} must be relative, without ..`,
    );
  }
  const at = (handle: FileHandle) => `${context.procRoot}/self/fd/${handle.fd}`;
  let shown = root;
  // A volume may lie anywhere; below it, the steps go through the handle.
  let handle = await beyond(context.procRoot, root, (seen) => openStep(seen, root));
  try {
    for (const part of parts) {
      const path = `${at(handle)}/${part}`;
      shown += `/${part}`;
      const next = await openStep(path, shown).catch(async (thrown) => {
        if (errnoOf(thrown) !== "ENOENT") throw thrown;
        await Deno.mkdir(path, { mode });
        const made = await openStep(path, shown);
        // The mode whatever the umask, through the handle: the name may mean something else by now.
        await Deno.chmod(at(made), mode);
        return made;
      });
      await handle.close();
      handle = next;
    }
    await makeTarget(target, (await handle.stat()).isDirectory());
    // The program that mounts sees the handle through this process's own table.
    const self = await Deno.readLink(`${context.procRoot}/self`);
    await mount(context, { source: `${context.procRoot}/${self}/fd/${handle.fd}`, target, options: ["bind"] });
  } catch (thrown) {
    throw hostError("mountBelow", shown, thrown);
  } finally {
    await handle.close();
  }
}

async function openStep(path: string, shown: string): Promise<FileHandle> {
  const handle = await open(path, pathOnly | constants.O_NOFOLLOW);
  // O_PATH with O_NOFOLLOW opens a link itself.
  if ((await handle.stat()).isSymbolicLink()) {
    await handle.close();
    throw new HostError(
      "mountBelow",
      shown,
      "ELOOP",
      `mountBelow ${shown}: it is a symbolic link, which is not followed here`,
    );
  }
  return handle;
}

async function makeTarget(target: string, directory: boolean): Promise<void> {
  try {
    if (directory) await Deno.mkdir(target, { mode: 0o750 });
    else (await Deno.open(target, { write: true, createNew: true, mode: 0o640 })).close();
  } catch (thrown) {
    if (errnoOf(thrown) !== "EEXIST") throw thrown;
  }
}
