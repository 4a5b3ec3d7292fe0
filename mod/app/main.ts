import { systemClock } from "../base/clock.ts";
import { createDenoHost } from "../base/deno_host.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { exitCodes, parseCommand } from "./cli/command.ts";
import { runCommand } from "./cli/run_command.ts";
import { loadConfig } from "./config/load.ts";
import { startLogging } from "./logging.ts";
import { privateMounts } from "./private_mounts.ts";
import { run } from "./run.ts";
import { requireRoot } from "./start_checks.ts";

function print(stream: "stdout" | "stderr", text: string): void {
  writeAll(stream, new TextEncoder().encode(text));
}

function writeAll(stream: "stdout" | "stderr", bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += Deno[stream].writeSync(bytes.subarray(at));
}

/** Keeps what is logged before the log's own settings are known, and hands it on once they are. */
class EarlyLog implements Logger {
  readonly #lines: ((log: Logger) => void)[] = [];
  error: Logger["error"] = (...a) => void this.#lines.push((log) => log.error(...a));
  warn: Logger["warn"] = (...a) => void this.#lines.push((log) => log.warn(...a));
  info: Logger["info"] = (...a) => void this.#lines.push((log) => log.info(...a));
  detail: Logger["detail"] = (...a) => void this.#lines.push((log) => log.detail(...a));
  with = (): Logger => this;
  replay(log: Logger): void {
    for (const line of this.#lines.splice(0)) line(log);
  }
}

/**
 * Runs what the command line asks for; the answer is the code to exit with. Undefined when only a text was asked for:
 * nothing is open then, and the process ends by itself. The run-time keeps the compiled code of a program that ends by
 * itself and not of one that exits before it was stored, and `deno task compile` starts `--version` for that.
 */
export async function main(argv: readonly string[]): Promise<number | undefined> {
  try {
    const command = parseCommand(argv);
    switch (command.command) {
      case "help":
      case "version":
        print("stdout", command.text);
        return undefined;
      case "run":
        return await start(argv);
      default:
        return await runCommand(command, { print, out: (bytes) => writeAll("stdout", bytes) });
    }
  } catch (thrown) {
    // Whoever reads what a command prints has had enough of it, as `head` has.
    if (thrown instanceof Deno.errors.BrokenPipe) return exitCodes.failed;
    print("stderr", `Error: ${messageOf(thrown)}\n`);
    return exitCodes.failed;
  }
}

async function start(argv: readonly string[]): Promise<number> {
  requireRoot(Deno.uid() ?? 0);
  const host = createDenoHost(await privateMounts());
  const early = new EarlyLog();
  const loaded = await loadConfig({ argv, host, log: early, cwd: Deno.cwd() });
  using logging = startLogging({
    config: loaded.config.logging,
    clock: systemClock,
    pid: Deno.pid,
    write: writeAll,
  });
  early.replay(logging.log);
  return await run({
    loaded,
    host,
    log: logging.log,
    print: (text) => print("stdout", text),
    setVerbosity: (level) => logging.setVerbosity(level),
  });
}
