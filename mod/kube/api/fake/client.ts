import type { Clock } from "../../../base/clock.ts";
import { abortedBy, KubeletError } from "../../../base/errors.ts";
import {
  type ApiClient,
  ApiError,
  type CallOptions,
  type DeleteOptions,
  type GetOptions,
  type KubeObject,
  type ListOf,
  type ListOptions,
  type ObjectName,
  type PatchOptions,
  type ResourceType,
  type WatchEvent,
  type WatchOptions,
} from "../types.ts";
import { refusedForNode } from "./authorizer.ts";
import { failures } from "./failures.ts";
import type { FakeApi } from "./fake_api.ts";
import type { Call, Verb } from "./faults.ts";
import { matchesFields, matchesLabels } from "./selectors.ts";
import { postSubresource } from "./subresources.ts";
import { watchStore } from "./watch.ts";

/** A client's usual limit of a call, in milliseconds, when nothing else is said. */
const usualTimeoutMs = 30_000;

interface Request {
  readonly verb: Verb;
  readonly resource: ResourceType;
  readonly name?: ObjectName;
  readonly namespace?: string | undefined;
  readonly subresource?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly body?: unknown;
}

/** A client of the server in memory: the same promises as the real one, faults included. */
export class FakeClient implements ApiClient {
  readonly #api: FakeApi;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #node: string | undefined;
  readonly #timeoutMs: number;
  readonly #retries: boolean;

  /** @param options.retries whether a request that the server puts off (429) is sent again; true when not given */
  constructor(
    options: { api: FakeApi; clock: Clock; name: string; node?: string; timeoutMs?: number; retries?: boolean },
  ) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#name = options.name;
    this.#node = options.node;
    this.#timeoutMs = options.timeoutMs ?? usualTimeoutMs;
    this.#retries = options.retries ?? true;
  }

  get<T extends KubeObject>(resource: ResourceType<T>, name: ObjectName, options: GetOptions): Promise<T> {
    return this.#call({ verb: "get", resource, name }, options, () => this.#api.server.get(resource, name));
  }

  list<T extends KubeObject>(resource: ResourceType<T>, options: ListOptions): Promise<ListOf<T>> {
    const { namespace, fieldSelector, labelSelector } = options;
    return this.#call({ verb: "list", resource, namespace, fieldSelector }, options, () => {
      const { store } = this.#api.server;
      const items = store.all(resource).filter((one) =>
        (namespace === undefined || one.metadata?.namespace === namespace) && matchesFields(one, fieldSelector) &&
        matchesLabels(one.metadata?.labels, labelSelector)
      ) as T[];
      return { items, resourceVersion: String(store.version) };
    });
  }

  create<T extends KubeObject>(resource: ResourceType<T>, object: T, options: CallOptions): Promise<T> {
    const { name, namespace } = object.metadata ?? {};
    const request = { verb: "create", resource, namespace, body: object, ...(name ? { name: { name } } : {}) } as const;
    return this.#call(request, options, () => this.#api.server.create(resource, structuredClone(object)));
  }

  replace<T extends KubeObject>(
    resource: ResourceType<T>,
    object: T,
    options: CallOptions & { readonly subresource?: string },
  ): Promise<T> {
    const { name = "", namespace } = object.metadata ?? {};
    const { subresource } = options;
    const request = { verb: "update", resource, name: { name }, namespace, subresource, body: object } as const;
    return this.#call(
      request,
      options,
      () => this.#api.server.replace(resource, structuredClone(object), subresource),
    );
  }

  patch<T extends KubeObject>(
    resource: ResourceType<T>,
    name: ObjectName,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const { subresource } = options;
    return this.#call(
      { verb: "patch", resource, name, subresource, body: patch },
      options,
      () => this.#api.server.patch(resource, name, structuredClone(patch), options),
    );
  }

  async delete<T extends KubeObject>(
    resource: ResourceType<T>,
    name: ObjectName,
    options: DeleteOptions,
  ): Promise<void> {
    const { gracePeriodSeconds, uid, resourceVersion } = options;
    const body = { gracePeriodSeconds, preconditions: { uid, resourceVersion } };
    await this.#call({ verb: "delete", resource, name, body }, options, () => {
      this.#api.server.delete(resource, name, options);
      return null;
    });
  }

  post<A, B>(
    resource: ResourceType,
    name: ObjectName,
    subresource: string,
    body: A,
    options: CallOptions,
  ): Promise<B> {
    return this.#call(
      { verb: "create", resource, name, subresource, body },
      options,
      () => postSubresource(this.#api, this.#clock, { resource, name, subresource, body }) as B,
    );
  }

  async *watch<T extends KubeObject>(
    resource: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>> {
    yield* await this.open(resource, options);
  }

  /** Begins a watch: resolves when the server has taken it, before anything is told. */
  async open<T extends KubeObject>(
    resource: ResourceType<T>,
    options: WatchOptions,
  ): Promise<AsyncGenerator<WatchEvent<T>>> {
    const { namespace, fieldSelector } = options;
    await this.#call({ verb: "watch", resource, namespace, fieldSelector }, options, () => {
      const { version } = this.#api.server.store;
      const asked = versionOf(options.resourceVersion);
      if (asked > version) throw failures.tooLarge(asked, version);
      return null;
    });
    return watchStore<T>(this.#api, this.#clock, resource, options);
  }

  /** Carries a request out: what a server does, after what is in its way. What it answers is a copy. */
  async #call<R>(request: Request, options: CallOptions, act: () => unknown): Promise<R> {
    const { signal, timeoutMs = this.#timeoutMs } = options;
    const deadline = this.#clock.now() + timeoutMs;
    while (true) {
      try {
        return await this.#once(request, signal, deadline, act) as R;
      } catch (thrown) {
        const putOff = this.#retries && thrown instanceof ApiError && thrown.status === 429;
        const wait = putOff ? thrown.retryAfterMs : undefined;
        if (wait === undefined || this.#clock.now() + wait >= deadline) throw thrown;
        await this.#clock.sleep(wait, signal);
      }
    }
  }

  async #once(request: Request, signal: AbortSignal, deadline: number, act: () => unknown): Promise<unknown> {
    if (signal.aborted) throw abortedBy(signal);
    const call = this.#note(request);
    const api = this.#api;
    const fault = api.reach === "up" ? api.faults.take(call) : undefined;
    const refuse = (refusing: boolean) => {
      if (refusing) throw new KubeletError("Network", `${call.verb} ${call.resource}: connection refused`);
    };
    refuse(api.reach === "refused" || fault?.kind === "unreachable");
    const ms = api.reach === "silent" || fault?.kind === "hang" ? Infinity : fault?.kind === "slow" ? fault.ms : 0;
    const left = deadline - this.#clock.now();
    if (ms >= left) {
      await this.#clock.sleep(left, signal);
      throw new KubeletError("Timeout", `${call.verb} ${call.resource}: no answer in time`);
    }
    // Not even a fast server answers within the turn that asks it.
    if (ms > 0) await this.#clock.sleep(ms, signal);
    else await Promise.resolve();
    if (signal.aborted) throw abortedBy(signal);
    // It may have gone away meanwhile.
    refuse(api.reach === "refused");
    if (fault?.kind === "status") throw fault.error;
    const refused = this.#node === undefined
      ? undefined
      : refusedForNode(this.#node, request.resource, call, api.server.store);
    if (refused) throw refused;
    const answer = structuredClone(act());
    if (fault?.kind === "lost") {
      throw new KubeletError("Network", `${call.verb} ${call.resource}: the connection broke before the answer`);
    }
    return answer;
  }

  #note({ verb, resource, name, namespace = name?.namespace, subresource, fieldSelector, body }: Request): Call {
    const call = {
      client: this.#name,
      verb,
      resource: resource.plural,
      at: this.#clock.now(),
      ...(subresource === undefined ? {} : { subresource }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { name: name.name }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(body === undefined ? {} : { body: structuredClone(body) }),
    };
    this.#api.calls.push(call);
    return call;
  }
}

/** The number of a version. Throws BadRequest for what is none. */
function versionOf(text: string): number {
  if (text === "" || /^\d{1,20}$/.test(text)) return Number(text);
  throw failures.badRequest(`Invalid value: ${JSON.stringify(text)}: the resource version is no number`);
}
