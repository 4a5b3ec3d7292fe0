import type { BoundPod, PodStatus } from "../../mod/kube/types.ts";

/** A pod's newest status. */
export interface StatusEntry {
  readonly pod: BoundPod;
  readonly status: PodStatus;
  /** Grows with each change; a writer to the API sends only the newest. */
  readonly version: number;
}

/** Keeps the newest status of each pod and tells of changes, each once and in order. */
export class StatusManager {
  readonly #entries = new Map<string, StatusEntry>();
  readonly #onChange: ((entry: StatusEntry) => void) | undefined;

  constructor(options: { onChange?: (entry: StatusEntry) => void } = {}) {
    this.#onChange = options.onChange;
  }

  get(uid: string): PodStatus | undefined {
    return this.#entries.get(uid)?.status;
  }

  all(): Iterable<StatusEntry> {
    return this.#entries.values();
  }

  /** Takes a newly computed status; one equal to the last is dropped. */
  set(pod: BoundPod, status: PodStatus): void {
    const before = this.#entries.get(pod.metadata.uid);
    if (before && JSON.stringify(before.status) === JSON.stringify(status)) return;
    const entry = { pod, status, version: (before?.version ?? 0) + 1 };
    this.#entries.set(pod.metadata.uid, entry);
    this.#onChange?.(entry);
  }

  /** Forgets a pod that is gone. */
  remove(uid: string): void {
    this.#entries.delete(uid);
  }
}
