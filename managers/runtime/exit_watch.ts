import type { ObservedPod } from "../../mod/pod/observed.ts";

/** Tells those who wait for it that a container has ended; fed with the pods' pictures. */
export class ExitWatch {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Calls `onExit` once when the container is seen to have ended, unless the result is disposed of first. */
  when(containerId: string, onExit: () => void): Disposable {
    const waiting = this.#waiting.get(containerId) ?? new Set();
    waiting.add(onExit);
    this.#waiting.set(containerId, waiting);
    return {
      [Symbol.dispose]: () => {
        waiting.delete(onExit);
        if (waiting.size === 0) this.#waiting.delete(containerId);
      },
    };
  }

  /** Takes in a pod's newest picture. */
  observe(observed: ObservedPod | undefined): void {
    if (this.#waiting.size === 0 || !observed) return;
    for (const { id, state } of observed.containers) {
      if (state !== "exited") continue;
      for (const onExit of this.#waiting.get(id) ?? []) onExit();
      this.#waiting.delete(id);
    }
  }
}
