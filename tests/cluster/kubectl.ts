import { attempt, type Ended } from "../../scripts/lib/command.ts";
import type { ControlPlane } from "../../scripts/cluster/control_plane.ts";
import { ensureKubectl } from "../../scripts/cluster/programs.ts";

/** The real kubectl as the administrator of a cluster. */
export class Kubectl {
  private constructor(readonly program: string, readonly kubeconfig: string, private readonly within: number) {}

  /** Finds kubectl in PATH, or builds it. @param within milliseconds that each call has */
  static async of(plane: ControlPlane, within: number): Promise<Kubectl> {
    return new Kubectl(await ensureKubectl(), plane.adminKubeconfig, within);
  }

  /** The command line of a call. */
  command(args: readonly string[]): string[] {
    return [this.program, `--kubeconfig=${this.kubeconfig}`, ...args];
  }

  /** Calls it to its end, whatever its exit code. */
  async try(...args: string[]): Promise<Ended> {
    return await attempt(this.command(args), { signal: AbortSignal.timeout(this.within) });
  }

  /** Calls it; what it wrote to standard output. Throws with what it said when its exit code is not 0. */
  async run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.try(...args);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: exit code ${code}: ${stderr || stdout}`);
    return stdout;
  }

  /** Calls it with something at its standard input. */
  async feed(input: string, ...args: string[]): Promise<Ended> {
    const [program = "", ...rest] = this.command(args);
    const child = new Deno.Command(program, {
      args: rest,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(this.within),
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
    const { code, stdout, stderr } = await child.output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, stdout: text(stdout), stderr: text(stderr) };
  }

  /** Starts a call that goes on, and gives it with its output; it is ended when the block ends. */
  start(...args: string[]): RunningCall {
    return new RunningCall(this.command(args));
  }
}

/** A call of kubectl that goes on. */
export class RunningCall implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #reads: Promise<void>[];
  #text = "";

  constructor([program = "", ...args]: readonly string[]) {
    this.#child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped", stderr: "piped" }).spawn();
    this.#reads = [this.#child.stdout, this.#child.stderr].map((stream) => this.#read(stream));
  }

  /** All that it wrote until now, to either output. */
  get text(): string {
    return this.#text;
  }

  /** Writes to its standard input. */
  async write(text: string): Promise<void> {
    const writer = this.#child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(text));
    writer.releaseLock();
  }

  /** Waits for its own end; its exit code. */
  async ended(): Promise<number> {
    const { code } = await this.#child.status;
    await Promise.all(this.#reads);
    return code;
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) this.#text += chunk;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGTERM");
    } catch (thrown) {
      if (!(thrown instanceof TypeError || thrown instanceof Deno.errors.NotFound)) throw thrown; // it has ended
    }
    await this.#child.stdin.close().catch(() => {}); // its reader may be gone
    await this.ended();
  }
}
