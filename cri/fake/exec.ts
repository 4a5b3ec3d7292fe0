import { Channel } from "../../mod/base/channel.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import { randomHex } from "../../mod/base/random.ts";
import type { CallOptions, ExecSyncResult, RuntimeService } from "../api.ts";
import { grpcCode, RuntimeError } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { type Core, failed, notFound, unimplemented } from "./core.ts";
import { never, unavailable } from "./line.ts";
import { killed } from "./lives.ts";
import type { ExecReply } from "./program.ts";
import { type ContainerRecord, stateOf } from "./state.ts";

const { CONTAINER_RUNNING } = pb.ContainerState;

type Calls = Pick<RuntimeService, "execSync" | "exec" | "attach" | "portForward" | "containerEvents">;
type Request<K extends "exec" | "attach" | "portForward"> = Parameters<RuntimeService[K]>[0];

/** The calls that run something in a container or give a stream. */
export class ExecCalls implements Calls {
  constructor(private readonly core: Core) {}

  execSync(id: string, command: string[], timeoutSeconds: number, options?: CallOptions): Promise<ExecSyncResult> {
    const { core } = this;
    const call = "ExecSync";
    const limitMs = timeoutSeconds > 0 ? timeoutSeconds * 1_000 : Infinity;
    // A run without a limit of its own has no deadline either, unless the caller gives one.
    const withLimit = limitMs < Infinity ? options : { timeoutMs: 0, ...options };
    return core.call(call, id, withLimit, async (gone) => {
      const prefix = "failed to exec in container: ";
      const record = core.container(call, id, `${prefix}failed to find container "${id}" in store: not found`);
      this.#running(call, record, prefix);
      const reply: ExecReply = command.length === 0
        ? { startError: "args must not be empty" }
        : await record.program.exec?.(command) ?? {};
      if (reply.startError !== undefined) {
        const words = `${prefix}failed to start exec "${randomHex(core.random, 32)}"`;
        throw failed(call, `${words}: OCI runtime exec failed: exec failed: ${reply.startError}`, id);
      }
      const { ms = 0 } = reply;
      await this.#wait(record, Math.min(ms, limitMs), gone);
      if (stateOf(record) !== CONTAINER_RUNNING) return result({ exitCode: killed });
      if (ms > limitMs) {
        const words = `${prefix}timeout ${timeoutSeconds}s exceeded: context deadline exceeded`;
        throw new RuntimeError(call, grpcCode.DeadlineExceeded, words, { target: id });
      }
      return result(reply);
    }, limitMs < Infinity ? limitMs : 0);
  }

  /** Waits `ms`, or less when the container ends. */
  async #wait(record: ContainerRecord, ms: number, gone: AbortSignal): Promise<void> {
    if (ms <= 0) return;
    const over = new AbortController();
    const onGone = () => over.abort(gone.reason);
    gone.addEventListener("abort", onGone, { once: true });
    try {
      const wait = ms === Infinity ? never(over.signal) : this.core.clock.sleep(ms, over.signal);
      await Promise.race([wait, record.ended.promise]);
    } finally {
      gone.removeEventListener("abort", onGone);
      over.abort();
    }
  }

  #running(call: string, record: ContainerRecord, prefix = ""): void {
    const state = stateOf(record);
    if (state === CONTAINER_RUNNING) return;
    throw failed(call, `${prefix}container is in ${pb.ContainerState[state]} state`, record.id);
  }

  exec(request: Request<"exec">, options?: CallOptions): Promise<string> {
    return this.#url("Exec", request, options);
  }

  attach(request: Request<"attach">, options?: CallOptions): Promise<string> {
    return this.#url("Attach", request, options);
  }

  #url(
    call: "Exec" | "Attach",
    request: Request<"exec" | "attach">,
    options: CallOptions | undefined,
  ): Promise<string> {
    const { containerId: id = "", stdin, stdout, stderr } = request;
    return this.core.call(call, id, options, () => {
      const record = this.core.container(call, id, `failed to find container "${id}" in store: not found`);
      this.#running(call, record);
      if (!stdin && !stdout && !stderr) {
        const words = "one of stdin, stdout, or stderr must be set";
        throw new RuntimeError(call, grpcCode.InvalidArgument, words, { target: id });
      }
      return this.#address(call.toLowerCase());
    });
  }

  portForward(request: Request<"portForward">, options?: CallOptions): Promise<string> {
    const call = "PortForward";
    const id = request.podSandboxId ?? "";
    return this.core.call(call, id, options, () => {
      const record = this.core.findSandbox(call, id);
      if (!record) throw notFound(call, `failed to find sandbox "${id}": not found`, id);
      if (!record.ready) throw failed(call, "sandbox container is not running", id);
      return this.#address("portforward");
    });
  }

  #address(what: string): string {
    return `http://127.0.0.1:41000/${what}/${randomHex(this.core.random, 4)}`;
  }

  async *containerEvents(options: CallOptions): AsyncGenerator<pb.ContainerEventResponse> {
    const { core } = this;
    const call = { call: "GetContainerEvents", target: undefined, options };
    core.line.note(call);
    core.line.reach(call);
    const fault = core.line.faults?.(call.call, undefined);
    if (fault?.error) throw fault.error;
    if (core.flavour === "1.6") throw unimplemented(call.call);
    const { up } = core.line;
    const { signal } = options;
    const stream = new Channel<pb.ContainerEventResponse>();
    const end = () => stream.close();
    core.streams.add(stream);
    signal?.addEventListener("abort", end, { once: true });
    up.addEventListener("abort", end, { once: true });
    try {
      for await (const value of stream.values()) {
        if (signal?.aborted) break;
        yield value;
      }
    } finally {
      core.streams.delete(stream);
      signal?.removeEventListener("abort", end);
      up.removeEventListener("abort", end);
    }
    if (signal?.aborted) throw abortedBy(signal);
    throw unavailable(call.call, undefined, "error reading from server: EOF");
  }
}

function result(reply: ExecReply): ExecSyncResult {
  const encoder = new TextEncoder();
  return {
    exitCode: reply.exitCode ?? 0,
    stdout: encoder.encode(reply.stdout ?? ""),
    stderr: encoder.encode(reply.stderr ?? ""),
  };
}
