import assert from "@assert";
import { FakeClock, turn } from "../../base/fake_clock.ts";
import type { ConfigMap, Pod } from "../types.ts";
import { HttpApiClient, type HttpApiClientOptions } from "./client.ts";
import { RateLimiter } from "./rate_limiter.ts";
import { resources } from "./resources.ts";
import type { HttpRequest, HttpResponse } from "./transport.ts";
import { ApiError } from "./types.ts";

const { signal } = new AbortController();
const name = { namespace: "ns", name: "web" };

interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | object;
  /** The body in pieces, in place of `body`. */
  readonly stream?: AsyncIterable<Uint8Array>;
  /** Never answered. */
  readonly hangs?: boolean;
}

/** A client whose requests are kept and answered one after another. */
function setUp(answers: Answer[], more: Partial<HttpApiClientOptions> = {}) {
  const clock = new FakeClock();
  const requests: HttpRequest[] = [];
  const renewals: (number | undefined)[] = [];
  const client = new HttpApiClient({
    server: "https://api:6443/base",
    clock,
    userAgent: "kubelet/test",
    timeoutMs: 10_000,
    connections: {
      generation: 7,
      renew: (unless) => void renewals.push(unless),
      async send(request): Promise<HttpResponse> {
        requests.push(request);
        const answer = answers.shift() ?? { status: 599 };
        if (answer.hangs) {
          await new Promise((_, reject) =>
            request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true })
          );
        }
        const { status = 200, headers = { "content-type": "application/json" }, body = named(request) } = answer;
        return {
          status,
          header: (key) => headers[key],
          body: answer.stream ?? chunks(typeof body === "string" ? body : JSON.stringify(body)),
        };
      },
    },
    ...more,
  });
  return { client, clock, requests, renewals };
}

/** An object of the name that a request asks for. */
function named({ url, body }: HttpRequest): object {
  const parts = new URL(url).pathname.split("/");
  const sent = (JSON.parse(body ?? "{}") as { metadata?: { name?: string } }).metadata?.name;
  const name = sent ?? parts[parts.findIndex((part) => /^(pods|nodes|leases|secrets|configmaps)$/.test(part)) + 1];
  return { metadata: { name } };
}

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(new TextEncoder().encode(text));
}

const status = (code: number, reason: string, more: object = {}) => ({
  status: code,
  body: { kind: "Status", status: "Failure", code, reason, message: `said ${reason}`, ...more },
});
const fails = (code: number, reason: string) => (thrown: unknown) =>
  thrown instanceof ApiError && thrown.status === code && thrown.reason === reason;
const listOf = (kind: string, more: object = {}): Answer => ({ body: { kind: `${kind}List`, items: [], ...more } });
const hasCode = (code: string) => (thrown: unknown) => (thrown as { code?: string }).code === code;

Deno.test("requests as the API has them: methods, paths, types, bodies", async () => {
  const { client, requests } = setUp([
    ...Array.from({ length: 4 }, () => ({})),
    { body: { kind: "Pod" } },
    {},
    listOf("Lease"),
    listOf("Pod"),
  ]);
  await client.get(resources.pods, name, { signal, resourceVersion: "0" });
  await client.create(resources.pods, { metadata: name } as Pod, { signal });
  await client.replace(resources.nodes, { metadata: { name: "n" } }, { signal, subresource: "status" });
  await client.patch(resources.pods, name, { a: 1 }, { signal, type: "strategic-merge", subresource: "status" });
  await client.delete(resources.pods, name, { signal, gracePeriodSeconds: 0, uid: "u" });
  await client.post(resources.serviceAccounts, name, "token", { spec: {} }, { signal });
  await client.list(resources.leases, { signal, namespace: "kube-node-lease" });
  await client.list(resources.pods, { signal, fieldSelector: "spec.nodeName=n" });
  const at = "https://api:6443/base/api/v1";
  assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`), [
    `GET ${at}/namespaces/ns/pods/web?resourceVersion=0`,
    `POST ${at}/namespaces/ns/pods`,
    `PUT ${at}/nodes/n/status`,
    `PATCH ${at}/namespaces/ns/pods/web/status`,
    `DELETE ${at}/namespaces/ns/pods/web`,
    `POST ${at}/namespaces/ns/serviceaccounts/web/token`,
    "GET https://api:6443/base/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=500",
    `GET ${at}/pods?fieldSelector=spec.nodeName%3Dn&limit=500`,
  ]);
  assert.equal(requests[3]?.headers["content-type"], "application/strategic-merge-patch+json");
  assert.deepEqual(JSON.parse(requests[1]?.body ?? ""), { metadata: name, apiVersion: "v1", kind: "Pod" });
  assert.deepEqual(JSON.parse(requests[4]?.body ?? ""), {
    apiVersion: "v1",
    kind: "DeleteOptions",
    gracePeriodSeconds: 0,
    preconditions: { uid: "u" },
  });
  assert(requests.every(({ headers }) => headers["user-agent"] === "kubelet/test"));
});

Deno.test("names that would lead elsewhere are refused before anything is sent", async () => {
  const { client, requests } = setUp([]);
  for (const bad of ["..", "a/b", "a%2fb", ""]) {
    await assert.rejects(client.get(resources.nodes, { name: bad }, { signal }), hasCode("Internal"));
  }
  await assert.rejects(client.get(resources.pods, { name: "web" }, { signal }), /without one/);
  assert.equal(requests.length, 0);
});

Deno.test("failures: what a Status says, and what a code means without one", async () => {
  const plain = { "content-type": "text/plain" };
  const cases: [Answer, number, string][] = [
    [status(409, "AlreadyExists"), 409, "AlreadyExists"],
    [status(403, "Forbidden"), 403, "Forbidden"],
    [{ status: 401, body: "Unauthorized", headers: plain }, 401, "Unauthorized"],
    [{ status: 502, body: "<html>", headers: plain }, 502, "InternalError"],
    [{ status: 404, body: "404 page not found", headers: plain }, 404, "Unknown"],
  ];
  for (const [answer, code, reason] of cases) {
    const { client } = setUp([answer]);
    await assert.rejects(client.get(resources.pods, name, { signal }), fails(code, reason));
  }
  const patient = setUp([status(500, "InternalError", { details: { retryAfterSeconds: 1e12 } })]);
  await assert.rejects(patient.client.get(resources.pods, name, { signal }), { retryAfterMs: 300_000 });
  const { client } = setUp([status(500, "InternalError", { details: { retryAfterSeconds: 3 } })]);
  const error = await client.get(resources.pods, name, { signal }).then(() => undefined, (thrown: ApiError) => thrown);
  assert.equal(error?.retryAfterMs, 3000);
});

Deno.test("answers that are nonsense are errors of the network, with the beginning of what came", async () => {
  const html = { "content-type": "text/html" };
  for (
    const answer of [
      { body: "<html>login</html>", headers: html },
      { body: "{" },
      { body: "[]" },
      { body: "null" },
      { headers: {} },
    ]
  ) {
    const { client } = setUp([answer]);
    await assert.rejects(client.get(resources.pods, name, { signal }), hasCode("Network"));
  }
});

Deno.test("a server that asks for time gets it, if the call has it", async () => {
  const busy = { status: 429, headers: { "retry-after": "4" }, body: "busy" };
  const { client, clock, requests } = setUp([busy, busy, { body: { metadata: name, data: { a: "b" } } }]);
  const call = client.get<ConfigMap>(resources.configMaps, name, { signal });
  await clock.advance(4000);
  await clock.advance(4000);
  assert.equal((await call).data?.a, "b");
  assert.equal(requests.length, 3);
  const short = setUp([busy]);
  await assert.rejects(
    short.client.get(resources.configMaps, name, { signal, timeoutMs: 3000 }),
    fails(429, "TooManyRequests"),
  );
});

Deno.test("a call without an answer is over in its time, and its connections are given up", async () => {
  let silent = 0;
  const { client, clock, renewals } = setUp([{ hangs: true }], { onSilence: () => silent++ });
  const call = assert.rejects(client.get(resources.pods, name, { signal }), /GET .*pods\/web: no answer within 10 s/);
  await clock.advance(10_000);
  await call;
  assert.deepEqual(renewals, [7]);
  assert.equal(silent, 1);
  assert.equal(clock.pending, 0);
});

Deno.test("a call that is called off says so, and leaves the connections", async () => {
  const control = new AbortController();
  const { client, renewals, clock } = setUp([{ hangs: true }]);
  const call = assert.rejects(client.get(resources.pods, name, { signal: control.signal }), hasCode("Aborted"));
  await turn();
  control.abort();
  await call;
  assert.deepEqual(renewals, []);
  assert.equal(clock.pending, 0);
});

Deno.test("pages make one list; members say what they are; pages that expire are read anew as one", async () => {
  const page = (names: string[], next?: string) => ({
    body: {
      kind: "ConfigMapList",
      items: names.map((one) => ({ metadata: { name: one } })),
      metadata: { resourceVersion: "5", ...(next ? { continue: next } : {}) },
    },
  });
  const { client, requests } = setUp([page(["a"], "x"), page(["b"])]);
  const list = await client.list(resources.configMaps, { signal, resourceVersion: "0" });
  assert.deepEqual(list, {
    items: ["a", "b"].map((one) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: one } })),
    resourceVersion: "5",
  });
  assert.match(requests[0]?.url ?? "", /\?limit=500&resourceVersion=0$/);
  assert.match(requests[1]?.url ?? "", /\?limit=500&continue=x$/);

  const expired = setUp([page(["a"], "x"), status(410, "Expired"), page(["a", "b"])]);
  assert.equal((await expired.client.list(resources.configMaps, { signal })).items.length, 2);
  assert.doesNotMatch(expired.requests[2]?.url ?? "", /limit/);
  const first = setUp([status(410, "Expired")]);
  await assert.rejects(first.client.list(resources.configMaps, { signal }), fails(410, "Expired"));
  const empty = setUp([listOf("ConfigMap", { items: null, metadata: {} })]);
  assert.deepEqual((await empty.client.list(resources.configMaps, { signal })).items, []);
});

const strangeLists: [name: string, answers: Answer[], error: (thrown: unknown) => boolean][] = [
  ["a failure behind a code of success", [{ ...status(403, "Forbidden"), status: 200 }], fails(403, "Forbidden")],
  ["an empty object", [{}], hasCode("Network")],
  ["a list of another kind", [listOf("Secret", { items: [] })], hasCode("Network")],
  ["an object in place of a list", [{ body: { kind: "Pod", metadata: { name: "a" } } }], hasCode("Network")],
  ["items that are none", [listOf("Pod", { items: {} })], hasCode("Network")],
  ["no items at all", [{ body: { kind: "PodList", metadata: { resourceVersion: "5" } } }], hasCode("Network")],
  ["a list of another version", [listOf("Pod", { apiVersion: "v9" })], hasCode("Network")],
  ["a version that is no text", [listOf("Pod", { metadata: { resourceVersion: 7 } })], hasCode("Network")],
  ["another page that is no text", [listOf("Pod", { metadata: { continue: {} } })], hasCode("Network")],
  ["metadata that is none", [listOf("Pod", { metadata: "x" })], hasCode("Network")],
  [
    "a member of another shape",
    [listOf("Pod", { items: [{ metadata: { name: "a" }, spec: { containers: {} } }] })],
    (thrown) => thrown instanceof Error && /item a of the list is no Pod: spec.containers/.test(thrown.message),
  ],
  ...[null, 7, "x", [], {}, { metadata: null }, { metadata: { name: 5 } }, { metadata: { name: "" } }].map((
    item,
  ): typeof strangeLists[number] => [
    `an item ${JSON.stringify(item)}`,
    [listOf("Pod", { items: [{ metadata: { name: "a" } }, item] })],
    hasCode("Network"),
  ]),
  [
    "a member that is nested without measure",
    [{ body: `{"kind":"PodList","items":[{"metadata":{"name":"a"},"spec":${"[".repeat(1e5)}${"]".repeat(1e5)}}]}` }],
    hasCode("Network"),
  ],
  [
    "pages without end",
    Array.from({ length: 2001 }, () => listOf("Pod", { items: [], metadata: { continue: "x" } })),
    (thrown) => thrown instanceof Error && /more than 2000 pages/.test(thrown.message),
  ],
];
for (const [what, answers, error] of strangeLists) {
  // Each of them taken for a list without members would end all pods of the node.
  Deno.test(`what is no list is an error, never an empty list: ${what}`, async () => {
    const { client } = setUp(answers);
    await assert.rejects(client.list(resources.pods, { signal }), error);
  });
}

Deno.test("an answer of another kind, or a failure behind a code of success, is no object", async () => {
  const { client } = setUp([{ body: { kind: "Secret" } }, { ...status(404, "NotFound"), status: 200 }]);
  await assert.rejects(client.get(resources.pods, name, { signal }), /is no Pod, but of kind "Secret"/);
  await assert.rejects(client.get(resources.pods, name, { signal }), fails(404, "NotFound"));
});

Deno.test("a deletion is done when the object or a Status answers it, and not by anything else", async () => {
  const { client } = setUp([{ body: { kind: "Status", status: "Success" } }, { body: { kind: "Pod" } }, { body: {} }]);
  await client.delete(resources.pods, name, { signal });
  await client.delete(resources.pods, name, { signal });
  await assert.rejects(client.delete(resources.pods, name, { signal }), /neither Pod nor Status/);
});

Deno.test("an object of another name, version or shape is not the one that was asked for; a review needs no name", async () => {
  const strange = [
    [{}, /has not the name that was asked for, but none/],
    [{ metadata: { name: "other" } }, /but "other"/],
    [{ apiVersion: "v9", kind: "Pod", metadata: { name: "web" } }, /of kind "Pod" of "v9"/],
    [{ metadata: { name: "web" }, status: { phase: 7 } }, /is no Pod: status.phase: want a text, got 7/],
    [{ metadata: "x" }, /is no Pod: metadata: want an object/],
  ] as const;
  for (const [body, why] of strange) {
    const { client } = setUp([{ body }]);
    await assert.rejects(client.get(resources.pods, name, { signal }), why);
  }
  const { client } = setUp([{ body: { metadata: { creationTimestamp: null }, status: { authenticated: true } } }]);
  const review = await client.create(resources.tokenReviews, { spec: { token: "t" } }, { signal });
  assert.deepEqual(review, { metadata: {}, status: { authenticated: true } });
});

Deno.test("what is posted is answered by the same kind, in its shape, or by word that it was done", async () => {
  const kind = "TokenRequest";
  const post = (body: object) =>
    setUp([{ body }]).client.post(resources.serviceAccounts, name, "token", { kind, spec: {} }, { signal });
  const status = { token: "t", expirationTimestamp: "2026-01-01T00:00:00Z" };
  assert.deepEqual(await post({ kind, status }), { kind, status });
  await post({ kind: "Status", status: "Success" });
  await assert.rejects(post({ kind: "Pod" }), /the answer is no TokenRequest, but of kind "Pod"/);
  await assert.rejects(post({ kind, status: { ...status, token: 7 } }), /status.token: want a text, got 7/);
});

/** What a watch tells, and how it ends. */
async function watched(body: AsyncIterable<Uint8Array>): Promise<{ seen: string[]; end: string }> {
  const { client } = setUp([{ stream: body }]);
  const seen: string[] = [];
  try {
    for await (const event of client.watch(resources.pods, { signal, resourceVersion: "1" })) {
      seen.push(
        event.type === "BOOKMARK" ? `at ${event.resourceVersion}` : `${event.type} ${event.object.metadata?.name}`,
      );
    }
    return { seen, end: "ended" };
  } catch (thrown) {
    const { code, reason } = thrown as { code: string; reason?: string };
    return { seen, end: reason ?? code };
  }
}

const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const added = line("ADDED", { metadata: { name: "ä" } });

Deno.test("a watch: lines in whatever pieces they come, bookmarks, its end", async () => {
  const bytes = new TextEncoder().encode(added + line("BOOKMARK", { metadata: { resourceVersion: "9" } }));
  async function* single(): AsyncGenerator<Uint8Array> {
    for (const byte of bytes) yield await Promise.resolve(Uint8Array.of(byte));
  }
  assert.deepEqual(await watched(single()), { seen: ["ADDED ä", "at 9"], end: "ended" });
});

const broken: [name: string, texts: string[], end: string][] = [
  ["within a line", [added, '{"type":"ADD'], "Network"],
  ["an error of the server", [added, line("ERROR", { kind: "Status", code: 410, reason: "Expired" })], "Expired"],
  ["what is no JSON", [added, "hello\n"], "Network"],
  ["what is nested without measure", [
    added,
    `{"type":"ADDED","object":{"metadata":{"name":"a"},"x":${"[".repeat(1e5)}${"]".repeat(1e5)}}}\n`,
  ], "Network"],
  ["what is no event", [added, line("STRANGE", {})], "Network"],
  ["an event about another kind", [added, line("DELETED", { kind: "Node", metadata: { name: "ä" } })], "Network"],
  ["an event about an object without a name", [added, line("ADDED", { kind: "Pod" })], "Network"],
  ["an event about another version", [
    added,
    line("ADDED", { apiVersion: "v9", kind: "Pod", metadata: { name: "ä" } }),
  ], "Network"],
  ["an event about an object of another shape", [
    added,
    line("MODIFIED", { metadata: { name: "ä", deletionTimestamp: 5 } }),
  ], "Network"],
  ["a version that is no text", [added, line("MODIFIED", { metadata: { name: "ä", resourceVersion: 5 } })], "Network"],
  ["an event about null", [added, '{"type":"DELETED","object":null}\n'], "Network"],
  ["an event without an object", [added, '{"type":"ADDED"}\n'], "Network"],
  ["a line without end", [added, ...Array.from({ length: 17 }, () => "x".repeat(2 ** 20))], "Network"],
];
for (const [what, texts, end] of broken) {
  Deno.test(`a watch that breaks: ${what}`, async () => {
    assert.deepEqual(await watched(chunks(...texts)), { seen: ["ADDED ä"], end });
  });
}

Deno.test("a watch that outlasts its time is broken off, and its connections are given up", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode(added);
    await new Promise((_, reject) =>
      requests[0]?.signal.addEventListener("abort", () => reject(requests[0]?.signal.reason), { once: true })
    );
  }
  const { client, clock, renewals, requests } = setUp([{ stream: endless() }]);
  const watch = client.watch(resources.pods, { signal, resourceVersion: "1", timeoutSeconds: 60 });
  assert.equal((await watch.next()).value?.type, "ADDED");
  const end = assert.rejects(watch.next(), /not ended by the server within 90 s/);
  await clock.advance(89_999);
  assert.deepEqual(renewals, []);
  await clock.advance(1);
  await end;
  assert.deepEqual(renewals, [7]);
  assert.match(requests[0]?.url ?? "", /watch=true&allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=60$/);
  assert.equal(requests[0]?.lasting, true);
});

Deno.test("the limit of rate holds calls up, never watches; waiting counts as time of the call", async () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const { client } = setUp([{}, {}, { stream: chunks() }, {}], {
    clock,
    limiter: new RateLimiter({ clock, qps: 1, burst: 1 }),
    observer: {
      request: ({ verb, host, code }) => told.push(`${verb} ${host} ${code}`),
      waited: ({ seconds }) => told.push(`waited ${seconds}`),
      received: ({ bytes }) => told.push(`received ${bytes}`),
    },
  });
  await client.get(resources.pods, name, { signal });
  const second = client.get(resources.pods, name, { signal });
  await clock.advance(1000);
  await second;
  for await (const _ of client.watch(resources.pods, { signal, resourceVersion: "1" })) { /* none */ }
  assert.deepEqual(told, [
    "waited 0",
    "GET api:6443 200",
    "received 27",
    "waited 1",
    "GET api:6443 200",
    "received 27",
    "GET api:6443 200",
  ]);
  const late = assert.rejects(client.get(resources.pods, name, { signal, timeoutMs: 500 }), hasCode("Timeout"));
  await clock.advance(500);
  await late;
});

Deno.test("an object may have 16 MiB, more of it is not read; a list may be longer", async () => {
  let read = 0;
  async function* long(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode('{"kind":"PodList","items":null,"x":"');
    for (read = 0; read < 20; read++) yield await Promise.resolve(new Uint8Array(2 ** 20).fill(97));
    yield new TextEncoder().encode('"}');
  }
  const { client } = setUp([{ stream: long() }, { stream: long() }]);
  await assert.rejects(
    client.get(resources.pods, name, { signal }),
    /pods\/web: the answer is longer than 16777216 bytes/,
  );
  assert.equal(read, 15);
  assert.deepEqual((await client.list(resources.pods, { signal })).items, []);
});
