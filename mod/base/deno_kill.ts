import { HostError, hostError } from "./host_error.ts";

const killProgram = "/usr/bin/kill";

/**
 * Signals one process; one that is gone is no error. Under permissions that allow only some programs to be run the
 * run-time refuses to signal, and the program `kill` does it, if the launcher allowed it.
 */
export function killProcess(pid: number, signal: "SIGKILL" | "SIGTERM" | "SIGHUP"): void {
  // 0, 1, −1 and negative numbers mean groups, init or everything.
  if (!Number.isSafeInteger(pid) || pid <= 1 || pid === Deno.pid) {
    throw new HostError("kill", String(pid), "EINVAL", `kill ${pid}: not a process that may be killed`);
  }
  try {
    return Deno.kill(pid, signal);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound || /ESRCH/.test(String(thrown))) return;
    if (!(thrown instanceof Deno.errors.NotCapable)) throw hostError("kill", String(pid), thrown);
  }
  try {
    const args = ["-s", signal.slice("SIG".length), "--", String(pid)];
    const result = new Deno.Command(killProgram, { args, env: { LC_ALL: "C" }, stdin: "null" }).outputSync();
    const said = new TextDecoder().decode(result.stderr).trim();
    if (result.code !== 0 && !/No such process/i.test(said)) throw new Error(said || `exit code ${result.code}`);
  } catch (thrown) {
    throw hostError("kill", String(pid), thrown);
  }
}
