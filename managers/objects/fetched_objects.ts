import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { type GetOptions, isApiNotFound, type KubeObject, type ObjectName } from "../../mod/kube/api/types.ts";
import type { ObjectStore } from "./types.ts";

/** Reads one object from the API server. */
export type GetOne<T> = (name: ObjectName, options: GetOptions) => Promise<T>;

/** Reads an object each time that somebody asks (strategy Get). */
export class DirectObjects<T> implements ObjectStore<T> {
  constructor(private readonly read: GetOne<T>) {}

  reference(): void {}

  release(): void {}

  get(namespace: string, name: string, signal: AbortSignal): Promise<T> {
    return this.read({ namespace, name }, { signal });
  }
}

/** How long an object counts as fresh unless the node says otherwise, in milliseconds. */
const defaultTtlMs = 60_000;

interface Item<T> {
  readonly users: Set<string>;
  /** The last answer: an object, or that there is none. */
  known: { readonly object: T } | { readonly missing: Error } | undefined;
  freshUntil: number;
  /** Readers wait for one another, so that one request serves them all. */
  turn: Promise<unknown>;
}

/**
 * Reads an object when what is known of it is older than its time to live (strategy Cache). A pod that is registered
 * makes its objects be read anew; while the API server is away the last answer serves.
 */
export class CachedObjects<T extends KubeObject> implements ObjectStore<T> {
  readonly #items = new Map<string, Item<T>>();

  constructor(
    private readonly options: {
      readonly read: GetOne<T>;
      readonly clock: Pick<Clock, "now">;
      /** The node's own time to live (annotation node.alpha.kubernetes.io/ttl), in milliseconds. */
      readonly ttlMs: () => number | undefined;
    },
  ) {}

  reference(namespace: string, name: string, podUid: string): void {
    const key = `${namespace}/${name}`;
    const item = this.#items.get(key) ??
      { users: new Set<string>(), known: undefined, freshUntil: 0, turn: Promise.resolve() };
    item.users.add(podUid);
    item.freshUntil = 0;
    this.#items.set(key, item);
  }

  release(namespace: string, name: string, podUid: string): void {
    const key = `${namespace}/${name}`;
    const item = this.#items.get(key);
    if (item?.users.delete(podUid) && item.users.size === 0) this.#items.delete(key);
  }

  async get(namespace: string, name: string, signal: AbortSignal): Promise<T> {
    const item = this.#items.get(`${namespace}/${name}`);
    if (!item) throw new KubeletError("Internal", `object "${namespace}"/"${name}" not registered`);
    const before = item.turn;
    const read = (async () => {
      await Promise.allSettled([before]);
      await this.#refresh(item, { namespace, name }, signal);
    })();
    item.turn = read;
    await read;
    if (item.known && "object" in item.known) return item.known.object;
    throw item.known?.missing ?? new KubeletError("Internal", `object "${namespace}"/"${name}" was not read`);
  }

  async #refresh(item: Item<T>, name: ObjectName, signal: AbortSignal): Promise<void> {
    const { clock, read, ttlMs } = this.options;
    const { known } = item;
    if (known && "object" in known && clock.now() < item.freshUntil) return;
    try {
      // What was read once may come from the server's cache; an object that was missing must be looked for in earnest.
      const again = known && "object" in known && item.freshUntil > 0;
      const object = await read(name, again ? { signal, resourceVersion: "0" } : { signal });
      if (!(known && "object" in known && older(object, known.object))) item.known = { object };
    } catch (thrown) {
      if (isApiNotFound(thrown)) item.known = { missing: thrown as Error };
      else if (signal.aborted || known === undefined) throw thrown;
      else return;
    }
    item.freshUntil = clock.now() + (ttlMs() ?? defaultTtlMs);
  }
}

/** Versions of one object are numbers that grow; what is none can't be compared. */
function older(a: KubeObject, b: KubeObject): boolean {
  const [x, y] = [a, b].map((o) => Number(o.metadata?.resourceVersion ?? Number.NaN));
  return a.metadata?.uid === b.metadata?.uid && x !== undefined && y !== undefined && x < y;
}
