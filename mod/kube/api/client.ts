import type { Clock } from "../../base/clock.ts";
import { Deadline } from "../../base/deadline.ts";
import { KubeletError, messageOf } from "../../base/errors.ts";
import { answerError, eventOf, jsonOf, type Page, pageOf, strangeness } from "./answers.ts";
import { errorOf } from "./api_status.ts";
import { linesOf, readBody } from "./body.ts";
import { brokenBy, type Connections } from "./connections.ts";
import { pathOf, type Query, queryText } from "./paths.ts";
import type { RateLimiter } from "./rate_limiter.ts";
import type { RequestObserver } from "./request_observer.ts";
import { apiVersionOf } from "./resources.ts";
import type { HttpResponse } from "./transport.ts";
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
  type PatchType,
  type ResourceType,
  type WatchEvent,
  type WatchOptions,
} from "./types.ts";

export interface HttpApiClientOptions {
  /** The API's URL without a slash at its end. */
  readonly server: string;
  readonly connections: Pick<Connections, "send" | "renew" | "generation"> & Partial<Pick<Connections, "onIdentity">>;
  readonly clock: Clock;
  readonly userAgent: string;
  /** Milliseconds for a call that does not say its own. */
  readonly timeoutMs: number;
  /** No limit of rate when not given. Watches are never held up. */
  readonly limiter?: RateLimiter;
  readonly observer?: RequestObserver;
  /** Told when a call had no answer in time, after which this client makes new connections. */
  readonly onSilence?: () => void;
}

/** Bytes of a page of a list, and of one object, that are taken; etcd keeps objects of 1.5 MiB at most. */
const pageLimit = 128 * 2 ** 20;
const objectLimit = 16 * 2 ** 20;
const pageSize = 500;
/** Pages of one list; a server that always has another would be read without end. */
const pagesLimit = 2000;
/** How often a request is sent again that the server put off. */
const retries = 10;
/** How long a watch may outlast the time that the server was given for it, and that time when nothing is said. */
const slackMs = 30_000;
const watchSeconds = 600;

const patchTypes: Readonly<Record<PatchType, string>> = {
  "strategic-merge": "application/strategic-merge-patch+json",
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  apply: "application/apply-patch+yaml",
};

interface Request {
  readonly method: string;
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  readonly contentType?: string;
}

/** The API server over HTTP. */
export class HttpApiClient implements ApiClient {
  readonly #o: HttpApiClientOptions;
  readonly #host: string;

  constructor(options: HttpApiClientOptions) {
    this.#o = options;
    this.#host = new URL(options.server).host;
  }

  onIdentity(listener: () => void): Disposable {
    return this.#o.connections.onIdentity?.(listener) ?? { [Symbol.dispose]: () => {} };
  }

  async get<T extends KubeObject>(resource: ResourceType<T>, name: ObjectName, options: GetOptions): Promise<T> {
    const { resourceVersion } = options;
    const path = pathOf(resource, name);
    return await this.#whole(resource, { method: "GET", path, query: { resourceVersion } }, options, name.name);
  }

  async list<T extends KubeObject>(resource: ResourceType<T>, options: ListOptions): Promise<ListOf<T>> {
    try {
      return await this.#pages(resource, options, pageSize);
    } catch (thrown) {
      // The version that the pages were of is forgotten before the last one was read: all at once, then.
      if (!(thrown instanceof ExpiredPages)) throw thrown;
      return await this.#pages(resource, options, undefined);
    }
  }

  async #pages<T extends KubeObject>(
    resource: ResourceType<T>,
    options: ListOptions,
    limit: number | undefined,
  ): Promise<ListOf<T>> {
    const { namespace, fieldSelector, labelSelector } = options;
    const path = pathOf(resource, { namespace });
    const items: T[] = [];
    const filled = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    let next: string | undefined;
    for (let pages = 1;; pages++) {
      const from = next === undefined ? { resourceVersion: options.resourceVersion } : { continue: next };
      const query = { fieldSelector, labelSelector, limit, ...from };
      let read: Page;
      try {
        read = await this.#object({ method: "GET", path, query }, options, pageLimit);
      } catch (thrown) {
        if (next !== undefined && thrown instanceof ApiError && thrown.status === 410) throw new ExpiredPages();
        throw thrown;
      }
      const page = pageOf(read, resource, `GET ${path}`);
      // Members of a list do not say what they are.
      for (const item of page.items) items.push({ ...item, ...filled } as T);
      next = page.next;
      if (next !== undefined && pages >= pagesLimit) {
        throw new KubeletError("Network", `GET ${path}: the list has more than ${pagesLimit} pages`);
      }
      if (next === undefined) return { items, resourceVersion: page.resourceVersion };
    }
  }

  async create<T extends KubeObject>(resource: ResourceType<T>, object: T, options: CallOptions): Promise<T> {
    const { name, namespace } = object.metadata ?? {};
    const request = { method: "POST", path: pathOf(resource, { namespace }), body: named(resource, object) };
    return await this.#whole(resource, request, options, name);
  }

  async replace<T extends KubeObject>(
    resource: ResourceType<T>,
    object: T,
    options: CallOptions & { readonly subresource?: string },
  ): Promise<T> {
    const name = nameOf(object);
    const path = pathOf(resource, name, options.subresource);
    return await this.#whole(resource, { method: "PUT", path, body: named(resource, object) }, options, name.name);
  }

  async patch<T extends KubeObject>(
    resource: ResourceType<T>,
    name: ObjectName,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const { type, subresource, fieldManager, force } = options;
    return await this.#whole(
      resource,
      {
        method: "PATCH",
        path: pathOf(resource, name, subresource),
        query: { fieldManager, force },
        body: patch,
        contentType: patchTypes[type],
      },
      options,
      name.name,
    );
  }

  async delete<T extends KubeObject>(
    resource: ResourceType<T>,
    name: ObjectName,
    options: DeleteOptions,
  ): Promise<void> {
    const { gracePeriodSeconds, uid, resourceVersion } = options;
    const preconditions = {
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    };
    const path = pathOf(resource, name);
    const { kind } = await this.#object<KubeObject>({ method: "DELETE", path, body }, options);
    // Whatever is neither the object nor a Status is nobody's word that it was done.
    if (kind === resource.kind || kind === "Status") return;
    throw new KubeletError("Network", `DELETE ${path}: the answer is neither ${resource.kind} nor Status`);
  }

  async post<A, B>(
    resource: ResourceType,
    name: ObjectName,
    subresource: string,
    body: A,
    options: CallOptions,
  ): Promise<B> {
    const path = pathOf(resource, name, subresource);
    const answer = await this.#object<B>({ method: "POST", path, body }, options);
    const wrong = answerError(body, answer);
    if (wrong !== undefined) throw new KubeletError("Network", `POST ${path}: the answer ${wrong}`);
    return answer;
  }

  async *watch<T extends KubeObject>(
    resource: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>> {
    const { namespace, fieldSelector, labelSelector, resourceVersion, signal } = options;
    const { timeoutSeconds = watchSeconds } = options;
    const { connections } = this.#o;
    const { generation } = connections;
    const path = pathOf(resource, { namespace });
    const what = `GET ${path} (watch)`;
    using deadline = new Deadline({
      clock: this.#o.clock,
      signal,
      ms: options.timeoutMs ?? this.#o.timeoutMs,
      what: `${what}: no answer`,
    });
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      fieldSelector,
      labelSelector,
      resourceVersion,
      timeoutSeconds,
    };
    const response = await this.#send({ method: "GET", path, query }, deadline, true);
    deadline.extend(timeoutSeconds * 1000 + slackMs, `${what}: not ended by the server`);
    try {
      for await (const line of linesOf(response.body, objectLimit)) yield eventOf(line, resource, what);
    } catch (thrown) {
      if (deadline.over) connections.renew(generation);
      throw brokenBy(thrown, deadline.signal);
    }
  }

  /** Sends a request that is answered with an object of the kind; rejects with code Network when it is another. */
  async #whole<T extends KubeObject>(
    resource: ResourceType<T>,
    request: Request,
    options: CallOptions,
    name: string | undefined,
  ): Promise<T> {
    const object = await this.#object<T>(request, options);
    const wrong = strangeness(object, resource, name);
    if (wrong === undefined) return object;
    throw new KubeletError("Network", `${request.method} ${request.path}: the answer ${wrong}`);
  }

  /** Sends a request and reads the object that answers it. */
  async #object<T>(request: Request, options: CallOptions, longest = objectLimit): Promise<T> {
    const { clock, timeoutMs } = this.#o;
    const what = `${request.method} ${request.path}`;
    const ms = options.timeoutMs ?? timeoutMs;
    using deadline = new Deadline({ clock, signal: options.signal, ms, what: `${what}: no answer` });
    const response = await this.#send(request, deadline, false);
    let text: string;
    try {
      const read = await readBody(response.body, longest, what);
      text = read.text;
      this.#o.observer?.received?.({ verb: request.method, host: this.#host, bytes: read.size });
    } catch (thrown) {
      throw brokenBy(thrown, deadline.signal);
    }
    return jsonOf(text, response, what) as T;
  }

  /** Sends a request until it has an answer that is no failure, within the time. */
  async #send(request: Request, deadline: Deadline, lasting: boolean): Promise<HttpResponse> {
    const { limiter, observer, clock } = this.#o;
    const { method: verb } = request;
    const host = this.#host;
    if (limiter && !lasting) {
      const waited = await limiter.take(deadline.signal).catch((thrown) => {
        throw deadline.signal.aborted ? deadline.signal.reason : thrown;
      });
      observer?.waited?.({ verb, host, seconds: waited / 1000 });
    }
    for (let tries = 0;; tries++) {
      const response = await this.#once(request, deadline, lasting);
      if (response.status < 400) return response;
      const error = await failureOf(response, `${verb} ${request.path}`, deadline);
      const waitMs = error.status === 429 ? error.retryAfterMs : undefined;
      if (waitMs === undefined || tries >= retries || waitMs >= deadline.left) throw error;
      await clock.sleep(waitMs, deadline.signal).catch(() => Promise.reject(deadline.signal.reason));
      observer?.retried?.({ verb, host, code: String(error.status) });
    }
  }

  async #once(request: Request, deadline: Deadline, lasting: boolean): Promise<HttpResponse> {
    const { server, connections, clock, userAgent, observer, onSilence } = this.#o;
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const began = clock.now();
    const { generation } = connections;
    const told = (code: string) =>
      observer?.request?.({
        verb: request.method,
        host: this.#host,
        code,
        seconds: (clock.now() - began) / 1000,
        requestBytes: body?.length ?? 0,
      });
    try {
      const response = await connections.send({
        method: request.method,
        url: `${server}${request.path}${queryText(request.query)}`,
        headers: {
          accept: "application/json",
          "user-agent": userAgent,
          ...(body === undefined ? {} : { "content-type": request.contentType ?? "application/json" }),
        },
        ...(body === undefined ? {} : { body }),
        lasting,
        signal: deadline.signal,
      });
      told(String(response.status));
      return response;
    } catch (thrown) {
      told("<error>");
      if (deadline.over) {
        // Whatever the reason, the connection may be dead: nothing else is to wait on it.
        connections.renew(generation);
        onSilence?.();
      }
      throw thrown;
    }
  }
}

/** The pages of a list belong to a version that is forgotten. */
class ExpiredPages extends KubeletError {
  constructor() {
    super("Api", "the rest of the list has expired");
  }
}

/** Reads the answer of a request that failed. */
async function failureOf(response: HttpResponse, what: string, deadline: Deadline): Promise<ApiError> {
  const failure = { status: response.status, retryAfter: response.header("retry-after"), what };
  let text: string;
  try {
    ({ text } = await readBody(response.body, objectLimit));
  } catch (thrown) {
    if (deadline.signal.aborted) throw deadline.signal.reason;
    return errorOf({ ...failure, text: `${what}: ${messageOf(thrown)}` });
  }
  try {
    return errorOf({ ...failure, body: JSON.parse(text) });
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return errorOf({ ...failure, text });
    throw thrown;
  }
}

function nameOf(object: KubeObject): ObjectName {
  const { name, namespace } = object.metadata ?? {};
  if (!name) throw new KubeletError("Internal", `a ${object.kind ?? "object"} without a name cannot be replaced`);
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

function named<T extends KubeObject>(resource: ResourceType<T>, object: T): T {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}
