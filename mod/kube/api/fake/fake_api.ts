import type { Clock } from "../../../base/clock.ts";
import { type Random, seeded } from "../../../base/random.ts";
import type { ApiClient, KubeObject, ObjectName, ResourceType } from "../types.ts";
import type { Transport } from "../transport.ts";
import { FakeClient } from "./client.ts";
import { type Call, Faults } from "./faults.ts";
import { mergePatch } from "./patch.ts";
import { type Deletion, ObjectServer } from "./server.ts";
import { nameOf } from "./store.ts";
import { FakeTransport, type Tamper } from "./wire.ts";

/** How the server can be reached: answering; refusing connections; or cut off, so that nothing comes back. */
export type Reach = "up" | "refused" | "silent";

/** An API server in memory, for unit tests and the simulation. Its own methods act as an administrator, without faults. */
export class FakeApi {
  readonly #clock: Clock;
  readonly server: ObjectServer;
  readonly faults = new Faults();
  /** Every request of every client, oldest first. */
  readonly calls: Call[] = [];
  /** Tokens that were given out, oldest first, with the names of their service accounts. */
  readonly tokens: { readonly account: ObjectName; readonly token: string; readonly expires: number }[] = [];
  readonly #watches = new Set<(how: "end" | "break" | "look") => void>();
  /** Changes what answers say on the wire; nothing when undefined. */
  tamper: Tamper | undefined;
  /** Whether the server knows who shows it this header; it knows everybody when not given. */
  knows: ((authorization: string | undefined) => boolean) | undefined;
  /** The longest page of a list on the wire. */
  pageSize = Infinity;
  #reach: Reach = "up";

  constructor(options: { clock: Clock; random?: Random }) {
    this.#clock = options.clock;
    this.server = new ObjectServer({ clock: options.clock, random: options.random ?? seeded(1) });
  }

  get reach(): Reach {
    return this.#reach;
  }

  /** Changes how the server is reached. Open watches break when it refuses; they fall silent when it is cut off. */
  set reach(reach: Reach) {
    this.#reach = reach;
    for (const tell of [...this.#watches]) tell(reach === "refused" ? "break" : "look");
  }

  /** A client of this server. With `node`, it may do what that node may; `timeoutMs` is its calls' usual limit. */
  client(name = "main", options: { readonly node?: string; readonly timeoutMs?: number } = {}): ApiClient {
    return new FakeClient({ api: this, clock: this.#clock, name, ...options });
  }

  /** Connections to this server, for a client that speaks HTTP. With `node`, they may do what that node may. */
  transport(name = "main", options: { readonly node?: string } = {}): Transport {
    return new FakeTransport({ api: this, clock: this.#clock, name, ...options });
  }

  get<T extends KubeObject>(resource: ResourceType<T>, name: ObjectName): T | undefined {
    const found = this.server.store.get(resource, name);
    return found && structuredClone(found) as T;
  }

  list<T extends KubeObject>(resource: ResourceType<T>): T[] {
    return this.server.store.all(resource).map((one) => structuredClone(one) as T);
  }

  create<T extends KubeObject>(resource: ResourceType<T>, object: T): T {
    return structuredClone(this.server.create(resource, structuredClone(object))) as T;
  }

  /** Stores an object whole, status included, whether or not it is there; its UID is kept, or made. */
  put<T extends KubeObject>(resource: ResourceType<T>, object: T): T {
    const { store } = this.server;
    const name = nameOf(object);
    const before = store.get(resource, name) ?? this.server.create(resource, structuredClone(object));
    const metadata = { ...object.metadata, uid: object.metadata?.uid ?? before.metadata?.uid };
    return structuredClone(store.put(resource, { ...before, ...structuredClone(object), metadata } as KubeObject)) as T;
  }

  /** Merges into an object (JSON merge patch), status included. */
  merge<T extends KubeObject>(resource: ResourceType<T>, name: ObjectName, patch: unknown): T {
    const before = this.server.get(resource, name);
    return this.put(resource, mergePatch(structuredClone(before), patch) as T);
  }

  /** Deletes as a user does: with grace where the kind has one. */
  delete(resource: ResourceType, name: ObjectName, how: Deletion = {}): void {
    this.server.delete(resource, name, how);
  }

  /** Takes an object away at once, whatever holds it. */
  remove(resource: ResourceType, name: ObjectName): void {
    this.server.store.remove(resource, name);
  }

  /** Binds a pod to a node, as the scheduler does. Rejects when it has one. */
  bind(pod: ObjectName, node: string): void {
    this.server.bind(pod, node);
  }

  /** Ends all open watches: as a server does in time, or breaking off in the middle. */
  cutWatches(how: "end" | "break" = "break"): void {
    for (const tell of [...this.#watches]) tell(how);
  }

  /** Forgets what happened until now: watches that go on from an older version are told that it has expired. */
  compact(): void {
    this.server.store.compact();
  }

  /** Number of watches that are open now. */
  get watches(): number {
    return this.#watches.size;
  }

  /** @ignore For the clients: tells them what happens to watches. */
  onWatch(tell: (how: "end" | "break" | "look") => void): Disposable {
    this.#watches.add(tell);
    return { [Symbol.dispose]: () => void this.#watches.delete(tell) };
  }
}
