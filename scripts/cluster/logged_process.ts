import { attempt } from "../lib/command.ts";
import { GiveUp, waitFor } from "../lib/wait.ts";
import { end, ended, signal } from "../node/processes.ts";

/** A program that goes on, with all that it says in a file. */
export class LoggedProcess {
  /** Its end, once all that it said is in the file. */
  readonly status: Promise<Deno.CommandStatus>;
  readonly #child: Deno.ChildProcess;
  #gone = false;

  private constructor(readonly name: string, readonly log: string, file: Deno.FsFile, child: Deno.ChildProcess) {
    this.#child = child;
    // both streams go to one file; it is closed when the second one has ended
    const copies = [child.stdout, child.stderr].map((stream) => stream.pipeTo(appending(file)));
    this.status = Promise.all([child.status, ...copies]).then(([ended]) => ended).finally(() => file.close());
    void this.status.then(() => this.#gone = true);
  }

  /** Starts it in a directory, where its log is `NAME.log`; that of an earlier start goes on. */
  static async start(name: string, [program = "", ...args]: readonly string[], dir: string): Promise<LoggedProcess> {
    const log = `${dir}/${name}.log`;
    const file = await Deno.open(log, { create: true, append: true });
    const options = { args, cwd: dir, stdin: "null", stdout: "piped", stderr: "piped" } as const;
    return new LoggedProcess(name, log, file, new Deno.Command(program, options).spawn());
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Waits until it is ready; the error has the end of its log. @param within milliseconds */
  async ready(look: () => Promise<boolean>, within: number): Promise<void> {
    try {
      await waitFor(`${this.name} to be ready`, async () => {
        if (this.#gone) throw new GiveUp(`${this.name} has ended`);
        return await look();
      }, { within });
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      throw new Error(`${message}; it said last:\n${await lastLines(this.log)}`, { cause: thrown });
    }
  }

  /** Ends it, by force when it takes longer than 20 s. */
  async stop(how: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    signal(this.pid, how);
    if (!await ended(this.pid, 20_000)) await end(this.pid, 0);
    await this.status;
  }
}

/** The last lines of a file. */
export async function lastLines(file: string, lines = 15): Promise<string> {
  return (await attempt(["tail", "-n", String(lines), file])).stdout;
}

function appending(file: Deno.FsFile): WritableStream<Uint8Array> {
  return new WritableStream({
    async write(chunk): Promise<void> {
      for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
    },
  });
}
