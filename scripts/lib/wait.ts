import { systemClock } from "../../mod/base/clock.ts";

/** Options of `waitFor`. */
export interface WaitOptions {
  /** Milliseconds until it gives up. */
  readonly within: number;
  /** Milliseconds between looks; 100 when not given. */
  readonly every?: number;
  readonly signal?: AbortSignal;
}

/**
 * Looks again and again until `look` gives something other than undefined and false, and returns it. When the time is
 * over it throws an error that names `what` and the last error of `look`, which are otherwise taken as "not yet".
 */
export async function waitFor<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  options: WaitOptions,
): Promise<T> {
  const deadline = systemClock.now() + options.within;
  let last: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
      last = undefined;
    } catch (thrown) {
      if (thrown instanceof GiveUp) throw thrown;
      last = thrown;
    }
    if (systemClock.now() >= deadline) {
      const why = last === undefined ? "" : `: ${last instanceof Error ? last.message : String(last)}`;
      throw new Error(`waited ${options.within} ms for ${what}${why}`, { cause: last });
    }
    await systemClock.sleep(options.every ?? 100, options.signal);
  }
}

/** Thrown by a look of `waitFor` when waiting longer cannot help. */
export class GiveUp extends Error {
  override readonly name = "GiveUp";
}
