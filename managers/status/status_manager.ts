import type { BoundPod, PodStatus } from "../../mod/kube/types.ts";

/** A pod's newest status. */
export interface StatusEntry {
  readonly pod: BoundPod;
  readonly status: PodStatus;
  /** Grows with each change; a writer to the API sends only the newest. */
  readonly version: number;
  /** False once nobody wants the pod any more: its end is nothing that a later pod of its UID should be told. */
  readonly keep: boolean;
  /** True once everything that the pod held is given back: what is left of it is its object and its logs. */
  readonly finished: boolean;
}

/** Keeps the newest status of each pod and tells of changes, each once and in order. */
export class StatusManager {
  readonly #entries = new Map<string, StatusEntry>();
  /** Statuses of an earlier life of the agent, until the pod gets one of this life. */
  readonly #kept = new Map<string, PodStatus>();
  /** Pods that nobody wants any more and that are being ended. */
  readonly #leaving = new Set<string>();
  readonly #onChange: ((entry: StatusEntry) => void) | undefined;
  readonly #onRemove: ((uid: string) => void) | undefined;
  readonly #onForget: ((uid: string) => void) | undefined;

  /**
   * @param options.onRemove what was kept of the pod has no use any more
   * @param options.onForget the pod is gone: nothing more will be told of it
   */
  constructor(options: {
    onChange?: (entry: StatusEntry) => void;
    onRemove?: (uid: string) => void;
    onForget?: (uid: string) => void;
  } = {}) {
    this.#onChange = options.onChange;
    this.#onRemove = options.onRemove;
    this.#onForget = options.onForget;
  }

  /** Takes over the statuses that an earlier life of the agent kept. */
  restore(kept: ReadonlyMap<string, PodStatus>): void {
    for (const [uid, status] of kept) this.#kept.set(uid, status);
  }

  /** Takes over what the API server knows of a pod, unless this agent knows more. */
  adopt(uid: string, status: PodStatus): void {
    if (!this.#entries.has(uid) && !this.#kept.has(uid)) this.#kept.set(uid, status);
  }

  get(uid: string): PodStatus | undefined {
    return this.#entries.get(uid)?.status ?? this.#kept.get(uid);
  }

  all(): Iterable<StatusEntry> {
    return this.#entries.values();
  }

  /** UIDs with a status, of this life or an earlier one. */
  uids(): Set<string> {
    return new Set([...this.#entries.keys(), ...this.#kept.keys()]);
  }

  /**
   * Takes a newly computed status; one equal to the last is dropped.
   * @param options.finished everything that the pod held is given back; stays so once it was told
   */
  set(pod: BoundPod, status: PodStatus, options: { finished?: boolean } = {}): void {
    const uid = pod.metadata.uid;
    const before = this.#entries.get(uid);
    const finished = options.finished ?? before?.finished ?? false;
    if (before && before.finished === finished && JSON.stringify(before.status) === JSON.stringify(status)) return;
    const entry = { pod, status, version: (before?.version ?? 0) + 1, keep: !this.#leaving.has(uid), finished };
    this.#entries.set(uid, entry);
    this.#kept.delete(uid);
    this.#onChange?.(entry);
  }

  /** Nobody wants the pod any more: what was kept of it goes now, and what comes of its end is not kept. */
  leave(uid: string): void {
    this.#leaving.add(uid);
    if (this.#entries.has(uid) || this.#kept.has(uid)) this.#onRemove?.(uid);
  }

  /** Forgets a pod that is gone. */
  remove(uid: string): void {
    this.#leaving.delete(uid);
    const known = this.#entries.delete(uid);
    if (this.#kept.delete(uid) || known) this.#onRemove?.(uid);
    this.#onForget?.(uid);
  }
}
