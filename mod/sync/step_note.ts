import type { Clock } from "../base/clock.ts";
import type { Because, Journal } from "../base/journal.ts";

/** What notes the steps of a pod's end that take long. */
export interface StepNotes {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "note">;
}

/** After so many milliseconds a step of a pod's end is told to be under way, and again after each doubling. */
const firstNoteMs = 30_000;

/**
 * Carries out a step of a pod's end that is no runtime call. A step that lasts is noted in the journal while it does, and
 * when it ends after all, so that `kubelet explain` can tell what a pod that does not go waits for.
 */
export async function noted<T>(notes: StepNotes, because: Because, step: string, work: () => Promise<T>): Promise<T> {
  const { clock, journal } = notes;
  const began = clock.now();
  const seconds = () => Math.round((clock.now() - began) / 1000);
  let told = false;
  let waitMs = firstNoteMs;
  const tell = () => {
    told = true;
    journal.note("Waiting", { ...because, message: `${because.message}; ${step}, for ${seconds()} s now` });
    waitMs *= 2;
    timer = clock.after(waitMs, tell);
  };
  let timer = clock.after(waitMs, tell);
  try {
    const result = await work();
    if (told) journal.note("Waited", { ...because, message: `${because.message}; ${step}: it took ${seconds()} s` });
    return result;
  } finally {
    timer[Symbol.dispose]();
  }
}
