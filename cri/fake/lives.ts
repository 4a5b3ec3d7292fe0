import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, isAborted } from "../../mod/base/errors.ts";
import * as pb from "../gen/runtime_pb.ts";
import type { ContainerRecord } from "./state.ts";
import { stateOf } from "./state.ts";

/** The exit code of a process that was killed. */
export const killed = 137;
/** The exit code that containerd gives a container that could not be started. */
const startFailed = 128;
/** What containerd says of an end that it knows nothing of. */
const unknown = { exitCode: 255, reason: "Unknown" };

/** Lets the processes of the fake's containers live and die by their programs. */
export class Lives {
  readonly #clock: Clock;
  readonly #stamp: () => bigint;
  readonly #onExit: (record: ContainerRecord) => void;
  readonly #missedUntil: () => number | undefined;

  constructor(options: {
    clock: Clock;
    stamp: () => bigint;
    onExit: (record: ContainerRecord) => void;
    /** Wall time at which the runtime will find out about what ends now, where it cannot see it end. */
    missedUntil: () => number | undefined;
  }) {
    this.#missedUntil = options.missedUntil;
    this.#clock = options.clock;
    this.#stamp = options.stamp;
    this.#onExit = options.onExit;
  }

  /** Starts the process. */
  start(record: ContainerRecord): void {
    record.startedAt = this.#stamp();
    record.program.onStart?.();
    const { runMs, exitCode = 0, reason = "" } = record.program;
    if (runMs !== undefined && runMs !== Infinity) {
      record.timers.push(this.#clock.after(runMs, () => this.exit(record, exitCode, reason)));
    }
  }

  /** What a failed start leaves behind: an exited container that never ran. */
  failStart(record: ContainerRecord, message: string): void {
    record.finishedAt = this.#stamp();
    record.exitCode = startFailed;
    record.reason = "StartError";
    record.message = message;
    record.ended.resolve();
  }

  /** Ends a running process; one that does not run stays as it is. */
  exit(record: ContainerRecord, exitCode: number, reason = ""): void {
    if (stateOf(record) !== pb.ContainerState.CONTAINER_RUNNING) return;
    for (const timer of record.timers.splice(0)) timer[Symbol.dispose]();
    const missed = this.#missedUntil();
    record.finishedAt = missed === undefined ? this.#stamp() : BigInt(Math.floor(missed)) * 1_000_000n;
    record.exitCode = missed === undefined ? exitCode : unknown.exitCode;
    record.reason = missed === undefined ? reason : unknown.reason;
    record.ended.resolve();
    this.#onExit(record);
  }

  /**
   * Stops a running process: the stop signal, sent once in a container's life, then SIGKILL after the grace.
   * Rejects with Aborted when the caller goes; what was sent stays sent.
   */
  async stop(record: ContainerRecord, graceMs: number, gone: AbortSignal): Promise<void> {
    if (stateOf(record) !== pb.ContainerState.CONTAINER_RUNNING) return;
    if (graceMs > 0) {
      this.#signal(record);
      if (await this.#ended(record, graceMs, gone)) return;
    }
    if (record.program.onKill !== "hangs") this.exit(record, killed);
    await this.#ended(record, Infinity, gone);
  }

  #signal(record: ContainerRecord): void {
    if (record.signalled) return;
    record.signalled = true;
    const { onStop, stopMs = 0, stopExitCode = 0 } = record.program;
    if (onStop === "exits") this.#later(record, stopMs, () => this.exit(record, stopExitCode));
  }

  #later(record: ContainerRecord, ms: number, run: () => void): void {
    if (ms <= 0) run();
    else record.timers.push(this.#clock.after(ms, run));
  }

  /** True once the process has ended, false when `ms` went by first. */
  async #ended(record: ContainerRecord, ms: number, gone: AbortSignal): Promise<boolean> {
    if (stateOf(record) !== pb.ContainerState.CONTAINER_RUNNING) return true;
    if (gone.aborted) throw abortedBy(gone);
    const over = new AbortController();
    const onGone = () => over.abort(gone.reason);
    gone.addEventListener("abort", onGone, { once: true });
    const wait = ms === Infinity
      ? new Promise<void>((resolve) => over.signal.addEventListener("abort", () => resolve(), { once: true }))
      : this.#clock.sleep(ms, over.signal).catch((thrown) => {
        if (!isAborted(thrown)) throw thrown;
      });
    try {
      await Promise.race([record.ended.promise, wait]);
    } finally {
      gone.removeEventListener("abort", onGone);
      over.abort();
    }
    if (gone.aborted) throw abortedBy(gone);
    return stateOf(record) !== pb.ContainerState.CONTAINER_RUNNING;
  }
}
