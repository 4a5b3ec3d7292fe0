import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";

/** How long the agent's own end may take, milliseconds; systemd gives a service 90 s. */
export const endBoundMs = 30_000;

/**
 * Ends the process when its end does not come by itself in time: an operation of the disk that hangs in the kernel cannot
 * be called off, and waiting for it would keep the agent from ever ending. Nothing is lost: what an agent leaves behind at
 * any moment is taken up by the next one. Dispose of it when the agent has ended.
 * @param options.signal aborts when the agent is told to end
 */
export function boundedEnd(options: {
  clock: Clock;
  signal: AbortSignal;
  log: Logger;
  exit: () => void;
}): Disposable {
  const { clock, signal, log, exit } = options;
  let timer: Disposable | undefined;
  const onAbort = () => {
    timer = clock.after(endBoundMs, () => {
      log.error("something that hangs keeps the agent from its end; it ends all the same, containers keep running", {
        seconds: endBoundMs / 1000,
        remedy: "look for mounts that do not answer: a file server that is away, a broken disk",
      });
      exit();
    });
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    [Symbol.dispose]() {
      signal.removeEventListener("abort", onAbort);
      timer?.[Symbol.dispose]();
    },
  };
}
