import type { Clock } from "./clock.ts";
import { Deadline } from "./deadline.ts";
import { unlessAborted } from "./unless_aborted.ts";

/**
 * Waits for work, but no longer than a bound: work that does not come to its end is left (its signal aborts), whether
 * it heeds that or not.
 * @param options `slackMs` is added to the bound for work that is to tell by itself that it was late; `what` is what is
 * told of the bound, as in `no answer`
 * @throws KubeletError Timeout when the bound has passed, Aborted when the caller's signal aborts first
 */
export async function within<T>(
  options: { clock: Clock; ms: number; slackMs?: number; signal?: AbortSignal | undefined; what: string },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { ms, slackMs = 0 } = options;
  using deadline = new Deadline({ ...options, ms: ms + slackMs });
  deadline.signal.throwIfAborted();
  return await unlessAborted(work(deadline.signal), deadline.signal);
}

/**
 * Waits for work until a time is over, or the signal aborts; both are no errors: the work goes on, and who waited goes on
 * without it. Rejects when the work does so in time.
 */
export async function waitAtMost(
  options: { clock: Clock; ms: number; signal?: AbortSignal },
  work: Promise<unknown>,
): Promise<void> {
  const { clock, ms, signal } = options;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  if (signal?.aborted) resolve();
  const onAbort = () => resolve();
  signal?.addEventListener("abort", onAbort, { once: true });
  using _timer = clock.after(ms, resolve);
  try {
    await Promise.race([work, over]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
