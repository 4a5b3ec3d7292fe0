import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, KubeletError } from "../../mod/base/errors.ts";

/** How much later than a call's own deadline it is left, milliseconds: the call is to tell by itself that it was late. */
const slackMs = 1000;

/**
 * Waits for work, but no longer than a bound: work that does not come to its end is left (its signal aborts), whether
 * it heeds that or not.
 * @throws KubeletError Timeout when the bound has passed, Aborted when the caller's signal aborts first
 */
export async function within<T>(
  options: { clock: Clock; ms: number; signal: AbortSignal; what: string },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, ms, signal, what } = options;
  if (signal.aborted) throw abortedBy(signal);
  const controller = new AbortController();
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = (error: Error) => {
    reject(error);
    controller.abort(error);
  };
  const onAbort = () => leave(abortedBy(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  using _timer = clock.after(
    ms + slackMs,
    () => leave(new KubeletError("Timeout", `${what}: no end within ${Math.round(ms / 1000)} s`)),
  );
  try {
    return await Promise.race([left, work(controller.signal)]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
