import assert from "@assert";
import { FakeClock, turn } from "../../../base/fake_clock.ts";
import type { Lease, Node, Pod, Secret, ServiceAccount, TokenRequest } from "../../types.ts";
import { resources } from "../resources.ts";
import { ApiError, type KubeObject, type WatchEvent } from "../types.ts";
import { failures } from "./failures.ts";
import { FakeApi } from "./fake_api.ts";

const { signal } = new AbortController();
const name = { namespace: "default", name: "web" };

function podOf(more: Partial<Pod["spec"]> = {}, metadata: Pod["metadata"] = {}): Pod {
  return {
    metadata: { name: "web", namespace: "default", ...metadata },
    spec: { containers: [{ name: "c", image: "i" }], ...more },
  };
}

function setUp() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  return { clock, api, client: api.client() };
}

const failsWith = (status: number, reason: string) => (thrown: unknown) =>
  thrown instanceof ApiError && thrown.status === status && thrown.reason === reason;
const hasCode = (code: string) => (thrown: unknown) => (thrown as { code?: string }).code === code;

/** Watches in the background; the events so far are in `seen`. */
function watching(api: FakeApi, options: { resourceVersion: string; fieldSelector?: string; timeoutSeconds?: number }) {
  const seen: string[] = [];
  const control = new AbortController();
  const done = (async () => {
    const events: AsyncIterable<WatchEvent<Pod>> = api.client().watch(resources.pods, {
      signal: control.signal,
      ...options,
    });
    for await (const event of events) {
      seen.push(
        event.type === "BOOKMARK"
          ? `BOOKMARK ${event.resourceVersion}`
          : `${event.type} ${event.object.metadata?.name}`,
      );
    }
  })();
  const settled = done.then(() => "ended", (thrown: Error & { code?: string }) => thrown.code ?? thrown.message);
  return { seen, settled, stop: () => control.abort() };
}

Deno.test("an object gets a UID, a time and a version; its status is the server's", async () => {
  const { client, api } = setUp();
  const made = await client.create(resources.pods, { ...podOf(), status: { phase: "Running" } }, { signal });
  assert.match(made.metadata?.uid ?? "", /^[0-9a-f-]{36}$/);
  assert.equal(made.metadata?.creationTimestamp, "2026-01-01T00:00:00Z");
  assert.equal(made.metadata?.generation, 1);
  assert.equal(made.kind, "Pod");
  assert.equal(made.status?.phase, "Pending");
  assert.equal(made.spec?.terminationGracePeriodSeconds, 30, "defaults are set");
  await assert.rejects(client.create(resources.pods, podOf(), { signal }), failsWith(409, "AlreadyExists"));
  await assert.rejects(client.get(resources.pods, { ...name, name: "no" }, { signal }), {
    message: 'pods "no" not found',
  });
  assert.deepEqual(api.calls.map(({ verb, name }) => `${verb} ${name}`), ["create web", "create web", "get no"]);
});

Deno.test("what a client gets is its own: changing it changes nothing", async () => {
  const { client, api } = setUp();
  const made = await client.create(resources.pods, podOf(), { signal });
  made.metadata = {};
  assert.equal(api.get(resources.pods, name)?.metadata?.name, "web");
});

Deno.test("the status goes by its subresource, the spec does not; no change makes no version", async () => {
  const { client, api } = setUp();
  const made = await client.create(resources.pods, podOf(), { signal });
  const patch = (body: unknown, subresource?: string) =>
    client.patch(resources.pods, name, body, {
      type: "strategic-merge",
      signal,
      ...(subresource ? { subresource } : {}),
    });
  const running = await patch({ status: { phase: "Running" }, spec: { nodeName: "x" } }, "status");
  assert.equal(running.status?.phase, "Running");
  assert.equal(running.spec?.nodeName, undefined);
  assert.equal(running.metadata?.generation, 1);
  assert.notEqual(running.metadata?.resourceVersion, made.metadata?.resourceVersion);
  const same = await patch({ status: { phase: "Running" } }, "status");
  assert.equal(same.metadata?.resourceVersion, running.metadata?.resourceVersion);
  const spec = await patch({ spec: { activeDeadlineSeconds: 5 }, status: { phase: "Failed" } });
  assert.equal(spec.metadata?.generation, 2);
  assert.equal(api.get(resources.pods, name)?.status?.phase, "Running");
});

Deno.test("a stale version is a conflict, another UID in a patch is invalid; a lease needs its version", async () => {
  const { client } = setUp();
  const made = await client.create(resources.pods, podOf(), { signal });
  await client.patch(resources.pods, name, { metadata: { labels: { a: "b" } } }, { type: "merge", signal });
  await assert.rejects(client.replace(resources.pods, made, { signal }), failsWith(409, "Conflict"));
  await assert.rejects(
    client.patch(resources.pods, name, { metadata: { uid: "other" } }, {
      type: "strategic-merge",
      subresource: "status",
      signal,
    }),
    failsWith(422, "Invalid"),
  );
  const lease: Lease = { metadata: { name: "n", namespace: "kube-node-lease" }, spec: { holderIdentity: "n" } };
  const held = await client.create(resources.leases, lease, { signal });
  await assert.rejects(client.replace(resources.leases, lease, { signal }), failsWith(422, "Invalid"));
  await client.replace(resources.leases, { ...held, spec: { holderIdentity: "m" } }, { signal });
});

Deno.test("a pod on a node ends in its grace period, which later deletes may only shorten", async () => {
  const { client, api, clock } = setUp();
  api.put(resources.pods, podOf({ nodeName: "n" }));
  const { uid = "" } = api.get(resources.pods, name)?.metadata ?? {};
  await client.delete(resources.pods, name, { signal, uid });
  const times = () => {
    const { deletionTimestamp, deletionGracePeriodSeconds } = api.get(resources.pods, name)?.metadata ?? {};
    return [deletionTimestamp, deletionGracePeriodSeconds];
  };
  assert.deepEqual(times(), ["2026-01-01T00:00:30Z", 30]);
  await clock.advance(2000);
  await client.delete(resources.pods, name, { signal, gracePeriodSeconds: 60 });
  assert.deepEqual(times(), ["2026-01-01T00:00:30Z", 30]);
  await client.delete(resources.pods, name, { signal, gracePeriodSeconds: 5 });
  assert.deepEqual(times(), ["2026-01-01T00:00:05Z", 5]);
  await assert.rejects(
    client.delete(resources.pods, name, { signal, gracePeriodSeconds: 0, uid: "other" }),
    failsWith(409, "Conflict"),
  );
  await client.delete(resources.pods, name, { signal, gracePeriodSeconds: 0, uid });
  assert.equal(api.get(resources.pods, name), undefined);
});

Deno.test("a pod that no node has, or that has ended, goes at once; finalizers hold it", async () => {
  const { client, api } = setUp();
  api.create(resources.pods, podOf());
  await client.delete(resources.pods, name, { signal });
  assert.equal(api.get(resources.pods, name), undefined);

  api.put(resources.pods, podOf({ nodeName: "n" }, { finalizers: ["x/y"] }));
  await client.delete(resources.pods, name, { signal, gracePeriodSeconds: 0 });
  assert.equal(api.get(resources.pods, name)?.metadata?.deletionGracePeriodSeconds, 0);
  await client.patch(resources.pods, name, { metadata: { finalizers: null } }, { type: "merge", signal });
  assert.equal(api.get(resources.pods, name), undefined);
});

Deno.test("a watch tells what comes, changes and goes after a version, as its selector sees it", async () => {
  const { api, client } = setUp();
  const { resourceVersion } = await client.list(resources.pods, { signal });
  const watch = watching(api, { resourceVersion, fieldSelector: "spec.nodeName=n" });
  api.create(resources.pods, podOf());
  await turn();
  assert.deepEqual(watch.seen, [], "it is on no node yet");
  api.bind(name, "n");
  api.merge(resources.pods, name, { status: { phase: "Running" } });
  api.remove(resources.pods, name);
  await turn();
  assert.deepEqual(watch.seen, ["ADDED web", "MODIFIED web", "DELETED web"]);
  watch.stop();
  assert.equal(await watch.settled, "Aborted");
  assert.equal(api.watches, 0);
});

Deno.test("a quiet watch gets bookmarks, ends in time, and goes on after a version that is known", async () => {
  const { api, clock } = setUp();
  const watch = watching(api, { resourceVersion: "100", timeoutSeconds: 100 });
  await turn();
  api.create(resources.nodes, { metadata: { name: "n" } } as Node);
  await clock.advance(60_000);
  assert.deepEqual(watch.seen, ["BOOKMARK 101"]);
  await clock.advance(40_000);
  assert.equal(await watch.settled, "ended");
  api.create(resources.pods, podOf());
  const later = watching(api, { resourceVersion: "101" });
  await turn();
  assert.deepEqual(later.seen, ["ADDED web"]);
  api.compact();
  api.merge(resources.pods, name, { metadata: { labels: { a: "b" } } });
  await turn();
  assert.deepEqual(later.seen, ["ADDED web", "MODIFIED web"], "an open watch goes on");
  const stale = watching(api, { resourceVersion: "101" });
  assert.match(await stale.settled, /Api/);
  later.stop();
});

Deno.test("a server that refuses breaks watches; one that is cut off leaves them silent until the watchdog looks", async () => {
  const { api, client, clock } = setUp();
  const refused = watching(api, { resourceVersion: "100" });
  await turn();
  api.reach = "refused";
  assert.equal(await refused.settled, "Network");
  await assert.rejects(client.get(resources.pods, name, { signal }), hasCode("Network"));
  api.reach = "up";
  const silent = watching(api, { resourceVersion: "100", timeoutSeconds: 60 });
  await turn();
  api.reach = "silent";
  api.create(resources.pods, podOf());
  const call = assert.rejects(client.get(resources.pods, name, { signal, timeoutMs: 5000 }), hasCode("Timeout"));
  await clock.advance(5000);
  await call;
  await clock.advance(84_000);
  assert.deepEqual(silent.seen, []);
  await clock.advance(1000);
  assert.equal(await silent.settled, "Network");
});

Deno.test("faults hit the requests that they are meant for, as often as they are told", async () => {
  const { api, client, clock } = setUp();
  api.faults.add({ kind: "status", error: failures.internal("etcd") }, { verb: "create" }, 1);
  await assert.rejects(client.create(resources.pods, podOf(), { signal }), failsWith(500, "InternalError"));
  api.faults.add({ kind: "lost" }, { resource: "pods", verb: "create" }, 1);
  await assert.rejects(client.create(resources.pods, podOf(), { signal }), hasCode("Network"));
  assert(api.get(resources.pods, name), "it was carried out");
  api.faults.add({ kind: "status", error: failures.tooMany(1000) }, {}, 2);
  const slow = client.get(resources.pods, name, { signal });
  await clock.advance(2000);
  assert.equal((await slow).metadata?.name, "web", "a client waits as it was told");
  assert.equal(api.calls.filter(({ verb }) => verb === "get").length, 3);
  using _fault = api.faults.add({ kind: "hang" });
  const hung = assert.rejects(client.get(resources.pods, name, { signal }), hasCode("Timeout"));
  await clock.advance(30_000);
  await hung;
});

Deno.test("tokens are for accounts that are there, and pods that are meant", async () => {
  const { api, client } = setUp();
  const account = { namespace: "default", name: "sa" };
  const ask = (spec: Partial<TokenRequest["spec"]>) =>
    client.post<TokenRequest, TokenRequest>(
      resources.serviceAccounts,
      account,
      "token",
      { spec: { audiences: [], ...spec } },
      { signal },
    );
  await assert.rejects(ask({}), failsWith(404, "NotFound"));
  api.create<ServiceAccount>(resources.serviceAccounts, { metadata: account });
  const pod = api.create(resources.pods, podOf());
  const bound = { kind: "Pod", apiVersion: "v1", name: "web" };
  await assert.rejects(ask({ boundObjectRef: { ...bound, uid: "x" } }), failsWith(409, "Conflict"));
  await assert.rejects(ask({ expirationSeconds: 5 }), failsWith(422, "Invalid"));
  const { status } = await ask({ boundObjectRef: { ...bound, uid: pod.metadata?.uid ?? "" }, expirationSeconds: 600 });
  assert.equal(status?.expirationTimestamp, "2026-01-01T00:10:00Z");
  assert.equal(api.tokens[0]?.token, status?.token);
});

Deno.test("a node may read what its pods name, and nothing else", async () => {
  const { api } = setUp();
  const node = api.client("main", { node: "n" });
  const secret: KubeObject = { metadata: { namespace: "default", name: "s" } };
  api.create<Secret>(resources.secrets, secret as Secret);
  const read = () => node.get(resources.secrets, { namespace: "default", name: "s" }, { signal });
  await assert.rejects(read(), failsWith(403, "Forbidden"));
  api.put(resources.pods, podOf({ nodeName: "n", volumes: [{ name: "v", secret: { secretName: "s" } }] }));
  await read();
  await node.list(resources.secrets, { signal, namespace: "default", fieldSelector: "metadata.name=s" });
  await assert.rejects(node.list(resources.secrets, { signal, namespace: "default" }), failsWith(403, "Forbidden"));
  await assert.rejects(node.list(resources.pods, { signal }), failsWith(403, "Forbidden"));
  await node.list(resources.pods, { signal, fieldSelector: "spec.nodeName=n" });
  await assert.rejects(node.get(resources.nodes, { name: "m" }, { signal }), failsWith(403, "Forbidden"));
});

Deno.test("patches of JSON: merge and operations", async () => {
  const { api, client } = setUp();
  api.create(resources.pods, podOf());
  const json = (patch: unknown) => client.patch(resources.pods, name, patch, { type: "json", signal });
  await json([{ op: "add", path: "/metadata/labels", value: { "a/b": "1" } }]);
  await json([{ op: "test", path: "/metadata/labels/a~1b", value: "1" }, {
    op: "replace",
    path: "/metadata/labels/a~1b",
    value: "2",
  }]);
  assert.deepEqual(api.get(resources.pods, name)?.metadata?.labels, { "a/b": "2" });
  await assert.rejects(json([{ op: "remove", path: "/nothing/here" }]), failsWith(400, "BadRequest"));
});
