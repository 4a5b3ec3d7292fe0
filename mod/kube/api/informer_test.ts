import assert from "@assert";
import { FakeClock, turn } from "../../base/fake_clock.ts";
import { RecordingLogger } from "../../base/log.ts";
import type { Pod } from "../types.ts";
import { failures } from "./fake/failures.ts";
import { FakeApi } from "./fake/fake_api.ts";
import { createInformer, type InformerOptions } from "./informer.ts";
import { resources } from "./resources.ts";
import { RetryDelays } from "./retry_delays.ts";
import { ApiError } from "./types.ts";

const podOf = (name: string): Pod => ({
  metadata: { name, namespace: "default", managedFields: [{}] },
  spec: { containers: [{ name: "c", image: "i" }], nodeName: "n" },
});
const named = (name: string) => ({ name, namespace: "default" });

function setUp(more: Partial<InformerOptions<Pod>> = {}) {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const told: string[] = [];
  const log = new RecordingLogger();
  const informer = createInformer<Pod>({
    client: api.client("main", { node: "n" }),
    resource: resources.pods,
    fieldSelector: "spec.nodeName=n",
    clock,
    random: () => 0,
    log,
    onChange: ({ type, object }) => told.push(`${type} ${object.metadata?.name}`),
    onList: () => told.push("list"),
    ...more,
  });
  const control = new AbortController();
  const run = () => {
    const ended = informer.run(control.signal).catch((thrown: { code?: string }) => thrown.code);
    return async () => {
      control.abort();
      assert.equal(await ended, "Aborted");
    };
  };
  const lists = () => api.calls.filter(({ verb }) => verb === "list").length;
  return { clock, api, told, log, informer, run, lists, signal: control.signal };
}

Deno.test("lists, then follows; what is kept has no managed fields", async () => {
  const { api, told, informer, run, signal, lists } = setUp();
  api.create(resources.pods, podOf("a"));
  assert.equal(informer.synced, false);
  const stop = run();
  await informer.whenSynced(signal);
  assert.equal(informer.get(named("a"))?.metadata?.managedFields, undefined);
  api.create(resources.pods, podOf("b"));
  api.merge(resources.pods, named("a"), { metadata: { labels: { x: "y" } } });
  api.remove(resources.pods, named("b"));
  await turn();
  assert.deepEqual(told, ["added a", "list", "added b", "updated a", "deleted b"]);
  assert.deepEqual(informer.all().map(({ metadata }) => metadata?.labels), [{ x: "y" }]);
  assert.equal(lists(), 1);
  await stop();
  assert.equal(api.watches, 0);
});

Deno.test("a server that is away is waited for with growing delays; what is known stays known", async () => {
  const { api, clock, told, informer, run, lists } = setUp();
  api.reach = "refused";
  const stop = run();
  await turn();
  assert.equal(lists(), 1);
  for (const [ms, count] of [[799, 1], [1, 2], [1599, 2], [1, 3], [3200, 4]] as const) {
    await clock.advance(ms);
    assert.equal(lists(), count);
  }
  assert.equal(informer.synced, false);
  api.create(resources.pods, podOf("a"));
  api.reach = "up";
  await clock.advance(6400);
  assert.equal(informer.synced, true);
  api.reach = "refused";
  api.remove(resources.pods, named("a"));
  await clock.advance(5 * 60_000);
  assert(informer.get(named("a")));
  api.reach = "up";
  await clock.advance(60_000);
  assert.deepEqual(told, ["added a", "list", "deleted a"], "the watch goes on where it was, without a list");
  await stop();
});

Deno.test("a version that the server has forgotten makes a new list, which tells what was missed", async () => {
  const { api, clock, told, informer, run, lists, signal } = setUp();
  for (const name of ["a", "b", "c"]) api.create(resources.pods, podOf(name));
  const stop = run();
  await informer.whenSynced(signal);
  told.length = 0;
  api.reach = "refused";
  await clock.advance(1);
  api.remove(resources.pods, named("a"));
  api.merge(resources.pods, named("b"), { metadata: { labels: { x: "y" } } });
  api.remove(resources.pods, named("c"));
  api.create(resources.pods, podOf("c"));
  api.compact();
  api.reach = "up";
  await clock.advance(10_000);
  assert.deepEqual(told, ["updated b", "deleted c", "added c", "deleted a", "list"]);
  assert.equal(lists(), 2);
  await stop();
});

Deno.test("a watch that is cut off is broken by the watchdog and begun anew", async () => {
  const { api, clock, told, informer, run, signal } = setUp();
  const stop = run();
  await informer.whenSynced(signal);
  api.reach = "silent";
  api.create(resources.pods, podOf("a"));
  await clock.advance(320_000);
  assert.deepEqual(told, ["list"]);
  api.reach = "up";
  await clock.advance(60_000);
  assert.deepEqual(told, ["list", "added a"]);
  await stop();
});

Deno.test("a watch that ends in time goes on at once, one that always ends at once with delays", async () => {
  const { api, clock, informer, run, signal, log } = setUp();
  const stop = run();
  await informer.whenSynced(signal);
  await clock.advance(300_000);
  assert.equal(api.watches, 1);
  assert.deepEqual(log.lines, []);
  await clock.advance(1000);
  api.cutWatches("end");
  await turn();
  assert.equal(api.watches, 1);
  api.cutWatches("end");
  await turn();
  assert.equal(api.watches, 0);
  assert.equal(log.lines.length, 1);
  await stop();
});

Deno.test("a server that ends each watch after one event is asked once a second; a bookmark of no version is none", async () => {
  const asked: string[] = [];
  const client = {
    list: () => Promise.resolve({ items: [], resourceVersion: "5" }),
    async *watch({ resourceVersion }: { resourceVersion: string }) {
      asked.push(resourceVersion);
      yield await Promise.resolve({ type: "BOOKMARK" as const, resourceVersion: "" });
    },
  };
  const { clock, run } = setUp({
    client: { list: client.list, watch: (_, options) => client.watch(options) } as InformerOptions<Pod>["client"],
  });
  const stop = run();
  await clock.advance(2999);
  assert.deepEqual(asked, ["5", "5", "5"]);
  await stop();
});

Deno.test("a watch that broke after it had told something does not lengthen the delays; one that told nothing does", async () => {
  const { api, clock, informer, run, signal, log } = setUp();
  const stop = run();
  await informer.whenSynced(signal);
  const waited = () => log.lines.at(-1)?.fields.waitMs;
  for (const [tells, ms] of [[true, 800], [true, 800], [false, 1600], [false, 3200], [true, 800]] as const) {
    if (tells) api.create(resources.pods, podOf(`pod-${log.lines.length}`));
    await turn();
    api.cutWatches();
    await turn();
    assert.equal(waited(), ms);
    await clock.advance(ms);
    assert.equal(api.watches, 1);
  }
  await stop();
});

Deno.test("a server that asks for time gets it; a handler that throws stops nothing", async () => {
  const { api, clock, informer, run, lists, log } = setUp({
    onChange: () => {
      throw new Error("handler");
    },
  });
  api.create(resources.pods, podOf("a"));
  api.faults.add({ kind: "status", error: failures.tooMany(100_000) }, { verb: "list" }, 1);
  const stop = run();
  await clock.advance(99_000);
  assert.equal(lists(), 1);
  await clock.advance(1000);
  assert.equal(lists(), 2);
  assert(informer.get(named("a")));
  assert.equal(log.lines.at(-1)?.fields.error, "handler");
  await stop();
});

Deno.test("waiting for the first list ends with its signal", async () => {
  const { informer } = setUp();
  const control = new AbortController();
  const waiting = assert.rejects(informer.whenSynced(control.signal), { code: "Aborted" });
  control.abort();
  await waiting;
});

Deno.test("delays double up to a limit, and begin again after some quiet", async () => {
  const clock = new FakeClock();
  const delays = new RetryDelays({ clock, random: () => 0.5 });
  assert.deepEqual(Array.from({ length: 8 }, () => delays.next()), [
    1200,
    2400,
    4800,
    9600,
    19200,
    38400,
    45000,
    45000,
  ]);
  await clock.advance(120_001);
  assert.equal(delays.next(), 1200);
});

Deno.test("a version that the server cannot read makes a new list", async () => {
  const { api, clock, run, lists, informer, signal } = setUp();
  const fault = api.faults.add({ kind: "status", error: failures.badRequest("no version") }, { verb: "watch" }, 2);
  const stop = run();
  await informer.whenSynced(signal);
  await clock.advance(10_000);
  assert.deepEqual([lists(), api.watches], [3, 1]);
  fault[Symbol.dispose]();
  await stop();
});

Deno.test("a list without a version, at which no watch could begin, is none", async () => {
  const versions = ["", "", "7"];
  let watched = "";
  const { informer, run, clock, told } = setUp({
    client: {
      list: () => Promise.resolve({ items: [podOf("a")], resourceVersion: versions.shift() ?? "" }),
      async *watch<T>(_: unknown, { resourceVersion, signal }: { resourceVersion: string; signal: AbortSignal }) {
        watched = resourceVersion;
        await clock.sleep(1e9, signal);
        yield* [] as T[];
      },
    } as InformerOptions<Pod>["client"],
  });
  const stop = run();
  await turn();
  assert.deepEqual([informer.synced, told], [false, []]);
  await clock.advance(10_000);
  assert.deepEqual([informer.synced, told, watched], [true, ["added a", "list"], "7"]);
  await stop();
});

Deno.test("a new identity ends the wait for the next try; without one the wait is as long as ever", async () => {
  const listeners = new Set<() => void>();
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const { list, watch } = api.client("main", { node: "n" });
  let refused = 0, known = false;
  const client: InformerOptions<Pod>["client"] = {
    list: (resource, options) => {
      if (known) return list.call(api.client("main", { node: "n" }), resource, options) as ReturnType<typeof list>;
      refused++;
      return Promise.reject(new ApiError("Unauthorized", { status: 401, reason: "Unauthorized" }));
    },
    watch: (resource, options) => watch.call(api.client("main", { node: "n" }), resource, options),
    onIdentity: (listener) => {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  } as InformerOptions<Pod>["client"];
  const { informer, run, signal } = setUp({ client, clock });
  const stop = run();
  await clock.advance(800 + 1600 + 3200);
  assert.equal(refused, 4);
  await clock.advance(3000);
  assert.equal(refused, 4);
  known = true;
  for (const listener of [...listeners]) listener();
  await informer.whenSynced(signal);
  assert.equal(listeners.size, 0);
  await stop();
  assert.equal(clock.pending, 0);
});
