import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { connectGrpc } from "../../mod/base/grpc_client.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { PodResourcesLister } from "../../mod/kube/gen/plugins/pod_resources_pb.ts";
import { PodResourcesLister as AlphaLister } from "../../mod/kube/gen/plugins/pod_resources_v1alpha1_pb.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { type PodResourcesCall, servePodResources } from "./server.ts";

const pod = {
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: {
    initContainers: [{ name: "init" }, { name: "side", restartPolicy: "Always" }],
    containers: [{ name: "main" }],
  },
} as BoundPod;

Deno.test("pod resources: pods, one pod, what can be given; more than ten calls at once are refused", async () => {
  const dir = await Deno.makeTempDir({ prefix: "denolet-podresources-" });
  const clock = new FakeClock();
  const scope = new Scope("test");
  const methods = PodResourcesLister.method;
  let released = 0;
  const calls: PodResourcesCall[] = [];
  scope.spawn("server", (signal) =>
    servePodResources({
      dir,
      host: createDenoHost(),
      clock,
      log: silent,
      onCall: (call) => calls.push(call),
      pods: () => [pod],
      podByName: (namespace, name) => namespace === "ns" && name === "p" ? pod : undefined,
      devices: {
        release: () => released++,
        given: (uid, container) =>
          uid === "u" && container === "main"
            ? [{ resource: "a.com/d", devices: [{ id: "x", nodes: [] }, { id: "y", nodes: [0, 1] }] }]
            : [],
        allocatable: () => [{ resource: "a.com/d", devices: [{ id: "z", nodes: [] }] }],
      },
    }, signal));
  const path = `${dir}/kubelet.sock`;
  while (!await Deno.stat(path).then(() => true, () => false)) await systemClock.sleep(5);
  try {
    using client = await connectGrpc(path, { clock: systemClock, timeoutMs: 60_000 });
    const { podResources } = await client.unary(methods.list, {});
    assert.deepEqual(podResources.map(({ name, namespace }) => ({ name, namespace })), [{
      name: "p",
      namespace: "ns",
    }]);
    const seen = podResources[0]!.containers.map(({ name, devices }) => [
      name,
      devices.map((d) => [d.resourceName, d.deviceIds, d.topology?.nodes.map(({ ID }) => ID)]),
    ]);
    assert.deepEqual(seen, [["side", []], ["main", [
      ["a.com/d", ["x"], undefined],
      ["a.com/d", ["y"], [0n]],
      ["a.com/d", ["y"], [1n]],
    ]]]);
    assert.equal(released, 1);
    const alpha = await client.unary(AlphaLister.method.list, {});
    assert.deepEqual(alpha.podResources[0]?.containers.map(({ devices }) => devices.length), [3]);
    const { devices } = await client.unary(methods.getAllocatableResources, {});
    assert.deepEqual(devices.map(({ deviceIds }) => deviceIds), [["z"]]);
    const one = await client.unary(methods.get, { podName: "p", podNamespace: "ns" });
    assert.equal(one.podResources?.containers.length, 2);
    await assert.rejects(client.unary(methods.get, { podName: "q", podNamespace: "ns" }), {
      message: "rpc error: code = Unknown desc = pod q in namespace ns not found",
    });
    for (let calls = 5; calls < 10; calls++) await client.unary(methods.list, {});
    await assert.rejects(client.unary(methods.list, {}), {
      message: "rpc error: code = ResourceExhausted desc = rejected by rate limit",
    });
    const told = calls.slice(0, 5).map(({ version, method, failed }) => `${version} ${method} ${failed}`);
    const all = ["v1 list", "v1alpha1 list", "v1 get_allocatable", "v1 get"].map((call) => `${call} false`);
    assert.deepEqual(told, [...all, "v1 get true"]);
    assert.equal(calls.length, 10, "a call too many is not counted");
    await clock.advance(10);
    await client.unary(methods.list, {});
  } finally {
    await scope.close();
    await Deno.remove(dir, { recursive: true });
  }
});
