import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound, isConflict } from "../../mod/kube/api/types.ts";
import { configHash, configMirror, podFullName } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { MadeAnew } from "./made_anew.ts";
import { mirrorOf, type MirrorOwner, mirrors } from "./mirror_pod.ts";

export interface MirrorManagerOptions {
  readonly client: Pick<ApiClient, "create" | "delete">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: Scope;
  /** The node's object; undefined while it is not known, or is on its way out. */
  readonly node: () => MirrorOwner | undefined;
  /** The static pods that are wanted now. */
  readonly wanted: () => Iterable<BoundPod>;
  /** The pods of which nobody wants anything any more and that have not ended yet. */
  readonly leaving: () => Iterable<BoundPod>;
  /** The mirror pods of this node that the API server has; undefined before they were first read. */
  readonly mirrors: () => readonly BoundPod[] | undefined;
  /** True once every source was read: only then is a mirror without its static pod an orphan. */
  readonly sourcesReady: () => boolean;
}

/** How often to look when nothing calls for it: as housekeeping does (runtime-contract.md section 11), in milliseconds. */
const lookMs = 2000;
const retryMs = [1000, 2000, 4000, 8000, 10_000] as const;
/** How long to wait for the watch to show what was done before doing it again, in milliseconds. */
const showMs = 10_000;

/** What is being done for the mirror of one static pod. */
interface Work {
  running: boolean;
  failures: number;
  lastError: string | undefined;
  /** Nothing is done before this time, or before the mirror is another one than this. */
  notBefore: number;
  seen: string | undefined;
}

/**
 * Keeps a mirror pod on the API server for each static pod: made as soon as the node is known, made anew when somebody
 * deletes it (at once, but not again and again) or when it shows another static pod than the present one, deleted when
 * the static pod is gone.
 */
export class MirrorManager {
  readonly #o: MirrorManagerOptions;
  readonly #work = new Map<string, Work>();
  readonly #made = new MadeAnew();

  constructor(options: MirrorManagerOptions) {
    this.#o = options;
  }

  /** Looks from time to time, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.look();
      await this.#o.clock.sleep(lookMs, signal);
    }
  }

  /** Static pods or mirrors may have changed: does what is to be done. */
  look(): void {
    const { clock, scope } = this.#o;
    const known = this.#o.mirrors();
    if (known === undefined || scope.signal.aborted) return;
    const byName = new Map(known.map((mirror) => [podFullName(mirror), mirror]));
    const wanted = new Map([...this.#o.wanted()].map((pod) => [podFullName(pod), pod]));
    const leaving = new Set([...this.#o.leaving()].map(podFullName));
    for (const [name, pod] of wanted) {
      const mirror = byName.get(name);
      // The end of an older pod of this name is shown by its own mirror.
      if (leaving.has(name)) continue;
      if (mirror && mirrors(mirror, pod)) this.#settled(name);
      else if (mirror) {
        this.#do(name, mirror, (signal) => this.#delete(mirror, "it does not show the static pod", signal));
      } else if (this.#made.may(hashOf(pod), clock.now())) {
        this.#do(name, undefined, (signal) => this.#create(pod, signal));
      }
    }
    if (this.#o.sourcesReady()) {
      for (const [name, mirror] of byName) {
        if (wanted.has(name) || leaving.has(name)) continue;
        this.#made.forget(mirror.metadata.annotations?.[configMirror] ?? "");
        this.#do(name, mirror, (signal) => this.#delete(mirror, "its static pod is gone", signal));
      }
    }
    const now = clock.now();
    this.#made.prune(now);
    for (const [name, { running, notBefore }] of this.#work) if (!running && notBefore <= now) this.#work.delete(name);
  }

  /** The watch shows what was to be: should it go, there is nothing to wait for. */
  #settled(name: string): void {
    if (this.#work.get(name)?.running === false) this.#work.delete(name);
  }

  async #create(pod: BoundPod, signal: AbortSignal): Promise<void> {
    const node = this.#o.node();
    if (!node) return;
    this.#o.log.info("creating the mirror pod of a static pod", { pod: podFullName(pod), podUid: pod.metadata.uid });
    await this.#o.client.create(resources.pods, mirrorOf(pod, node), { signal });
    if (!this.#made.made(hashOf(pod), this.#o.clock.now())) return;
    this.#o.log.warn(
      "somebody deletes the mirror pod of a static pod again and again; it is made anew more seldom. Is there another " +
        "node of this name?",
      { pod: podFullName(pod) },
    );
  }

  async #delete(mirror: BoundPod, because: string, signal: AbortSignal): Promise<void> {
    const { name, namespace, uid } = mirror.metadata;
    this.#o.log.info("deleting a mirror pod", { pod: podFullName(mirror), podUid: uid, because });
    try {
      await this.#o.client.delete(resources.pods, { name, namespace }, { gracePeriodSeconds: 0, uid, signal });
    } catch (thrown) {
      if (!isApiNotFound(thrown) && !isConflict(thrown)) throw thrown;
    }
  }

  /** One step at a time for each name; after it, the next when the watch shows what came of it. */
  #do(name: string, mirror: BoundPod | undefined, step: (signal: AbortSignal) => Promise<void>): void {
    const { clock, scope, log, node } = this.#o;
    if (!mirror && !node()) return;
    const seen = mirror && `${mirror.metadata.uid} ${mirror.metadata.deletionTimestamp}`;
    const work = this.#work.get(name) ??
      { running: false, failures: 0, lastError: undefined, notBefore: 0, seen: undefined };
    this.#work.set(name, work);
    const shows = work.failures === 0 && work.seen !== seen;
    if (work.running || (clock.now() < work.notBefore && !shows)) return;
    work.running = true;
    work.seen = seen;
    scope.spawn(`mirror of ${name}`, async (signal) => {
      try {
        await step(signal);
        work.failures = 0;
        work.lastError = undefined;
        work.notBefore = clock.now() + showMs;
      } catch (thrown) {
        if (signal.aborted || isAborted(thrown)) return;
        const ms = retryMs[Math.min(work.failures, retryMs.length - 1)] ?? showMs;
        work.failures++;
        work.notBefore = clock.now() + ms;
        const error = messageOf(thrown);
        if (error !== work.lastError) {
          log.warn("the mirror pod of a static pod cannot be brought up to date; trying again", { pod: name, error });
        }
        work.lastError = error;
      } finally {
        work.running = false;
      }
      // What came while the step ran is looked at now.
      this.look();
    });
  }
}

function hashOf(pod: BoundPod): string {
  return pod.metadata.annotations?.[configHash] ?? pod.metadata.uid;
}
