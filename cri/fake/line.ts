import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, messageOf } from "../../mod/base/errors.ts";
import { type CallOptions, grpcCode, type MutatingOptions, RuntimeError } from "../api.ts";
import type { CallRecord, Faults } from "./program.ts";

/** One call on its way to the fake. */
export interface Call {
  /** The CRI method. */
  readonly call: string;
  readonly target: string | undefined;
  readonly options: CallOptions | MutatingOptions | undefined;
  /** The client's own deadline in milliseconds where `options.timeoutMs` is absent; 0 means none. */
  readonly deadlineMs: number;
}

/**
 * The line between the caller and the fake runtime: deadlines, aborts, faults, the runtime being away. What runs
 * behind it is given a signal that aborts when the caller has gone, as a gRPC server's context does.
 */
export class Line {
  readonly #clock: Clock;
  readonly #latency: (call: string) => number;
  readonly #keep: number;
  #up = new AbortController();
  #downUntil = 0;
  faults: Faults | undefined;
  readonly calls: CallRecord[] = [];

  constructor(options: { clock: Clock; latency: (call: string) => number; faults: Faults | undefined; keep: number }) {
    this.#clock = options.clock;
    this.#latency = options.latency;
    this.#keep = options.keep;
    this.faults = options.faults;
  }

  /** Aborts when the runtime goes away; streams end with it. */
  get up(): AbortSignal {
    return this.#up.signal;
  }

  /** Cuts every call under way, and fails new ones with Unavailable for `downMs` milliseconds. */
  cut(downMs: number): void {
    this.#downUntil = Math.max(this.#downUntil, this.#clock.now() + downMs);
    const up = this.#up;
    this.#up = new AbortController();
    up.abort();
  }

  /** Wall time at which the runtime is back; undefined when it is there. */
  get backAt(): number | undefined {
    return this.#clock.now() < this.#downUntil ? this.#downUntil : undefined;
  }

  /** Throws what a call gets before the runtime sees it: the caller has aborted, or the runtime is away. */
  reach(call: Omit<Call, "deadlineMs">): void {
    const { signal } = call.options ?? {};
    if (signal?.aborted) throw abortedBy(signal);
    if (this.backAt !== undefined) throw unavailable(call.call, call.target);
  }

  /** Notes a call in the log. */
  note(call: Omit<Call, "deadlineMs">): CallRecord {
    const { options } = call;
    const because = options !== undefined && "because" in options ? options.because.reason : undefined;
    const record: CallRecord = {
      call: call.call,
      target: call.target,
      at: this.#clock.now(),
      ...(because === undefined ? {} : { because }),
    };
    this.calls.push(record);
    if (this.calls.length > this.#keep * 1.1) this.calls.splice(0, this.calls.length - this.#keep);
    return record;
  }

  /** Carries a call to `work` and its answer back. */
  async carry<T>(call: Call, work: (gone: AbortSignal) => T | Promise<T>): Promise<T> {
    const record = this.note(call);
    try {
      this.reach(call);
      return await this.#race(call, work);
    } catch (thrown) {
      record.error = messageOf(thrown);
      throw thrown;
    } finally {
      record.endedAt = this.#clock.now();
    }
  }

  async #race<T>(call: Call, work: (gone: AbortSignal) => T | Promise<T>): Promise<T> {
    const signal = call.options?.signal;
    const up = this.#up.signal;
    const gone = new AbortController();
    const { promise: cut, reject } = Promise.withResolvers<never>();
    const leave = (error: Error) => {
      reject(error);
      gone.abort(error);
    };
    const onAbort = () => leave(abortedBy(signal ?? gone.signal));
    const onDown = () => leave(unavailable(call.call, call.target));
    signal?.addEventListener("abort", onAbort, { once: true });
    up.addEventListener("abort", onDown, { once: true });
    const deadline = call.options?.timeoutMs ?? call.deadlineMs;
    const timer = deadline > 0
      ? this.#clock.after(deadline, () =>
        leave(
          new RuntimeError(call.call, grpcCode.DeadlineExceeded, `no answer within ${deadline} ms`, {
            ...(call.target === undefined ? {} : { target: call.target }),
          }),
        ))
      : undefined;
    try {
      // When the caller leaves first the work ends on its own, as it does in a server; `race` has its rejection.
      return await Promise.race([cut, this.#serve(call, work, gone.signal)]);
    } finally {
      timer?.[Symbol.dispose]();
      signal?.removeEventListener("abort", onAbort);
      up.removeEventListener("abort", onDown);
    }
  }

  async #serve<T>(call: Call, work: (gone: AbortSignal) => T | Promise<T>, gone: AbortSignal): Promise<T> {
    const fault = this.faults?.(call.call, call.target);
    const wait = (fault?.delayMs ?? 0) + this.#latency(call.call);
    if (fault?.loseAnswer) {
      if (wait > 0) await this.#clock.sleep(wait);
      await work(new AbortController().signal);
      throw fault.error ?? unavailable(call.call, call.target, "error reading from server: EOF");
    }
    if (wait > 0) await this.#clock.sleep(wait, gone);
    if (fault?.hang) await never(gone);
    if (fault?.error) throw fault.error;
    const result = await work(gone);
    // An answer to a caller that has gone is lost, whatever it says.
    if (gone.aborted) throw abortedBy(gone);
    return result;
  }
}

/** Rejects when the signal aborts, and never otherwise. */
export function never(signal: AbortSignal): Promise<never> {
  if (signal.aborted) return Promise.reject(abortedBy(signal));
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(abortedBy(signal)), { once: true }));
}

/** The error of a runtime that does not answer. */
export function unavailable(call: string, target: string | undefined, details?: string): RuntimeError {
  return new RuntimeError(call, grpcCode.Unavailable, details ?? "the runtime is restarting", {
    ...(target === undefined ? {} : { target }),
  });
}
