import { podFullName } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";

/** The pods that the sources want now. Only the sync loop writes to it. */
export class PodStore {
  readonly #byUid = new Map<string, BoundPod>();
  readonly #rejected = new Set<string>();

  get size(): number {
    return this.#byUid.size;
  }

  get(uid: string): BoundPod | undefined {
    return this.#byUid.get(uid);
  }

  has(uid: string): boolean {
    return this.#byUid.has(uid);
  }

  all(): Iterable<BoundPod> {
    return this.#byUid.values();
  }

  /** The wanted pod of this full name (`<name>_<namespace>`). */
  byFullName(name: string): BoundPod | undefined {
    for (const pod of this.#byUid.values()) if (podFullName(pod) === name) return pod;
    return undefined;
  }

  set(pod: BoundPod): void {
    this.#byUid.set(pod.metadata.uid, pod);
  }

  remove(uid: string): void {
    this.#byUid.delete(uid);
    this.#rejected.delete(uid);
  }

  /** Marks a pod that the node cannot take; it stays wanted but is never run. */
  reject(uid: string): void {
    this.#rejected.add(uid);
  }

  isRejected(uid: string): boolean {
    return this.#rejected.has(uid);
  }
}
