import { abortedBy } from "./errors.ts";

/** Time as the agent sees it; handed in everywhere so that tests run under a simulated one. */
export interface Clock {
  /** Wall time, milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with an Aborted error as soon as `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms` milliseconds unless the returned handle is disposed first. */
  after(ms: number, run: () => void): Disposable;
}

/** Builds `sleep` from `after`, so that every clock treats abort alike. */
export function sleepBy(after: Clock["after"], ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(abortedBy(signal));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => {
    timer[Symbol.dispose]();
    reject(abortedBy(signal!));
  };
  const timer = after(ms, () => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  });
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}

/** Longest delay setTimeout takes; longer ones are re-armed. */
const longest = 2 ** 31 - 1;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleepBy(systemClock.after, ms, signal),
  after(ms, run) {
    let id: ReturnType<typeof setTimeout>;
    const arm = (left: number) => {
      id = setTimeout(() => left > longest ? arm(left - longest) : run(), Math.min(Math.max(left, 0), longest));
    };
    arm(ms);
    return { [Symbol.dispose]: () => clearTimeout(id) };
  },
};
