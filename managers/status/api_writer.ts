import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, ApiError, isApiNotFound, isConflict, type ObjectName } from "../../mod/kube/api/types.ts";
import { configHash, configMirror, isMirror, isStatic, podFullName } from "../../mod/kube/pod.ts";
import type { BoundPod, Pod, PodStatus } from "../../mod/kube/types.ts";
import { isTerminal } from "../../mod/pod/status/phase.ts";
import { mergeStatus } from "../../mod/pod/status/transition.ts";
import { type StatusPatch, statusPatch } from "./patch.ts";
import type { StatusEntry } from "./status_manager.ts";
import { isUrgent } from "./urgency.ts";

export interface ApiStatusWriterOptions {
  readonly client: Pick<ApiClient, "get" | "patch" | "delete">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: Scope;
  /** The pod of this name as the API server was last heard to have it. */
  readonly known: (name: ObjectName) => BoundPod | undefined;
  /** Told of each status that has arrived, with the milliseconds since it was new. */
  readonly onWritten?: (pod: BoundPod, ms: number) => void;
}

/** As much of a pod as the API server's answer to a write tells. */
interface Answer {
  readonly uid: string;
  readonly version: string;
  readonly status: PodStatus;
  readonly deleting: boolean;
}

/** What the writer knows of a pod. */
interface Target {
  entry: StatusEntry;
  /** The version that the object of this UID has. */
  written: number;
  uid: string | undefined;
  /** The answer to the last write; newer than what was heard until that has caught up. */
  answer: Answer | undefined;
  /** The object that turned out not to be there any more. */
  goneUid: string | undefined;
  /** The object whose deletion the server has accepted. */
  deletedUid: string | undefined;
  /** A difference that the server makes of what it is sent; not worth another write. */
  accepted: string | undefined;
  due: number | undefined;
  /** When `due` was said: a clock that shows less was put back, and nothing is to wait until it has caught up. */
  wantedAt: number;
  running: boolean;
  failures: number;
  lastError: string | undefined;
  /** The last try did not get as far as an answer: as soon as the server is heard of again, it is worth another. */
  unreached: boolean;
  /** When the oldest status that has not arrived was new. */
  since: number | undefined;
}

/** Writes of different pods at once. */
const limit = 10;
/** How long a status that tells only of what is under way waits for more, in milliseconds; when many do, longer. */
const gatherMs = 300;
const crowdedMs = 4000;
/** Full look for differences (runtime-contract.md section 11), in milliseconds. */
const resyncMs = 10_000;
const retryMs = [1000, 2000, 4000, 8000, resyncMs] as const;

/**
 * Brings the pods' statuses to the API server (runtime-contract.md section 14, features.md B20, B23): of each pod one
 * write at a time, the newest status only, and nothing but what differs. A pod that is deleted and finished is deleted
 * there for good. What fails is tried again; what somebody else has overwritten is put right.
 */
export class ApiStatusWriter {
  readonly #o: ApiStatusWriterOptions;
  readonly #targets = new Map<string, Target>();
  #running = 0;
  #timer: { readonly at: number; readonly handle: Disposable } | undefined;

  constructor(options: ApiStatusWriterOptions) {
    this.#o = options;
  }

  /** Takes a new status. */
  status(entry: StatusEntry): void {
    const now = this.#o.clock.now();
    const { uid } = entry.pod.metadata;
    let target = this.#targets.get(uid);
    if (!target) {
      target = {
        entry,
        written: 0,
        uid: undefined,
        answer: undefined,
        goneUid: undefined,
        deletedUid: undefined,
        accepted: undefined,
        due: undefined,
        wantedAt: now,
        running: false,
        failures: 0,
        lastError: undefined,
        unreached: false,
        since: undefined,
      };
      this.#targets.set(uid, target);
    }
    target.entry = entry;
    target.since ??= now;
    // After a failure the back-off stands; an urgent status does not hasten what does not work.
    if (target.failures === 0) this.#want(target, this.#delayMs(target));
    this.#pump();
  }

  /** How long a status may wait for more. The first word of a pod does not wait, unless many are on their way. */
  #delayMs({ entry, written }: Target): number {
    if (isUrgent(entry)) return 0;
    let waiting = 0;
    for (const { due, running } of this.#targets.values()) if (running || due !== undefined) waiting++;
    if (waiting >= limit) return crowdedMs;
    return written === 0 ? 0 : gatherMs;
  }

  /** What the API server has of pods has changed. */
  heard(): void {
    for (const target of this.#targets.values()) {
      if (target.unreached) this.#want(target, 0);
      if (target.running || target.due !== undefined) continue;
      const object = this.#objectOf(target);
      if (!object || object.metadata.uid === target.goneUid) continue;
      const behind = target.uid !== object.metadata.uid || target.written !== target.entry.version;
      if (behind || this.#mayDelete(target, object)) this.#want(target, 0);
    }
    this.#pump();
  }

  /** Forgets a pod. */
  forget(uid: string): void {
    this.#targets.delete(uid);
  }

  /** Looks for differences from time to time, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.#o.clock.sleep(resyncMs, signal);
        this.#resync();
      }
    } finally {
      this.#timer?.handle[Symbol.dispose]();
    }
  }

  #resync(): void {
    for (const target of this.#targets.values()) {
      if (target.running || target.due !== undefined) continue;
      const object = this.#objectOf(target);
      if (!object || object.metadata.uid === target.goneUid) continue;
      const patch = this.#patch(target, object);
      if ((patch && JSON.stringify(patch) !== target.accepted) || this.#mayDelete(target, object)) {
        this.#want(target, 0);
      }
    }
    this.#pump();
  }

  #want(target: Target, ms: number): void {
    const now = this.#o.clock.now();
    target.due = Math.min(target.due ?? Infinity, now + ms);
    target.wantedAt = now;
  }

  /** Starts what is due, as far as there is room, and sees to it that it is called again when more falls due. */
  #pump(): void {
    const { clock, scope } = this.#o;
    if (scope.signal.aborted) return;
    const now = clock.now();
    let next: number | undefined;
    for (const target of this.#targets.values()) {
      if (target.running || target.due === undefined) continue;
      if (target.due > now && target.wantedAt <= now) next = Math.min(next ?? target.due, target.due);
      else if (this.#running < limit) this.#start(target);
    }
    if (next === undefined || (this.#timer && this.#timer.at <= next)) return;
    this.#timer?.handle[Symbol.dispose]();
    const handle = clock.after(next - now, () => {
      this.#timer = undefined;
      this.#pump();
    });
    this.#timer = { at: next, handle };
  }

  #start(target: Target): void {
    target.running = true;
    target.due = undefined;
    this.#running++;
    this.#o.scope.spawn(`status of ${target.entry.pod.metadata.uid}`, async (signal) => {
      try {
        await this.#bring(target, signal);
        target.failures = 0;
        target.lastError = undefined;
        target.unreached = false;
      } catch (thrown) {
        if (signal.aborted || isAborted(thrown)) return;
        this.#failed(target, thrown);
      } finally {
        target.running = false;
        this.#running--;
        this.#pump();
      }
    });
  }

  #failed(target: Target, thrown: unknown): void {
    const { entry } = target;
    const backOff = retryMs[Math.min(target.failures, retryMs.length - 1)] ?? resyncMs;
    target.failures++;
    target.unreached = !(thrown instanceof ApiError);
    const asked = thrown instanceof ApiError ? thrown.retryAfterMs ?? 0 : 0;
    this.#want(target, Math.max(backOff, asked));
    const error = messageOf(thrown);
    if (error === target.lastError) return;
    target.lastError = error;
    this.#o.log.warn("a pod's status cannot be written to the API server; trying again", {
      pod: podFullName(entry.pod),
      podUid: entry.pod.metadata.uid,
      error,
    });
  }

  /** Brings the newest status to the server, then deletes there what is to go. */
  async #bring(target: Target, signal: AbortSignal): Promise<void> {
    const { client, clock, log, onWritten } = this.#o;
    const object = this.#objectOf(target);
    if (!object || object.metadata.uid === target.goneUid) return;
    const { uid, name, namespace } = object.metadata;
    if (target.uid !== uid) {
      target.uid = uid;
      target.written = 0;
      target.answer = undefined;
      target.accepted = undefined;
    }
    const { entry } = target;
    const patch = this.#patch(target, object);
    try {
      if (patch) {
        const options = { type: "strategic-merge", subresource: "status", signal } as const;
        target.answer = answerOf(await client.patch(resources.pods, { name, namespace }, patch, options));
        this.#judge(target, { ...target, entry }, object, patch);
        log.detail(3, "a pod's status was written", { pod: podFullName(entry.pod), podUid: uid, patch });
      }
      target.written = entry.version;
      if (target.since !== undefined) onWritten?.(entry.pod, clock.now() - target.since);
      target.since = target.entry === entry ? undefined : clock.now();
      if (!this.#mayDelete(target, object)) return;
      await client.delete(resources.pods, { name, namespace }, { gracePeriodSeconds: 0, uid, signal });
      target.deletedUid = uid;
      log.info("the pod has ended and is deleted from the API server", { pod: podFullName(entry.pod), podUid: uid });
    } catch (thrown) {
      await this.#missing(thrown, target, { name, namespace, uid }, signal);
    }
  }

  /**
   * What still differs after a write: somebody had changed the object before, and it is written again; or the server
   * makes something else of what it is sent, every time, and that is accepted.
   */
  #judge(target: Target, written: Target, object: BoundPod, sent: StatusPatch): void {
    const left = this.#patch(written, object);
    const differs = left && JSON.stringify(left);
    target.accepted = differs === JSON.stringify(sent) ? differs : undefined;
    if (differs !== undefined && target.accepted === undefined) this.#want(target, 0);
  }

  /** Takes note of an object that is gone, or is another one now; throws on what else may fail a write. */
  async #missing(
    thrown: unknown,
    target: Target,
    { uid, ...name }: ObjectName & { uid: string },
    signal: AbortSignal,
  ): Promise<void> {
    if (isApiNotFound(thrown)) {
      target.goneUid = uid;
      return;
    }
    // A precondition on the UID fails as a conflict, or as a field that may not change.
    if (!isConflict(thrown) && !(thrown instanceof ApiError && thrown.status === 422)) throw thrown;
    let now: Pod;
    try {
      now = await this.#o.client.get(resources.pods, name, { signal });
    } catch (failed) {
      if (!isApiNotFound(failed)) throw failed;
      target.goneUid = uid;
      return;
    }
    if (now.metadata?.uid !== uid) {
      target.goneUid = uid;
      return;
    }
    target.answer = answerOf(now);
    throw thrown;
  }

  /** The object that the pod's status belongs to: the pod's own, or a static pod's mirror. */
  #objectOf({ entry: { pod } }: Target): BoundPod | undefined {
    const { name, namespace, uid, annotations = {} } = pod.metadata;
    const object = this.#o.known({ name, namespace });
    if (!object) return undefined;
    if (!isStatic(pod)) return object.metadata.uid === uid ? object : undefined;
    return object.metadata.annotations?.[configMirror] === annotations[configHash] ? object : undefined;
  }

  /** What the server has of the object, by the newer of what was heard and what it answered. */
  #newest(target: Target, object: BoundPod): Answer {
    const heard = answerOf(object);
    const { answer } = target;
    return answer && answer.uid === heard.uid && isNewer(answer.version, heard.version) ? answer : heard;
  }

  #patch(target: Target, object: BoundPod): StatusPatch | undefined {
    const { pod, status: next } = target.entry;
    const reported = this.#newest(target, object).status;
    // An end that somebody else has set stands; the pod's worker comes to it by itself.
    if (isTerminal(reported.phase) && !isTerminal(next.phase) && !isStatic(pod)) return undefined;
    // A terminal phase is told to this manager only once nothing of the pod runs, so that it needs no holding back here.
    const merged = mergeStatus({ pod, reported, next, mayRun: false, now: this.#o.clock.now() });
    // The server takes no other class than the one it has set itself, and would refuse the whole patch.
    const { qosClass } = reported;
    return statusPatch(object.metadata.uid, reported, qosClass === undefined ? merged : { ...merged, qosClass });
  }

  /** True when nothing is left of a deleted pod but its object (features.md B20). */
  #mayDelete(target: Target, object: BoundPod): boolean {
    const { entry, deletedUid } = target;
    if (isMirror(object) || isStatic(entry.pod) || deletedUid === object.metadata.uid) return false;
    const { deleting, status } = this.#newest(target, object);
    return entry.finished && (deleting || object.metadata.deletionTimestamp !== undefined) && isTerminal(status.phase);
  }
}

function answerOf(pod: Pod): Answer {
  const { uid = "", resourceVersion = "", deletionTimestamp } = pod.metadata ?? {};
  return { uid, version: resourceVersion, status: pod.status ?? {}, deleting: deletionTimestamp !== undefined };
}

/** Versions of one object are numbers that grow; without such a number what was heard counts. */
function isNewer(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && (a.length === b.length ? a > b : a.length > b.length);
}
