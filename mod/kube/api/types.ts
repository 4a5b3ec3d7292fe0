import { KubeletError } from "../../base/errors.ts";
import type { ObjectMeta } from "../types.ts";

/** What every object of the API has. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** Where objects of a kind are found. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** As in paths, such as `pods`. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Only carries the type. */
  readonly of?: T;
}

/** Which object of its kind. */
export interface ObjectName {
  readonly name: string;
  /** Required for namespaced kinds, absent for others. */
  readonly namespace?: string;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /** Milliseconds for this call; the client's own limit when not given. */
  readonly timeoutMs?: number;
}

export interface ListOptions extends CallOptions {
  /** All namespaces when not given. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** `0` takes what the server has in its cache. */
  readonly resourceVersion?: string;
}

export interface WatchOptions extends ListOptions {
  /** After this version; the server answers 410 (reason Expired) when it does not know it any more. */
  readonly resourceVersion: string;
  /** How long the server shall keep the watch open, in seconds. */
  readonly timeoutSeconds?: number;
}

export interface ListOf<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/** A change that a watch tells. A bookmark carries nothing but the version that was reached. */
export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

/** How a patch is to be read (`application/<…>-patch+json`, or `apply-patch+yaml`). */
export type PatchType = "strategic-merge" | "merge" | "json" | "apply";

export interface PatchOptions extends CallOptions {
  readonly type: PatchType;
  /** Such as `status`. */
  readonly subresource?: string;
  /** Required for `apply`. */
  readonly fieldManager?: string;
  readonly force?: boolean;
}

export interface DeleteOptions extends CallOptions {
  readonly gracePeriodSeconds?: number;
  /** The delete fails with reason Conflict when the object has another UID. */
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/**
 * The API server, as the agent uses it: thin, typed, one call one request. Every method rejects with ApiError when the
 * server answers with a failure, with a Network error when it cannot be reached or answers nonsense, with Timeout when it
 * takes too long, and with Aborted when the signal aborts. None retries, but for one that was told `Retry-After` by a
 * server that has not begun (429), within the call's time.
 */
export interface ApiClient {
  /** Told when the node's identity has changed: what was refused before may be granted now. Absent: it never changes. */
  onIdentity?(listener: () => void): Disposable;
  get<T extends KubeObject>(resource: ResourceType<T>, name: ObjectName, options: GetOptions): Promise<T>;
  /** Every page of a list, as one. */
  list<T extends KubeObject>(resource: ResourceType<T>, options: ListOptions): Promise<ListOf<T>>;
  create<T extends KubeObject>(resource: ResourceType<T>, object: T, options: CallOptions): Promise<T>;
  /** Replaces the whole object, or its subresource. */
  replace<T extends KubeObject>(
    resource: ResourceType<T>,
    object: T,
    options: CallOptions & { readonly subresource?: string },
  ): Promise<T>;
  patch<T extends KubeObject>(
    resource: ResourceType<T>,
    name: ObjectName,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T>;
  delete<T extends KubeObject>(resource: ResourceType<T>, name: ObjectName, options: DeleteOptions): Promise<void>;
  /** Posts to a subresource of an object, such as `token` of a service account or `eviction` of a pod. */
  post<A, B>(
    resource: ResourceType,
    name: ObjectName,
    subresource: string,
    body: A,
    options: CallOptions,
  ): Promise<B>;
  /**
   * Tells changes after a version until the server ends the watch (then the iteration ends), the signal aborts or the
   * connection breaks (then it rejects). An ERROR event rejects as ApiError.
   */
  watch<T extends KubeObject>(resource: ResourceType<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
}

export interface GetOptions extends CallOptions {
  /** `0` takes what the server has in its cache. */
  readonly resourceVersion?: string;
}

/** The server answered with a failure (a Status object, or a code without one). */
export class ApiError extends KubeletError {
  /** HTTP status. */
  readonly status: number;
  /** Such as `NotFound`, `AlreadyExists`, `Conflict`, `Expired`, `Forbidden`, `Unauthorized`, `TooManyRequests`. */
  readonly reason: string;
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    facts: { status: number; reason: string; retryAfterMs?: number | undefined },
    options?: ErrorOptions,
  ) {
    super("Api", message, options);
    this.status = facts.status;
    this.reason = facts.reason;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** Whether a call failed because the object is not there, in the API server's own words. */
export function isApiNotFound(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status === 404 && thrown.reason === "NotFound";
}

/** Whether a call failed because the object has changed meanwhile, or has another UID. */
export function isConflict(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status === 409 && thrown.reason === "Conflict";
}

/** Whether a create failed because the object is there. */
export function isAlreadyExists(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status === 409 && thrown.reason === "AlreadyExists";
}

/** Objects of a kind as they are now, kept up to date by a watch (a reflector). */
export interface Informer<T extends KubeObject> {
  /** True once the first list was read; what is known stays known while the server is away. */
  readonly synced: boolean;
  /** Resolves when the first list has been read; rejects with Aborted. */
  whenSynced(signal: AbortSignal): Promise<void>;
  get(name: ObjectName): T | undefined;
  all(): T[];
  /** Lists and watches until the signal aborts. Never rejects but with Aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** A change that an informer saw. */
export type Change<T> =
  | { readonly type: "added" | "updated"; readonly object: T }
  | { readonly type: "deleted"; readonly object: T };
