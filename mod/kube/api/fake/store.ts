import type { KubeObject, ObjectName, ResourceType } from "../types.ts";
import { failures, qualified } from "./failures.ts";

/** One change of one object, as a watch tells it. */
export interface StoredChange {
  readonly version: number;
  /** Absent for one that was created. */
  readonly before?: KubeObject;
  /** The object after the change; for a removal its last state, with the removal's version. */
  readonly object: KubeObject;
  readonly removed: boolean;
}

interface Collection {
  readonly objects: Map<string, KubeObject>;
  readonly changes: StoredChange[];
  readonly listeners: Set<(change: StoredChange) => void>;
  /** Changes up to this version are forgotten. */
  forgotten: number;
}

/** How many changes of a kind are remembered at least. */
const keptChanges = 1000;

/** Objects by kind with one version counter, and what changed. Stored objects are never changed, only replaced. */
export class ObjectStore {
  #version = 100;
  readonly #collections = new Map<string, Collection>();

  get version(): number {
    return this.#version;
  }

  #of(resource: ResourceType): Collection {
    const key = qualified(resource);
    let found = this.#collections.get(key);
    if (!found) {
      this.#collections.set(key, found = { objects: new Map(), changes: [], listeners: new Set(), forgotten: 0 });
    }
    return found;
  }

  get(resource: ResourceType, name: ObjectName): KubeObject | undefined {
    return this.#of(resource).objects.get(keyOf(name));
  }

  all(resource: ResourceType): KubeObject[] {
    // In the order of their keys, as a server lists.
    return [...this.#of(resource).objects].sort(([a], [b]) => a < b ? -1 : 1).map(([, object]) => object);
  }

  /** Stores an object under the next version. */
  put(resource: ResourceType, object: KubeObject): KubeObject {
    const collection = this.#of(resource);
    const key = keyOf(nameOf(object));
    const before = collection.objects.get(key);
    const version = ++this.#version;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    collection.objects.set(key, stored);
    this.#told(collection, { version, ...(before ? { before } : {}), object: stored, removed: false });
    return stored;
  }

  /** Removes an object; its removal has a version of its own. */
  remove(resource: ResourceType, name: ObjectName): void {
    const collection = this.#of(resource);
    const before = collection.objects.get(keyOf(name));
    if (!before) return;
    collection.objects.delete(keyOf(name));
    const version = ++this.#version;
    const object = { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } };
    this.#told(collection, { version, before, object, removed: true });
  }

  #told(collection: Collection, change: StoredChange): void {
    const { changes } = collection;
    changes.push(change);
    if (changes.length > 2 * keptChanges) collection.forgotten = changes.splice(0, keptChanges).at(-1)?.version ?? 0;
    for (const listener of [...collection.listeners]) listener(change);
  }

  /** The changes after a version. Throws Expired when some of them are forgotten. */
  since(resource: ResourceType, version: number): readonly StoredChange[] {
    const { changes, forgotten } = this.#of(resource);
    if (version < forgotten) throw failures.expired(version, forgotten);
    const first = changes.findLastIndex((change) => change.version <= version) + 1;
    return changes.slice(first);
  }

  /** Forgets every change until now: a watch can begin at the present version only. */
  compact(): void {
    for (const collection of this.#collections.values()) {
      collection.changes.length = 0;
      collection.forgotten = this.#version;
    }
  }

  /** Calls `listener` after each change of a kind until disposed. */
  listen(resource: ResourceType, listener: (change: StoredChange) => void): Disposable {
    const { listeners } = this.#of(resource);
    listeners.add(listener);
    return { [Symbol.dispose]: () => void listeners.delete(listener) };
  }
}

function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace ?? ""}/${name}`;
}

/** The name that an object has. Throws BadRequest without one. */
export function nameOf(object: KubeObject): ObjectName {
  const { name, namespace } = object.metadata ?? {};
  if (!name) throw failures.badRequest("the object has no metadata.name");
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}
