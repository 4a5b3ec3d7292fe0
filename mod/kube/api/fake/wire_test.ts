import assert from "@assert";
import { FakeClock } from "../../../base/fake_clock.ts";
import { HttpApiClient } from "../client.ts";
import { resources } from "../resources.ts";
import { FakeApi } from "./fake_api.ts";

const { signal } = new AbortController();
const at = (name: string) => ({ name, namespace: "ns" });

function setUp() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const transport = api.transport();
  const client = new HttpApiClient({
    server: "https://api.test",
    connections: {
      generation: 0,
      renew: () => {},
      send: (request) => transport.send({ ...request, headers: { ...request.headers, authorization: "Bearer t" } }),
    },
    clock,
    userAgent: "kubelet/test",
    timeoutMs: 30_000,
  });
  return { clock, api, client, transport };
}

Deno.test("wire: objects are made, read, changed and deleted over HTTP as by the client in memory", async () => {
  const { api, client } = setUp();
  const made = await client.create(resources.configMaps, { metadata: at("m"), data: { a: "1" } }, { signal });
  assert.deepEqual(await client.get(resources.configMaps, at("m"), { signal }), made);
  await client.replace(resources.configMaps, { ...made, data: { a: "2" } }, { signal });
  const patched = await client.patch(resources.configMaps, at("m"), { data: { b: "3" } }, { signal, type: "merge" });
  assert.deepEqual(patched.data, { a: "2", b: "3" });
  await client.delete(resources.configMaps, at("m"), { signal });
  assert.deepEqual(api.calls.map((c) => c.verb), ["create", "get", "update", "patch", "delete"]);
  await assert.rejects(client.get(resources.configMaps, at("m"), { signal }), { status: 404, reason: "NotFound" });
});

Deno.test("wire: a list in pages is one list; one whose version is forgotten is read anew", async () => {
  const { api, client } = setUp();
  for (const name of ["a", "b", "c", "d", "e"]) api.create(resources.configMaps, { metadata: at(name) });
  api.pageSize = 2;
  const names = async () => (await client.list(resources.configMaps, { signal })).items.map((m) => m.metadata?.name);
  assert.deepEqual(await names(), ["a", "b", "c", "d", "e"]);
  assert.equal(api.calls.length, 3);
});

Deno.test("wire: a watch tells changes, bookmarks and its error", async () => {
  const { api, client, clock } = setUp();
  const first = api.create(resources.configMaps, { metadata: at("a") });
  const resourceVersion = first.metadata?.resourceVersion ?? "";
  const told: string[] = [];
  const follow = async () => {
    for await (const event of client.watch(resources.configMaps, { signal, resourceVersion, timeoutSeconds: 100 })) {
      told.push(event.type === "BOOKMARK" ? event.type : `${event.type} ${event.object.metadata?.name}`);
    }
  };
  const watch = follow();
  await clock.advance(10);
  api.create(resources.configMaps, { metadata: at("b") });
  api.remove(resources.configMaps, at("a"));
  await clock.advance(101_000);
  await watch;
  assert.deepEqual(told, ["ADDED b", "DELETED a", "BOOKMARK"]);
  api.compact();
  await assert.rejects(follow(), { status: 410, reason: "Expired" });
  const strange = client.watch(resources.configMaps, { signal, resourceVersion: "abc" });
  await assert.rejects(strange[Symbol.asyncIterator]().next(), { status: 400 });
  const future = client.watch(resources.configMaps, { signal, resourceVersion: "99999" });
  await assert.rejects(future[Symbol.asyncIterator]().next(), { status: 504, message: /Too large resource version/ });
});

Deno.test("wire: who is not known is told so; what is tampered with arrives so; what is given up breaks", async () => {
  const { api, client, clock, transport } = setUp();
  api.knows = (authorization) => authorization === "Bearer other";
  await assert.rejects(client.list(resources.pods, { signal }), { status: 401, reason: "Unauthorized" });
  api.knows = undefined;
  const shapes: string[] = [];
  api.tamper = (_, shape) => {
    shapes.push(shape);
    return "7";
  };
  await assert.rejects(client.list(resources.pods, { signal }), { code: "Network" });
  await assert.rejects(
    client.create(resources.configMaps, { metadata: at("m") }, { signal }),
    { code: "Network" },
  );
  assert.deepEqual(shapes, ["list", "object"]);
  const watch = client.watch(resources.pods, { signal, resourceVersion: "100" })[Symbol.asyncIterator]().next();
  const broken = assert.rejects(watch, { code: "Network" });
  await clock.advance(10);
  transport.retire();
  await broken;
  await assert.rejects(client.list(resources.pods, { signal }), { code: "Network" });
});
