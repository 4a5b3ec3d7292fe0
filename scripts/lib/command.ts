/** How a program ended. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of `run` and `attempt`. */
export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** Shows the program's output as it comes instead of keeping it. */
  readonly show?: boolean;
}

/** A program that ended with a code other than 0; the message has the end of what it said. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  constructor(readonly command: readonly string[], readonly ended: Ended) {
    const said = (ended.stderr.trim() || ended.stdout.trim()).split("\n").slice(-12).join("\n");
    super(`${command.join(" ")}: exit code ${ended.code}${said ? `: ${said}` : ""}`);
  }
}

/** Runs a program and tells how it ended, whatever its exit code. A program that is not there ends with code 127. */
export async function attempt(command: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const [program, ...args] = command;
  if (program === undefined) throw new Error("no program given");
  const output = options.show ? "inherit" : "piped";
  try {
    const ended = await new Deno.Command(program, {
      args,
      stdin: "null",
      stdout: output,
      stderr: output,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }).output();
    const text = (bytes: () => Uint8Array) => options.show ? "" : new TextDecoder().decode(bytes());
    return { code: ended.code, stdout: text(() => ended.stdout), stderr: text(() => ended.stderr) };
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return { code: 127, stdout: "", stderr: `${program}: not found` };
    throw thrown;
  }
}

/** Runs a program; returns what it wrote to standard output. Throws CommandError unless it ends with code 0. */
export async function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const ended = await attempt(command, options);
  if (ended.code !== 0) throw new CommandError(command, ended);
  return ended.stdout;
}
