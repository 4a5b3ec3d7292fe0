import { isNotFound, type RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { asError, isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Because, Journal } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import { within } from "../../mod/base/within.ts";
import type { GroupKiller } from "../cgroups/types.ts";

/** How long after a container's grace the runtime may take to tell its end, and to carry out a kill; milliseconds. */
export const stopBoundMs = 30_000;
/** How much later than its own deadline a call is left, milliseconds: it is to tell by itself that it was late. */
export const stopSlackMs = 1000;

export interface StopStepsOptions {
  readonly runtime: Pick<RuntimeService, "stopContainer">;
  readonly groups: GroupKiller;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly log: Logger;
}

/** One container that is to end. */
export interface StopRequest {
  readonly podUid: string;
  readonly id: string;
  readonly name: string;
  /** Seconds for the runtime's stop: between its signal and SIGKILL. */
  readonly seconds: number;
  /** Wall time from which on the container's end is brought about whatever the runtime says. */
  readonly forceAt: number;
  /** True when an earlier try has come to killing: its grace is over. */
  readonly forced: boolean;
  readonly because: Because;
  readonly signal: AbortSignal;
}

/** Every means has been tried, and the container may still run. */
export class NotStopped extends KubeletError {
  override readonly name = "NotStopped";
}

/**
 * The steps of a container's end (runtime-contract.md section 8, and bounded termination): the runtime's stop with the
 * grace; when that does not answer, or fails when the grace is over, its stop without any; then SIGKILL for the
 * processes of the container's own control group. Each step leaves a journal record with how long it took, how it failed
 * and, in the next one, why that was needed.
 */
export class StopSteps {
  readonly #o: StopStepsOptions;

  constructor(options: StopStepsOptions) {
    this.#o = options;
  }

  /**
   * Resolves when the container has stopped, or its processes have been killed. Rejects with what the runtime said when
   * it failed before `forceAt`, with NotStopped when nothing helped, with Aborted when called off.
   * @param onForce told before the first step that gives no grace
   */
  async stop(request: StopRequest, onForce: () => void): Promise<void> {
    const { id, seconds, forceAt, because, signal, forced } = request;
    const { clock } = this.#o;
    let why = "an earlier try did not end it";
    if (!forced) {
      const began = clock.now();
      const boundMs = seconds * 1000 + stopBoundMs;
      const failure = await this.#ask(id, seconds, boundMs, because, signal);
      if (failure === undefined) return;
      const now = clock.now();
      if (now < forceAt && now - began < boundMs) throw failure;
      why = `StopContainer with a grace of ${seconds} s did not end it in ${inSeconds(now - began)}`;
    }
    onForce();
    const at = clock.now();
    const atOnce = { ...because, message: `${because.message}; killed at once, as ${why}` };
    const failure = await this.#ask(id, 0, stopBoundMs, atOnce, signal);
    if (failure === undefined) return;
    why = `StopContainer without grace did not end it in ${inSeconds(clock.now() - at)}`;
    await this.#killGroup(request, why, failure);
  }

  /** Asks the runtime to stop a container; what went wrong, or undefined for one that has stopped or is gone. */
  async #ask(
    id: string,
    seconds: number,
    boundMs: number,
    because: Because,
    signal: AbortSignal,
  ): Promise<Error | undefined> {
    const { runtime, clock } = this.#o;
    try {
      await within(
        { clock, ms: boundMs, slackMs: stopSlackMs, signal, what: `StopContainer ${id}: no end` },
        (limited) => runtime.stopContainer(id, seconds, { because, signal: limited, timeoutMs: boundMs }),
      );
      return undefined;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      return isNotFound(thrown) ? undefined : asError(thrown);
    }
  }

  async #killGroup(request: StopRequest, why: string, failure: Error): Promise<void> {
    const { groups, journal, log } = this.#o;
    const { podUid, id, name, because } = request;
    const there = await groups.processesOf(podUid, id);
    if (there === undefined) {
      throw new NotStopped(
        "Runtime",
        `container ${name} does not end (${messageOf(failure)}), and it has no control group of its own in the pod's ` +
          `to kill; look at the runtime: kubelet check`,
        { cause: failure },
      );
    }
    // A runtime that goes on claiming that it runs is asked again by the caller; nothing is left to kill then.
    if (there.length === 0) return;
    const message = `${because.message}; ${count(there.length)} of its control group killed, as ${why}`;
    log.warn("the runtime does not end a container; its processes are killed", {
      podUid,
      container: name,
      containerId: id,
      processes: there.length,
      error: messageOf(failure),
    });
    try {
      await journal.act("CgroupKill", { ...because, message }, id, () => groups.killProcesses(podUid, id));
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      throw new NotStopped("Cgroup", `container ${name} does not end: ${messageOf(thrown)}`, { cause: thrown });
    }
  }
}

function inSeconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

function count(processes: number): string {
  return processes === 1 ? "the 1 process" : `the ${processes} processes`;
}
