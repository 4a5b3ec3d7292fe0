import type { Clock } from "../../../base/clock.ts";
import { KubeletError } from "../../../base/errors.ts";
import { apiVersionOf, resources } from "../resources.ts";
import type { HttpRequest, HttpResponse, Transport } from "../transport.ts";
import { ApiError, type KubeObject, type PatchType, type ResourceType, type WatchEvent } from "../types.ts";
import { FakeClient } from "./client.ts";
import { failures } from "./failures.ts";
import type { FakeApi } from "./fake_api.ts";

/** What an answer is to hold. */
export type AnswerShape = "object" | "list" | "event";

/** Gives what is sent in the place of an answer or of a line of a watch; undefined leaves it as it is. */
export type Tamper = (answer: unknown, shape: AnswerShape, resource: ResourceType) => string | undefined;

const patchTypes: Readonly<Record<string, PatchType>> = {
  "application/strategic-merge-patch+json": "strategic-merge",
  "application/merge-patch+json": "merge",
  "application/json-patch+json": "json",
  "application/apply-patch+yaml": "apply",
};

/** What a URL asks for. */
interface Target {
  readonly resource: ResourceType;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

/** The server in memory at the other end of a wire: requests and answers are HTTP and JSON, as the real one's. */
export class FakeTransport implements Transport {
  readonly #api: FakeApi;
  readonly #client: FakeClient;
  readonly #lasting = new Set<AbortController>();
  #retired = false;

  constructor(options: { api: FakeApi; clock: Clock; name: string; node?: string }) {
    this.#api = options.api;
    // The time that a caller has ends by the request's signal.
    this.#client = new FakeClient({ ...options, timeoutMs: Infinity, retries: false });
  }

  retire(): void {
    this.#retired = true;
    for (const control of [...this.#lasting]) {
      control.abort(new KubeletError("Network", "the connection was given up for a new one"));
    }
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    if (this.#retired) throw new KubeletError("Network", "the connections were given up");
    const control = new AbortController();
    const onAbort = () => control.abort(request.signal.reason);
    if (request.signal.aborted) onAbort();
    else request.signal.addEventListener("abort", onAbort, { once: true });
    if (request.lasting) this.#lasting.add(control);
    const done = () => {
      request.signal.removeEventListener("abort", onAbort);
      this.#lasting.delete(control);
    };
    let lasts = false;
    try {
      const { knows } = this.#api;
      if (this.#api.reach === "up" && knows?.(request.headers.authorization) === false) throw failures.unauthorized();
      const url = new URL(request.url);
      const target = targetOf(url.pathname);
      if (!target) return answer(404, "404 page not found", "text/plain");
      if (request.method === "GET" && url.searchParams.get("watch") === "true") {
        const events = await this.#client.open(target.resource, {
          ...selection(target, url.searchParams),
          resourceVersion: url.searchParams.get("resourceVersion") ?? "0",
          timeoutSeconds: Number(url.searchParams.get("timeoutSeconds") ?? "1800"),
          signal: control.signal,
        });
        lasts = true;
        return { ...answer(200, ""), body: this.#lines(events, target.resource, control.signal, done) };
      }
      const value = await this.#act(request, target, url.searchParams, control.signal);
      const shape = request.method === "GET" && target.name === undefined ? "list" : "object";
      return answer(200, this.#api.tamper?.(value, shape, target.resource) ?? JSON.stringify(value));
    } catch (thrown) {
      control.signal.throwIfAborted();
      if (!(thrown instanceof ApiError)) throw thrown;
      const seconds = thrown.retryAfterMs === undefined ? undefined : String(Math.ceil(thrown.retryAfterMs / 1000));
      return answer(thrown.status, JSON.stringify(statusObject(thrown)), "application/json", seconds);
    } finally {
      if (!lasts) done();
    }
  }

  async #act(request: HttpRequest, target: Target, query: URLSearchParams, signal: AbortSignal): Promise<unknown> {
    const { resource, name, namespace, subresource } = target;
    const object = request.body === undefined ? undefined : JSON.parse(request.body);
    const below = subresource === undefined ? {} : { subresource };
    if (name === undefined) {
      if (request.method === "POST") return await this.#client.create(resource, object, { signal });
      return await this.#list(target, query, signal);
    }
    const whole = { name, ...(namespace === undefined ? {} : { namespace }) };
    switch (request.method) {
      case "GET":
        return await this.#client.get(resource, whole, { signal });
      case "PUT":
        return await this.#client.replace(resource, object, { ...below, signal });
      case "PATCH": {
        const type = patchTypes[request.headers["content-type"] ?? ""];
        if (!type) throw new ApiError("unknown patch", { status: 415, reason: "UnsupportedMediaType" });
        return await this.#client.patch(resource, whole, object, { type, ...below, signal });
      }
      case "DELETE": {
        const { gracePeriodSeconds, preconditions = {} } = object ?? {};
        const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
        await this.#client.delete(resource, whole, { ...grace, ...preconditions, signal });
        return { kind: "Status", apiVersion: "v1", status: "Success" };
      }
      case "POST":
        return await this.#client.post(resource, whole, subresource ?? "", object, { signal });
      default:
        throw new ApiError("no such method", { status: 405, reason: "MethodNotAllowed" });
    }
  }

  /** A list, in pages when there are many; the pages after the first one are of its version as long as that is known. */
  async #list(target: Target, query: URLSearchParams, signal: AbortSignal): Promise<unknown> {
    const { resource } = target;
    const { items, resourceVersion } = await this.#client.list(resource, { ...selection(target, query), signal });
    const size = Math.min(Number(query.get("limit") ?? "Infinity"), this.#api.pageSize);
    const [version = resourceVersion, last] = query.get("continue")?.split(/ (.*)/) ?? [];
    if (last !== undefined && !/^\d+$/.test(version)) throw failures.badRequest("continue key is not valid");
    if (last !== undefined) this.#api.server.store.since(resource, Number(version));
    const rest = last === undefined ? items : items.filter((one) => keyOf(one) > last);
    const page = rest.slice(0, size);
    const more = rest.length > page.length ? { continue: `${version} ${keyOf(page[page.length - 1])}` } : {};
    return {
      kind: `${resource.kind}List`,
      apiVersion: apiVersionOf(resource),
      metadata: { resourceVersion: version, ...more },
      items: page.map(({ kind: _, apiVersion: __, ...item }) => item),
    };
  }

  async *#lines(
    events: AsyncGenerator<WatchEvent<KubeObject>>,
    resource: ResourceType,
    signal: AbortSignal,
    done: () => void,
  ): AsyncGenerator<Uint8Array> {
    const bytes = (event: unknown) =>
      new TextEncoder().encode(this.#api.tamper?.(event, "event", resource) ?? `${JSON.stringify(event)}\n`);
    try {
      for await (const event of events) {
        yield bytes(event.type === "BOOKMARK" ? bookmark(resource, event.resourceVersion) : event);
      }
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof ApiError)) throw thrown;
      yield bytes({ type: "ERROR", object: statusObject(thrown) });
    } finally {
      done();
    }
  }
}

function bookmark(resource: ResourceType, resourceVersion: string): unknown {
  const object = { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata: { resourceVersion } };
  return { type: "BOOKMARK", object };
}

function statusObject({ message, status, reason, retryAfterMs }: ApiError): unknown {
  const details = retryAfterMs === undefined ? {} : { details: { retryAfterSeconds: Math.ceil(retryAfterMs / 1000) } };
  return { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code: status, ...details };
}

function answer(status: number, text: string, type = "application/json", retryAfter?: string): HttpResponse {
  const headers: Readonly<Record<string, string | undefined>> = { "content-type": type, "retry-after": retryAfter };
  return { status, header: (name) => headers[name.toLowerCase()], body: once(new TextEncoder().encode(text)) };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

/** In the order in which a store lists. */
function keyOf(object: KubeObject | undefined): string {
  return `${object?.metadata?.namespace ?? ""}/${object?.metadata?.name ?? ""}`;
}

function selection({ namespace }: Target, query: URLSearchParams) {
  const fieldSelector = query.get("fieldSelector"), labelSelector = query.get("labelSelector");
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(fieldSelector === null ? {} : { fieldSelector }),
    ...(labelSelector === null ? {} : { labelSelector }),
  };
}

function targetOf(path: string): Target | undefined {
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const root = parts.shift();
  const group = root === "apis" ? parts.shift() ?? "" : "";
  const version = parts.shift();
  const namespace = parts[0] === "namespaces" && parts.length > 2 ? parts.splice(0, 2)[1] : undefined;
  const [plural, name, subresource] = parts;
  const resource = (Object.values(resources) as ResourceType[]).find((one) =>
    one.group === group && one.version === version && one.plural === plural
  );
  return resource && {
    resource,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}
