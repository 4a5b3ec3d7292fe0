import type { Clock } from "../../mod/base/clock.ts";
import type { PodCondition } from "../../mod/kube/types.ts";
import { stamp } from "../../mod/pod/status/time.ts";

interface Known {
  pending?: PodCondition;
  progress?: PodCondition;
}

export interface ConditionChange {
  readonly reason: string;
  readonly message: string;
  readonly generation: number;
}

/** The conditions PodResizePending and PodResizeInProgress of each pod (runtime-contract.md section 14). */
export class ResizeConditions {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** As a status lists them. */
  of(uid: string): PodCondition[] {
    const { pending, progress } = this.#known.get(uid) ?? {};
    return [...pending ? [pending] : [], ...progress ? [progress] : []];
  }

  pending(uid: string): PodCondition | undefined {
    return this.#known.get(uid)?.pending;
  }

  progress(uid: string): PodCondition | undefined {
    return this.#known.get(uid)?.progress;
  }

  /** Takes over what the pod's status says, unless something newer is known. */
  adopt(uid: string, conditions: readonly PodCondition[]): void {
    if (this.#known.has(uid)) return;
    const found = (type: string) => conditions.find((c) => c.type === type && c.status === "True");
    const [pending, progress] = [found("PodResizePending"), found("PodResizeInProgress")];
    if (pending || progress) this.#known.set(uid, { ...pending && { pending }, ...progress && { progress } });
  }

  /** Sets that the resize waits. True when that is news: another reason, or another generation. */
  setPending(uid: string, change: ConditionChange): boolean {
    const old = this.pending(uid);
    const same = old && old.reason === change.reason && (old.message ?? "") === change.message &&
      (old.observedGeneration ?? 0) === change.generation;
    // Looked at again with the same answer: not worth a write of the status.
    if (same) return false;
    this.#known.set(uid, { ...this.#known.get(uid), pending: this.#condition("PodResizePending", old, change) });
    return old?.reason !== change.reason || (old.observedGeneration ?? 0) !== change.generation;
  }

  /**
   * Sets that the resize is under way. The generation stays that of the first time; without a reason the one before
   * stays. True when something of it changed.
   */
  setProgress(uid: string, change: ConditionChange): boolean {
    const old = this.progress(uid);
    const kept = change.reason === "" && change.message === "" && old;
    const next: ConditionChange = {
      reason: kept ? old.reason ?? "" : change.reason,
      message: kept ? old.message ?? "" : change.message,
      generation: old ? old.observedGeneration ?? 0 : change.generation,
    };
    if (old && (old.reason ?? "") === next.reason && (old.message ?? "") === next.message) return false;
    this.#known.set(uid, { ...this.#known.get(uid), progress: this.#condition("PodResizeInProgress", old, next) });
    return true;
  }

  clearPending(uid: string): boolean {
    const { pending, ...rest } = this.#known.get(uid) ?? {};
    if (pending) this.#known.set(uid, rest);
    return pending !== undefined;
  }

  /** Returns the condition that was there. */
  clearProgress(uid: string): PodCondition | undefined {
    const { progress, ...rest } = this.#known.get(uid) ?? {};
    if (progress) this.#known.set(uid, rest);
    return progress;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
  }

  /** How many pods wait, by reason in lower case, and how many are being resized. */
  counts(): { readonly pending: ReadonlyMap<string, number>; readonly progress: number } {
    const pending = new Map<string, number>();
    let inProgress = 0;
    for (const known of this.#known.values()) {
      const reason = known.pending?.reason?.toLowerCase();
      if (reason !== undefined) pending.set(reason, (pending.get(reason) ?? 0) + 1);
      if (known.progress) inProgress++;
    }
    return { pending, progress: inProgress };
  }

  #condition(type: string, old: PodCondition | undefined, change: ConditionChange): PodCondition {
    const now = stamp(this.#clock.now());
    const { reason, message, generation } = change;
    return {
      type,
      ...(generation > 0 ? { observedGeneration: generation } : {}),
      status: "True",
      lastProbeTime: now,
      lastTransitionTime: (old && (old.reason ?? "") === reason ? old.lastTransitionTime : undefined) ?? now,
      ...(reason ? { reason } : {}),
      ...(message ? { message } : {}),
    };
  }
}
