import type { CommandResult } from "./host.ts";
import { hostError } from "./host_error.ts";

const lnProgram = "/usr/bin/ln";

interface Context {
  run(command: string, args: string[], options: { env: Record<string, string> }): Promise<CommandResult>;
}

/**
 * Makes a symbolic link. Under path-scoped permissions the run-time refuses to (a link's target is looked at only when
 * it is followed); the program `ln` then does it, if the launcher allowed it to be run. The path's directory must
 * still be one that may be written.
 */
export async function makeLink(context: Context, target: string, path: string): Promise<void> {
  try {
    return await Deno.symlink(target, path);
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotCapable)) throw hostError("symlink", path, thrown);
  }
  const result = await context.run(lnProgram, ["-s", "-T", "--", target, path], { env: { LC_ALL: "C" } });
  if (result.code === 0) return;
  const said = result.stderr.trim() || `exit code ${result.code}`;
  const code = /File exists/.test(said)
    ? "EEXIST"
    : /No such file/.test(said)
    ? "ENOENT"
    : /No space left/.test(said)
    ? "ENOSPC"
    : /Read-only file system/.test(said)
    ? "EROFS"
    : "EIO";
  throw hostError("symlink", path, Object.assign(new Error(said), { code }));
}
