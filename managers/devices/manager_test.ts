import assert from "@assert";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { GrpcError } from "../../mod/base/grpc_error.ts";
import { devicesUnderTest, FakePlugin, podWanting } from "./testing.ts";

const resource = "example.com/d";
const never = new AbortController().signal;

async function withPlugin(...ids: string[]) {
  const host = new FakeHost();
  await host.mkdir("/root/device-plugins");
  const t = devicesUnderTest(host);
  const plugin = new FakePlugin();
  t.plugins.set("/s", plugin);
  await t.manager.connect(resource, "/s");
  plugin.tell(...ids);
  await t.clock.advance(0);
  return { ...t, plugin };
}

function idsOf(t: { manager: Awaited<ReturnType<typeof withPlugin>>["manager"] }, uid: string, container: string) {
  return t.manager.given(uid, container).flatMap(({ devices }) => devices.map(({ id }) => id));
}

Deno.test("devices: capacity counts all, allocatable the healthy; a plugin's resource outlives it for five minutes", async () => {
  const t = await withPlugin("a", "b!");
  const amounts = (capacity: string, allocatable: string) => ({
    capacity: { [resource]: capacity },
    allocatable: { [resource]: allocatable },
    removed: [],
  });
  assert.deepEqual(t.manager.resources(), amounts("2", "1"));
  t.plugin.tell("a", "b", "c");
  await t.clock.advance(0);
  assert.deepEqual(t.manager.resources(), amounts("3", "3"));
  t.plugin.end();
  await t.clock.advance(300_000);
  assert.deepEqual(t.manager.resources(), amounts("3", "0"));
  await t.clock.advance(1);
  assert.deepEqual(t.manager.resources(), { capacity: {}, allocatable: {}, removed: [resource] });
  await t.manager.connect(resource, "/s");
  t.plugin.tell("a");
  await t.clock.advance(0);
  assert.deepEqual(t.manager.resources(), amounts("1", "1"));
  await t.scope.close();
});

Deno.test("devices: a plugin that ends before it told any has a capacity of nothing, and is not used without options", async () => {
  const t = devicesUnderTest();
  const plugin = new FakePlugin();
  t.plugins.set("/s", plugin);
  plugin.answers.GetDevicePluginOptions = () => {
    throw new GrpcError("Unknown", "broken");
  };
  await assert.rejects(
    t.manager.connect(resource, "/s"),
    /failed to get device plugin options: rpc error: code = Unknown desc = broken/,
  );
  assert.deepEqual(t.manager.resources().capacity, {});
  delete plugin.answers.GetDevicePluginOptions;
  await t.manager.connect(resource, "/s");
  plugin.end();
  await t.clock.advance(0);
  assert.deepEqual(t.manager.resources(), {
    capacity: { [resource]: "0" },
    allocatable: { [resource]: "0" },
    removed: [],
  });
  await assert.rejects(t.manager.connect(resource, "/other"), { status: "Unavailable" });
  await t.scope.close();
});

Deno.test("devices: each container gets its own, once; what pods had that are no more is given again", async () => {
  const t = await withPlugin("a", "b", "c");
  const one = podWanting("one", { x: 1, y: 1 }), two = podWanting("two", { x: 2 });
  assert.equal(t.manager.wantedBy(one), true);
  assert.equal(t.manager.wantedBy(podWanting("none", { x: 0 })), false);
  t.active.add("one").add("two");
  await t.manager.allocate(one, never);
  await t.manager.allocate(one, never);
  assert.deepEqual([idsOf(t, "one", "x"), idsOf(t, "one", "y")], [["a"], ["b"]]);
  assert.equal(t.plugin.calls.filter(({ method }) => method === "Allocate").length, 2);
  assert.deepEqual(t.allocations, [[resource, 0], [resource, 0]]);
  await assert.rejects(t.manager.allocate(two, never), {
    message: `requested number of devices unavailable for ${resource}. Requested: 2, Available: 1`,
  });
  assert.deepEqual(t.manager.withGiven({ cpu: "1" }), { cpu: "1", [resource]: "2" });
  t.active.delete("one");
  await t.manager.allocate(two, never);
  assert.deepEqual(idsOf(t, "two", "x"), ["a", "b"]);
  await assert.rejects(t.manager.allocate(podWanting("two", { x: 1 }), never), /changed request for resource/);
  await t.scope.close();
});

Deno.test("devices: those of init containers are used again, those of sidecars are not", async () => {
  const t = await withPlugin("a", "b", "c");
  t.active.add("p");
  await t.manager.allocate(podWanting("p", { "init:i": 2, "sidecar:s": 1, x: 1, y: 1 }), never);
  assert.deepEqual(["i", "s", "x", "y"].map((name) => idsOf(t, "p", name)), [["a", "b"], ["a"], ["b"], ["c"]]);
  await t.scope.close();
});

Deno.test("devices: the plugin's preference is followed as far as it can be", async () => {
  const t = await withPlugin("a");
  t.plugin.end();
  t.plugin.options = { getPreferredAllocationAvailable: true };
  t.plugin.answers.GetPreferredAllocation = () => ({ containerResponses: [{ deviceIDs: ["c", "stranger"] }] });
  await t.manager.connect(resource, "/s");
  t.plugin.tell("a", "b", "c");
  await t.clock.advance(0);
  t.active.add("p");
  await t.manager.allocate(podWanting("p", { x: 2 }), never);
  assert.deepEqual(idsOf(t, "p", "x"), ["c", "a"]);
  t.plugin.answers.GetPreferredAllocation = () => {
    throw new GrpcError("Internal", "no");
  };
  t.active.add("q");
  await assert.rejects(t.manager.allocate(podWanting("q", { x: 1 }), never), {
    message: "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Internal desc = no",
  });
  await t.scope.close();
});

Deno.test("devices: two pods at once never get one device, and what failed is free again", async () => {
  const t = await withPlugin("a", "b");
  t.active.add("p").add("q").add("r");
  t.plugin.answers.Allocate = () => {
    throw new GrpcError("Unknown", "full");
  };
  await assert.rejects(t.manager.allocate(podWanting("p", { x: 2 }), never), /desc = full/);
  assert.deepEqual(t.allocations, [[resource, 0]], "one that fails is told too");
  delete t.plugin.answers.Allocate;
  await Promise.all(["p", "q"].map((uid) => t.manager.allocate(podWanting(uid, { x: 1 }), never)));
  assert.deepEqual([...idsOf(t, "p", "x"), ...idsOf(t, "q", "x")].toSorted(), ["a", "b"]);
  await t.scope.close();
});

Deno.test("devices: what a container is made with, and PreStartContainer before each start", async () => {
  const t = await withPlugin("a");
  t.plugin.end();
  t.plugin.options = { preStartRequired: true };
  t.plugin.answers.Allocate = () => ({
    containerResponses: [{
      envs: { B: "2", A: "1" },
      mounts: [{ containerPath: "/c", hostPath: "/h", readOnly: true }],
      devices: [{ containerPath: "/dev/c", hostPath: "/dev/h", permissions: "rw" }],
      annotations: { k: "v" },
      cdiDevices: [{ name: "v/c=d" }, { name: "v/c=d" }],
    }],
  });
  await t.manager.connect(resource, "/s");
  t.plugin.tell("a");
  await t.clock.advance(0);
  const pod = podWanting("p", { x: 1 });
  t.active.add("p");
  // Given now, since the pod came before its plugin was known.
  assert.deepEqual(await t.manager.containerOptions(pod, pod.spec.containers[0]!, never), {
    envs: [{ name: "A", value: "1" }, { name: "B", value: "2" }],
    mounts: [{ containerPath: "/c", hostPath: "/h", readonly: true }],
    devices: [{ containerPath: "/dev/c", hostPath: "/dev/h", permissions: "rw" }],
    annotations: { k: "v" },
    cdiDevices: ["v/c=d"],
  });
  const started = t.plugin.calls.filter(({ method }) => method === "PreStartContainer");
  assert.deepEqual(started.map(({ request }) => request), [{ devicesIds: ["a"] }]);
  const none = podWanting("none", { x: 0 });
  assert.equal(await t.manager.containerOptions(none, none.spec.containers[0]!, never), undefined);
  await t.scope.close();
});

Deno.test("devices: a new life of the agent knows what containers have; nothing is given before the plugin is back", async () => {
  const t = await withPlugin("a", "b");
  const pod = podWanting("p", { x: 1 });
  t.active.add("p");
  await t.manager.allocate(pod, never);
  await t.scope.close();

  const next = devicesUnderTest(t.host);
  await next.manager.load();
  next.active.add("p").add("q");
  assert.deepEqual(idsOf(next, "p", "x"), ["a"]);
  assert.deepEqual(next.manager.resources(), {
    capacity: { [resource]: "0" },
    allocatable: { [resource]: "0" },
    removed: [],
  });
  const options = await next.manager.containerOptions(pod, pod.spec.containers[0]!, never);
  assert.deepEqual(options?.envs, [{ name: "DEVICES", value: "a" }]);
  await assert.rejects(next.manager.allocate(podWanting("q", { x: 1 }), never), {
    message: `no healthy devices present; cannot allocate unhealthy devices ${resource}`,
  });
  next.plugins.set("/s", t.plugin);
  t.plugin.end();
  await next.manager.connect(resource, "/s");
  t.plugin.tell("a", "b");
  await next.clock.advance(0);
  await next.manager.allocate(podWanting("q", { x: 1 }), never);
  assert.deepEqual(idsOf(next, "q", "x"), ["b"]);
  await next.scope.close();

  await t.host.write("/root/device-plugins/kubelet_internal_checkpoint", "{");
  const damaged = devicesUnderTest(t.host);
  await damaged.manager.load();
  assert.equal(damaged.log.lines.some(({ level }) => level === "error"), true);
  await damaged.scope.close();
});

Deno.test("devices: the health of a container's devices is told, and its pod looked at anew when it changes", async () => {
  const t = await withPlugin("a", "b");
  t.active.add("p");
  await t.manager.allocate(podWanting("p", { x: 1 }), never);
  const status = (health: string) => [{ name: resource, resources: [{ resourceID: "a", health }] }];
  assert.deepEqual(t.manager.health("p", "x"), status("Healthy"));
  t.plugin.tell("a", "b!");
  await t.clock.advance(0);
  assert.deepEqual(t.changed, []);
  t.plugin.tell("a!", "b!");
  await t.clock.advance(0);
  assert.deepEqual(t.changed, ["p"]);
  assert.deepEqual(t.manager.health("p", "x"), status("Unhealthy"));
  assert.deepEqual(t.manager.health("p", "y"), []);
  assert.deepEqual(t.manager.allocatable(), [{ resource, devices: [] }]);
  await t.scope.close();
});
