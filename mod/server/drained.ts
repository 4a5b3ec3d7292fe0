import type { Writable } from "node:stream";

/**
 * Waits until a stream that would take no more has passed on what it was given; also ends when it has closed, and when
 * the signal aborts, both also when that was before: neither is told a second time.
 */
export async function drained(out: Writable, signal: AbortSignal): Promise<void> {
  if (signal.aborted || out.destroyed || out.closed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  out.once("drain", done);
  out.once("close", done);
  signal.addEventListener("abort", done, { once: true });
  try {
    await promise;
  } finally {
    out.off("drain", done);
    out.off("close", done);
    signal.removeEventListener("abort", done);
  }
}
