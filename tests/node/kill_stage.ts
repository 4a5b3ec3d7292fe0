import { agentPaths } from "../../scripts/node/agent_node.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import type { KillPoint, Order, Report } from "./kill_proxy.ts";
import { type Observer, patience } from "./support.ts";

/** Where the proxy of the node of this name listens; the agent's containerRuntimeEndpoint. */
export function proxySocket(name: string): string {
  return `${agentPaths(name).root}/kill.sock`;
}

/** A proxy in front of the runtime that kills the agent at exact points, and what starts the next agent. */
export class KillStage implements AsyncDisposable {
  /** Where agents were killed: the call and how, such as `StartContainer after`. */
  readonly kills: string[] = [];
  readonly #seen: Observer;
  readonly #child: Deno.ChildProcess;
  readonly #orders: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<void>;
  #listens = false;
  #ended = false;
  #points: Iterator<KillPoint> | undefined;
  /** What went wrong while an agent was replaced. */
  #failure: unknown;

  private constructor(seen: Observer) {
    this.#seen = seen;
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--allow-all",
        "--no-prompt",
        "--quiet",
        new URL("kill_proxy.ts", import.meta.url).pathname,
        seen.node.containerd.socket,
        proxySocket(seen.nodeName),
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#orders = this.#child.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Starts the proxy; the agent of the node is not running yet. */
  static async start(seen: Observer): Promise<KillStage> {
    const stage = new KillStage(seen);
    try {
      await waitFor("the proxy to listen", () => stage.#listens, { within: patience });
      return stage;
    } catch (thrown) {
      await stage[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Kills the agent that runs and every one after it at its point, until there is no point left. */
  async begin(points: Iterable<KillPoint>): Promise<void> {
    this.#points = points[Symbol.iterator]();
    await this.#arm();
  }

  /** Throws what went wrong while an agent was replaced. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #arm(): Promise<void> {
    const next = this.#points?.next();
    if (!next || next.done) return;
    const order: Order = { pid: this.#seen.node.agent.pid, point: next.value };
    await this.#orders.write(new TextEncoder().encode(`${JSON.stringify(order)}\n`));
  }

  async #read(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) await this.#on(JSON.parse(line) as Report);
    }
  }

  async #on(report: Report): Promise<void> {
    if ("listens" in report) {
      this.#listens = true;
      return;
    }
    this.kills.push(`${report.killed} ${report.when}`);
    if (this.#ended) return;
    try {
      const { agent } = this.#seen.node;
      await agent.kill("SIGKILL");
      agent.start();
      await this.#arm();
    } catch (thrown) {
      this.#failure ??= thrown;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#orders.close();
    await this.#reading;
    await this.#child.status;
  }
}
