import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Informer, ObjectName } from "../kube/api/types.ts";
import type { EventSink } from "../kube/events.ts";
import { isMirror, podFullName } from "../kube/pod.ts";
import type { BoundPod, Pod } from "../kube/types.ts";
import { type ApiPod, takeApiPod } from "./api_pod.ts";
import type { PodSource } from "./source.ts";

/** What the API source needs. */
export interface ApiSourceOptions {
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events?: EventSink;
  /**
   * Makes the informer of this node's pods (field selector `spec.nodeName`), which tells each change of what it knows, in
   * order, and the end of each list.
   */
  readonly informer: (onChange: () => void) => Informer<Pod>;
  /** True once the node has been read: pods are not looked at before, for admission could not judge them. */
  readonly nodeRead: () => boolean;
}

/** How often to ask whether the node has been read, in milliseconds. */
const nodePollMs = 100;

/**
 * Pods that the API server has bound to this node (features.md B3). Gives their full state at each change, from the
 * first list on; while the server is away, what was known stays. The API's pictures of static pods (mirror pods) are
 * never given out as wanted; who looks after them asks for them.
 */
export class ApiSource implements PodSource {
  readonly name = "api";
  readonly problems = new Map<string, string>();
  readonly #o: ApiSourceOptions;
  readonly #informer: Informer<Pod>;
  readonly #listeners = new Set<() => void>();
  /** What each object came to; an object that did not change is the same one. */
  readonly #taken = new WeakMap<Pod, ApiPod>();
  /** The last picture of each pod that could be used, by UID. */
  #usable = new Map<string, BoundPod>();
  #emit: ((pods: readonly BoundPod[]) => void) | undefined;

  constructor(options: ApiSourceOptions) {
    this.#o = options;
    this.#informer = options.informer(() => this.#onChange());
  }

  /** True once the first list was read. */
  get synced(): boolean {
    return this.#informer.synced;
  }

  /** The pod of this name as the API server was last heard to have it, mirror pods included. */
  get(name: ObjectName): BoundPod | undefined {
    const found = this.#informer.get(name);
    return found && this.#take(found).pod;
  }

  /** The mirror pods of this node. */
  mirrors(): BoundPod[] {
    return this.#informer.all().flatMap((object) => {
      const { pod } = this.#take(object);
      return pod && isMirror(pod) ? [pod] : [];
    });
  }

  /** Calls `listener` after each change of what is known. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async run(signal: AbortSignal, emit: (pods: readonly BoundPod[]) => void): Promise<void> {
    const { clock, nodeRead } = this.#o;
    while (!nodeRead()) await clock.sleep(nodePollMs, signal);
    this.#emit = emit;
    await this.#informer.run(signal);
  }

  /** Each change by itself: a pod that is deleted by force is marked and gone at once, and the mark says how to end it. */
  #onChange(): void {
    if (!this.#emit || !this.#informer.synced) return;
    this.#emit(this.#wanted());
    for (const listener of this.#listeners) listener();
  }

  #wanted(): BoundPod[] {
    const problems = new Map<string, string>();
    const wanted: BoundPod[] = [];
    const usable = new Map<string, BoundPod>();
    for (const object of this.#informer.all()) {
      const taken = this.#take(object);
      if (!("problem" in taken)) {
        usable.set(taken.pod.metadata.uid, taken.pod);
        if (!isMirror(taken.pod)) wanted.push(taken.pod);
        continue;
      }
      // A pod that runs does not end because something is told of it that makes no sense; its deletion makes sense.
      const before = this.#usable.get(object.metadata?.uid ?? "");
      if (before) {
        const pod = endingAs(before, object);
        usable.set(pod.metadata.uid, pod);
        if (!isMirror(pod)) wanted.push(pod);
      }
      const where = `api ${object.metadata?.namespace}/${object.metadata?.name}`;
      problems.set(where, taken.problem);
      if (this.problems.get(where) !== taken.problem) this.#tell(where, taken);
    }
    this.#usable = usable;
    this.problems.clear();
    for (const [where, problem] of problems) this.problems.set(where, problem);
    return wanted;
  }

  #take(object: Pod): ApiPod {
    let taken = this.#taken.get(object);
    if (!taken) {
      taken = takeApiPod(object, this.#o.nodeName);
      this.#taken.set(object, taken);
    }
    return taken;
  }

  #tell(where: string, { problem, pod }: { readonly problem: string; readonly pod?: BoundPod }): void {
    const { log, events } = this.#o;
    log.error("a pod from the API server cannot be run; delete it, or repair what wrote it", { where, problem });
    if (!pod) return;
    const message = `Error validating pod ${podFullName(pod)}(${pod.metadata.uid}) from api, ignoring: ${problem}`;
    events?.pod({ pod, type: "Warning", reason: "FailedValidation", message });
  }
}

/** The pod, marked as deleted when the later object is; the very same pod when nothing of that differs. */
function endingAs(pod: BoundPod, { metadata = {} }: Pod): BoundPod {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  const now = pod.metadata;
  if (deletionTimestamp === undefined) return pod;
  if (now.deletionTimestamp === deletionTimestamp && now.deletionGracePeriodSeconds === deletionGracePeriodSeconds) {
    return pod;
  }
  const grace = deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds };
  return { ...pod, metadata: { ...now, deletionTimestamp, ...grace } };
}
