import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import { ImageSchema, RuntimeHandlerSchema, VersionResponseSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { PodCidr } from "./pod_cidr.ts";
import { NameResolver } from "./resolver.ts";
import { NodeWatcher, type NodeWatcherOptions, plainVersion } from "./situation.ts";
import type { AddressResult } from "./status_addresses.ts";
import { NodeRecord } from "./view.ts";

const { signal } = new AbortController();
const addresses: AddressResult = { addresses: [{ type: "InternalIP", address: "10.0.0.1" }] };

function watcher(change: Partial<NodeWatcherOptions> = {}) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const calls = { images: 0, version: 0 };
  const state = { fail: false };
  const answer = <T>(what: "images" | "version", value: T): Promise<T> => {
    calls[what]++;
    return state.fail ? Promise.reject(new Error(`no ${what}`)) : Promise.resolve(value);
  };
  const image = create(ImageSchema, { id: "i", repoTags: ["a:1"], size: 7n });
  const options: NodeWatcherOptions = {
    runtime: { version: () => answer("version", create(VersionResponseSchema, { runtimeVersion: "v2.1.4" })) },
    images: { listImages: () => answer("images", [image]) },
    runtimeName: "containerd",
    maxImages: 50,
    troubles: () => ["t"],
    pressure: () => ["PIDPressure", "Strange"],
    handlers: () => [create(RuntimeHandlerSchema, { name: "z" }), create(RuntimeHandlerSchema, { name: "" })],
    features: () => undefined,
    addresses: () => Promise.resolve(addresses),
    clock,
    log,
    ...change,
  };
  return { clock, log, calls, state, watcher: new NodeWatcher(options) };
}

Deno.test("the node's situation, as runtime, network and eviction tell it", async () => {
  const t = watcher();
  const features = { recursiveReadOnlyMounts: false, userNamespaces: false };
  assert.deepEqual(await t.watcher.situation(signal), {
    troubles: ["t"],
    pressure: new Set(["PIDPressure"]),
    handlers: [{ name: "", features }, { name: "z", features }],
    supplementalGroupsPolicy: undefined,
    runtimeVersion: "containerd://2.1.4",
    images: [{ names: ["a:1"], sizeBytes: 7 }],
    addresses: [{ type: "InternalIP", address: "10.0.0.1" }],
    volumesInUse: undefined,
  });
});

Deno.test("a runtime's version in plain numbers", () => {
  const table = [
    ["v2.1.4", "2.1.4"],
    ["1.6.20~ds1", "1.6.20"],
    ["v2.0.0-rc.1+k3s", "2.0.0-rc.1+k3s"],
    ["1.30", "1.30"],
    ["01.2.3", "01.2.3"],
    ["unknown", "Unknown"],
    ["", "Unknown"],
  ] as const;
  for (const [text, expected] of table) assert.equal(plainVersion(text), expected);
});

Deno.test("images are listed once in half a minute; a runtime that fails is asked again and told once", async () => {
  const t = watcher();
  t.state.fail = true;
  const first = await t.watcher.situation(signal);
  assert.deepEqual([first.images, first.runtimeVersion], [undefined, undefined]);
  await t.watcher.situation(signal);
  assert.equal(t.log.lines.length, 2);
  t.state.fail = false;
  await t.watcher.situation(signal);
  await t.watcher.situation(signal);
  assert.deepEqual(t.calls, { images: 3, version: 3 });
  await t.clock.advance(30_000);
  t.state.fail = true;
  assert.deepEqual((await t.watcher.situation(signal)).images, [{ names: ["a:1"], sizeBytes: 7 }]);
});

Deno.test("a node without addresses says why, once", async () => {
  const t = watcher({ addresses: () => Promise.resolve({ error: "no route" }) });
  assert.equal((await t.watcher.situation(signal)).addresses, undefined);
  await t.watcher.situation(signal);
  assert.deepEqual(t.log.lines.map(({ fields }) => fields.error), ["no route"]);
});

Deno.test("the node's name is resolved once a minute; a resolver that hangs holds nothing up", async () => {
  const clock = new FakeClock();
  let asked = 0;
  let answer = (): Promise<string[]> => Promise.resolve(["10.0.0.1"]);
  const lookup = () => (asked++, answer());
  const resolver = new NameResolver({ name: "n1", lookup, clock, log: new RecordingLogger() });
  assert.deepEqual(await resolver.addresses(signal), ["10.0.0.1"]);
  await resolver.addresses(signal);
  assert.equal(asked, 1);
  const late = Promise.withResolvers<string[]>();
  answer = () => late.promise;
  await clock.advance(60_000);
  const waiting = resolver.addresses(signal);
  await clock.advance(2000);
  assert.deepEqual(await waiting, ["10.0.0.1"]);
  late.resolve(["10.0.0.2"]);
  await turn();
  assert.deepEqual(await resolver.addresses(signal), ["10.0.0.2"]);
  assert.equal(asked, 2);
  answer = () => Promise.reject(new Error("unknown host"));
  await clock.advance(60_000);
  assert.deepEqual(await resolver.addresses(signal), []);
  assert.equal(clock.pending, 0);
});

Deno.test("the runtime is told the node's pod range once for each, and again when it did not take it", async () => {
  const clock = new FakeClock();
  const view = new NodeRecord();
  const told: string[] = [];
  let fail = true;
  const cidr = new PodCidr({
    runtime: {
      updateRuntimeConfig: (range) => {
        told.push(range);
        return fail ? Promise.reject(new Error("starting")) : Promise.resolve();
      },
    },
    view,
    clock,
    log: new RecordingLogger(),
  });
  const ended = new AbortController();
  const running = cidr.run(ended.signal);
  const note = async (version: string, podCIDRs: string[]) => {
    view.note({ metadata: { name: "n1", uid: "u", resourceVersion: version }, spec: { podCIDRs } });
    await clock.advance(0);
  };
  await note("1", []);
  await note("2", ["10.1.0.0/24", "2001:db8::/64"]);
  assert.deepEqual(told, ["10.1.0.0/24,2001:db8::/64"]);
  fail = false;
  await clock.advance(10_000);
  await note("3", ["10.1.0.0/24", "2001:db8::/64"]);
  assert.equal(told.length, 2);
  await note("4", ["10.2.0.0/24"]);
  assert.equal(told[2], "10.2.0.0/24");
  ended.abort();
  await running;
  assert.equal(clock.pending, 0);
});
