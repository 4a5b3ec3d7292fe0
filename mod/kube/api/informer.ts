import type { Clock } from "../../base/clock.ts";
import { abortedBy, asError, messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { waitAtMost } from "../../base/within.ts";
import { RetryDelays } from "./retry_delays.ts";
import { type ApiClient, ApiError, type Change, type Informer, type KubeObject } from "./types.ts";
import type { ObjectName, ResourceType, WatchEvent } from "./types.ts";

export interface InformerOptions<T extends KubeObject> {
  readonly client: Pick<ApiClient, "list" | "watch" | "onIdentity">;
  readonly resource: ResourceType<T>;
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Told of each change, in order, after `get` and `all` show it. What it throws is logged. */
  readonly onChange?: (change: Change<T>) => void;
  /** Told after each list, when all of its changes were told. */
  readonly onList?: () => void;
  /** Told of each list or watch that failed, before the delay after it. */
  readonly onFailure?: (error: Error) => void;
  /** The shortest time that the server is asked to keep a watch, in seconds; 300 when not given. */
  readonly watchSeconds?: number;
  /** What is kept of an object: it may change and return the one it is given. Without managedFields when not given. */
  readonly keep?: (object: T) => T;
}

/** The shortest time that a server is asked to keep a watch, in seconds; a random part of as much again is added. */
const watchSeconds = 300;
/** A watch that ends sooner without having told anything is a failure, in milliseconds. */
const shortWatchMs = 1000;

/**
 * Keeps the objects of a kind as they are: lists them, then watches from the list's version; a watch that breaks goes
 * on where it was, one whose version the server has forgotten (410) begins with a new list. Failures are waited out with
 * a growing, jittered delay; what is known stays known meanwhile.
 */
export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  return new Reflector(options);
}

class Reflector<T extends KubeObject> implements Informer<T> {
  readonly #o: InformerOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #synced = Promise.withResolvers<void>();
  #isSynced = false;
  /** The version reached; undefined when a list is needed. */
  #version: string | undefined;
  /** Whether the watch has got beyond the version that it began with. */
  #advanced = false;

  constructor(options: InformerOptions<T>) {
    this.#o = options;
  }

  get synced(): boolean {
    return this.#isSynced;
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    if (this.#isSynced) return;
    if (signal.aborted) throw abortedBy(signal);
    const { promise, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(abortedBy(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await Promise.race([this.#synced.promise, promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  get(name: ObjectName): T | undefined {
    return this.#objects.get(keyOf(name));
  }

  all(): T[] {
    return [...this.#objects.values()];
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, resource } = this.#o;
    const delays = new RetryDelays({ clock, random });
    while (true) {
      if (signal.aborted) throw abortedBy(signal);
      this.#advanced = false;
      try {
        if (this.#version === undefined) await this.#list(signal);
        await this.#watch(signal);
      } catch (thrown) {
        if (signal.aborted) throw abortedBy(signal);
        this.#o.onFailure?.(asError(thrown));
        const relist = hasExpired(thrown);
        if (relist) this.#version = undefined;
        // A connection that breaks now and then is not a server that is away; lists without end are dear, though.
        if (this.#advanced && !relist) delays.worked();
        const asked = thrown instanceof ApiError ? thrown.retryAfterMs ?? 0 : 0;
        const waitMs = Math.max(delays.next(), asked);
        log.detail(relist ? 3 : 1, "list and watch of the API server are begun anew", {
          resource: resource.plural,
          ...(this.#o.fieldSelector === undefined ? {} : { fieldSelector: this.#o.fieldSelector }),
          error: messageOf(thrown),
          relist,
          waitMs: Math.round(waitMs),
        });
        await this.#pause(waitMs, signal);
      }
    }
  }

  /** Waits before the next try. A new identity ends the wait: it may have been the old one that was refused. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { clock, client } = this.#o;
    const { promise: renewed, resolve } = Promise.withResolvers<void>();
    using _listening = client.onIdentity?.(resolve);
    await waitAtMost({ clock, ms, signal }, renewed);
  }

  get #selection() {
    const { namespace, fieldSelector, labelSelector } = this.#o;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, resource, onList } = this.#o;
    // The first list may come from the server's cache; after that it could be older than what is known.
    const fresh = this.#isSynced ? {} : { resourceVersion: "0" };
    const { items, resourceVersion } = await client.list(resource, { ...this.#selection, ...fresh, signal });
    if (resourceVersion === "") throw new Error("the list has no version that a watch could begin at");
    const gone = new Set(this.#objects.keys());
    for (const item of items) {
      gone.delete(keyOf(nameOf(item)));
      this.#put(item);
    }
    for (const key of gone) this.#drop(key, this.#objects.get(key));
    this.#version = resourceVersion;
    this.#isSynced = true;
    this.#synced.resolve();
    onList?.();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, resource, clock, random } = this.#o;
    const resourceVersion = this.#version ?? "0";
    const began = clock.now();
    let told = false;
    const watch: AsyncIterable<WatchEvent<T>> = client.watch(resource, {
      ...this.#selection,
      resourceVersion,
      timeoutSeconds: Math.floor((this.#o.watchSeconds ?? watchSeconds) * (1 + random())),
      signal,
    });
    for await (const event of watch) {
      told = true;
      if (event.type === "BOOKMARK") {
        this.#reach(event.resourceVersion);
        continue;
      }
      const { object } = event;
      if (event.type === "DELETED") this.#drop(keyOf(nameOf(object)), object);
      else this.#put(object);
      this.#reach(object.metadata?.resourceVersion);
    }
    const leftMs = shortWatchMs - (clock.now() - began);
    if (leftMs <= 0) return;
    if (!told) throw new Error("the watch ended at once, without any event");
    // A server that ends each watch after one event is not to be asked without pause.
    await clock.sleep(Math.min(leftMs, shortWatchMs), signal);
  }

  /** An object or bookmark without a version would make the next watch begin with everything. */
  #reach(version: string | undefined): void {
    if (!version || version === this.#version) return;
    this.#version = version;
    this.#advanced = true;
  }

  #put(given: T): void {
    const key = keyOf(nameOf(given));
    const before = this.#objects.get(key);
    if (before && before.metadata?.resourceVersion === given.metadata?.resourceVersion && sameUid(before, given)) {
      return;
    }
    if (before && !sameUid(before, given)) this.#drop(key, before);
    const object = (this.#o.keep ?? withoutManagedFields)(given);
    this.#objects.set(key, object);
    this.#tell({ type: before && sameUid(before, given) ? "updated" : "added", object });
  }

  #drop(key: string, last: T | undefined): void {
    if (!this.#objects.delete(key) || last === undefined) return;
    this.#tell({ type: "deleted", object: last });
  }

  #tell(change: Change<T>): void {
    try {
      this.#o.onChange?.(change);
    } catch (thrown) {
      const { name, namespace } = change.object.metadata ?? {};
      this.#o.log.error("a change of an object could not be handled", {
        resource: this.#o.resource.plural,
        name,
        namespace,
        error: messageOf(thrown),
      });
    }
  }
}

/** Whether the version that a watch wanted to go on from is of no use any more. */
function hasExpired(thrown: unknown): boolean {
  if (!(thrown instanceof ApiError)) return false;
  // A server whose store was put back to an earlier state knows nothing of the newest versions.
  // One that the server cannot read (400) will not get better.
  return thrown.status === 410 || thrown.status === 400 || thrown.reason === "Expired" ||
    /too large resource version/i.test(thrown.message);
}

function nameOf({ metadata }: KubeObject): ObjectName {
  const { name = "", namespace } = metadata ?? {};
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace ?? ""}/${name}`;
}

function sameUid(a: KubeObject, b: KubeObject): boolean {
  return a.metadata?.uid === b.metadata?.uid;
}

/** Who changed which field is of no use to the agent, and often half of an object. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  delete object.metadata?.managedFields;
  return object;
}
