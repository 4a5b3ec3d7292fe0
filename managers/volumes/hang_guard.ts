import { Semaphore } from "../../mod/base/semaphore.ts";

/**
 * Operations on paths that may hang (a network file system that does not answer) hold a thread of the process each, and
 * it has 32 for all files of the agent (measured with Deno 2.9.3: with 32 in a call that hangs, no other file is read).
 */
const ofOnePod = 4;
const ofAll = 20;

/** Keeps operations that hang from taking every thread: so many for one pod, so many for all. The others wait. */
export class HangGuard {
  readonly #all = new Semaphore(ofAll);
  readonly #pods = new Map<string, { places: Semaphore; users: number }>();

  /** Runs an operation of a pod when there is room for it; rejects with Aborted when the signal aborts before that. */
  async run<T>(podUid: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const pod = this.#pods.get(podUid) ?? { places: new Semaphore(ofOnePod), users: 0 };
    this.#pods.set(podUid, pod);
    pod.users++;
    try {
      using _own = await pod.places.acquire(signal);
      using _one = await this.#all.acquire(signal);
      return await work();
    } finally {
      if (--pod.users === 0) this.#pods.delete(podUid);
    }
  }
}
