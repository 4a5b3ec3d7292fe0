import { Backoff } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Pleg } from "../sync/pleg.ts";
import type { RuntimeState } from "../sync/runtime_state.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";

/** How long to wait between two tries to reach the runtime at start, milliseconds (runtime-contract.md section 9). */
const retryMs = [100, 200, 400, 800, 1600, 3200] as const;
const longestRetryMs = 5000;
/** Restart back-off: its first delay, and the quiet after which it starts anew (section 9), in milliseconds. */
const restartBackOffMs = 10_000;
const restartResetMs = 600_000;

/** The back-off of containers that are started again after their end. */
export function restartBackoff({ clock, config }: {
  readonly clock: Clock;
  readonly config: Pick<KubeletConfig, "crashLoopBackOff">;
}): Backoff {
  return new Backoff({
    clock,
    initial: restartBackOffMs,
    max: config.crashLoopBackOff.maxContainerRestartPeriodMs,
    resetAfter: restartResetMs,
  });
}

/** Waits for the runtime, then takes the first whole picture: what runs already must be known before anything starts. */
export async function reachRuntime(
  { pleg, runtimeState, clock, log, config }: {
    readonly pleg: Pick<Pleg, "relist" | "lastRelist">;
    readonly runtimeState: Pick<RuntimeState, "check">;
    readonly clock: Clock;
    readonly log: Logger;
    readonly config: Pick<KubeletConfig, "containerRuntimeEndpoint">;
  },
  signal: AbortSignal,
): Promise<void> {
  // A pod whose state cannot be read holds up the node for a while only; its worker waits for it as long as it takes.
  for (let tries = 0; !await pleg.relist(signal, true); tries++) {
    if (tries > retryMs.length && pleg.lastRelist > 0) break;
    if (tries === 0) log.warn("waiting for the container runtime", { endpoint: config.containerRuntimeEndpoint });
    await clock.sleep(retryMs[tries] ?? longestRetryMs, signal);
  }
  await runtimeState.check(signal);
}
