import type { Clock } from "../../mod/base/clock.ts";
import { Deadline } from "../../mod/base/deadline.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { ApiError, type Change, type Informer, type KubeObject } from "../../mod/kube/api/types.ts";
import type { ObjectStore } from "./types.ts";

/** How long a reader waits for an object's first list, in milliseconds. */
const syncWaitMs = 1000;
/** A watch that nobody needs at once ends after this many resync periods without a reader, and at least this long. */
const idlePeriods = 5;
const leastIdleMs = 60_000;
const idleCheckMs = 60_000;

/** An object with what a store looks at. */
export type KeptObject = KubeObject & { immutable?: boolean };

/** Lists and watches one object (field selector `metadata.name`, all that the Node authorizer allows). */
export type WatchOne<T extends KubeObject> = (options: {
  readonly namespace: string;
  readonly name: string;
  readonly onChange: (change: Change<T>) => void;
  /** Told after each list. */
  readonly onList: () => void;
  /** Told of each list or watch that failed. */
  readonly onFailure: (error: Error) => void;
}) => Informer<T>;

export interface WatchedObjectsOptions<T extends KeptObject> {
  /** In messages, such as `secret`. */
  readonly word: string;
  readonly watch: WatchOne<T>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns the watches. */
  readonly scope: Scope;
  /** The period of looks at a pod (syncFrequency), in milliseconds. */
  readonly resyncMs: number;
  /** What a pod was told of an object does not hold any more. @param live its volumes show the object */
  readonly onChange: (podUid: string, live: boolean) => void;
}

/** Told to readers: there is no such object; nobody could say. Versions are numbers. */
const none = "none";
const unknown = "unknown";

interface Watch<T extends KubeObject> {
  readonly informer: Informer<T>;
  readonly controller: AbortController;
  /** Why the last list or watch failed; undefined when it did not. */
  trouble: Error | undefined;
}

interface Entry<T extends KubeObject> {
  readonly namespace: string;
  readonly name: string;
  /** Pod UID → whether its volumes show the object. */
  readonly users: Map<string, boolean>;
  watch: Watch<T> | undefined;
  /** What readers were told last: a version, `none`, `unknown`, or undefined when nobody has read yet. */
  told: string | undefined;
  /** The last object that was read, for when the API server is away. */
  last: T | undefined;
  /** The object when it can't change any more. */
  frozen: T | undefined;
  usedAt: number;
}

/**
 * Objects that are watched one by one as long as a registered pod refers to them (features.md section 11, strategy
 * Watch). What is immutable, or that nobody reads and no volume shows, is watched no longer; it is kept.
 */
export class WatchedObjects<T extends KeptObject> implements ObjectStore<T> {
  readonly #o: WatchedObjectsOptions<T>;
  readonly #entries = new Map<string, Entry<T>>();

  constructor(options: WatchedObjectsOptions<T>) {
    this.#o = options;
    options.scope.spawn(`idle watches of ${options.word}s`, async (signal) => {
      while (!signal.aborted) {
        await options.clock.sleep(idleCheckMs, signal);
        this.#stopIdle();
      }
    });
  }

  /** Number of objects that are kept, and of those that are watched. */
  get size(): { readonly objects: number; readonly watches: number } {
    return { objects: this.#entries.size, watches: [...this.#entries.values()].filter((e) => e.watch).length };
  }

  reference(namespace: string, name: string, podUid: string, live: boolean): void {
    const key = `${namespace}/${name}`;
    let entry = this.#entries.get(key);
    if (!entry) {
      const usedAt = this.#o.clock.now();
      entry = {
        namespace,
        name,
        users: new Map(),
        watch: undefined,
        told: undefined,
        last: undefined,
        frozen: undefined,
        usedAt,
      };
      this.#entries.set(key, entry);
      this.#start(entry);
    }
    entry.users.set(podUid, live);
  }

  release(namespace: string, name: string, podUid: string): void {
    const key = `${namespace}/${name}`;
    const entry = this.#entries.get(key);
    if (!entry?.users.delete(podUid) || entry.users.size > 0) return;
    this.#stop(entry);
    this.#entries.delete(key);
  }

  async get(namespace: string, name: string, signal: AbortSignal): Promise<T> {
    const entry = this.#entries.get(`${namespace}/${name}`);
    if (!entry) throw new KubeletError("Internal", `object "${namespace}"/"${name}" not registered`);
    entry.usedAt = this.#o.clock.now();
    if (entry.frozen) return entry.frozen;
    const { informer } = entry.watch ?? this.#start(entry);
    if (!informer.synced && !await this.#synced(informer, signal)) return this.#unsynced(entry);
    const object = informer.get({ namespace, name });
    entry.last = object;
    entry.told = object ? versionOf(object) : none;
    if (!object) {
      throw new ApiError(`${this.#o.word} "${name}" not found`, { status: 404, reason: "NotFound" });
    }
    if (object.immutable === true) {
      entry.frozen = object;
      this.#stop(entry);
      this.#o.log.detail(4, "an immutable object is watched no longer", { kind: this.#o.word, namespace, name });
    }
    return object;
  }

  /** The last that is known when it could not be asked; rejects with why when nothing is. */
  #unsynced(entry: Entry<T>): T {
    if (entry.last) return entry.last;
    entry.told = unknown;
    const trouble = entry.watch?.trouble;
    const message = `failed to sync ${this.#o.word} cache: ${
      trouble ? messageOf(trouble) : "timed out waiting for the condition"
    }`;
    if (trouble instanceof ApiError) {
      const { status, reason } = trouble;
      throw new ApiError(message, { status, reason }, { cause: trouble });
    }
    throw new KubeletError(trouble instanceof KubeletError ? trouble.code : "Timeout", message, { cause: trouble });
  }

  async #synced(informer: Informer<T>, signal: AbortSignal): Promise<boolean> {
    using limit = new Deadline({ clock: this.#o.clock, signal, ms: syncWaitMs });
    try {
      await informer.whenSynced(limit.signal);
      return true;
    } catch (thrown) {
      if (!limit.over) throw thrown;
      return false;
    }
  }

  #start(entry: Entry<T>): Watch<T> {
    const { scope, word, watch: make } = this.#o;
    const { namespace, name } = entry;
    const controller = new AbortController();
    const informer = make({
      namespace,
      name,
      onChange: ({ type, object }) => {
        if (!controller.signal.aborted) this.#tell(entry, type === "deleted" ? none : versionOf(object));
      },
      onList: () => {
        watch.trouble = undefined;
        if (!controller.signal.aborted && entry.told === unknown) this.#tell(entry, none);
      },
      onFailure: (error) => void (watch.trouble = error),
    });
    const watch: Watch<T> = { informer, controller, trouble: undefined };
    entry.watch = watch;
    scope.spawn(`watch ${word} ${namespace}/${name}`, async (signal) => {
      const abort = () => controller.abort(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
      try {
        await informer.run(controller.signal);
      } catch (thrown) {
        if (!controller.signal.aborted) throw thrown;
      } finally {
        signal.removeEventListener("abort", abort);
      }
    });
    return watch;
  }

  #stop(entry: Entry<T>): void {
    entry.watch?.controller.abort();
    entry.watch = undefined;
  }

  /** Readers were told something else than what is so now. */
  #tell(entry: Entry<T>, now: string): void {
    const { told } = entry;
    // Whoever waits for the first list is told by it.
    if (told === undefined || told === now) return;
    entry.told = now;
    const failed = told === none || told === unknown;
    for (const [uid, live] of entry.users) if (live || failed) this.#o.onChange(uid, live);
  }

  #stopIdle(): void {
    const { clock, resyncMs } = this.#o;
    const idleMs = Math.max(leastIdleMs, resyncMs * idlePeriods);
    for (const entry of this.#entries.values()) {
      const idle = clock.now() - entry.usedAt > idleMs && entry.watch?.informer.synced === true;
      if (idle && ![...entry.users.values()].some((live) => live)) this.#stop(entry);
    }
  }
}

function versionOf({ metadata }: KubeObject): string {
  return metadata?.resourceVersion ?? "";
}
