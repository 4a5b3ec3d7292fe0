import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { connectGrpc } from "../../mod/base/grpc_client.ts";
import { PodResourcesLister } from "../../mod/kube/gen/plugins/pod_resources_pb.ts";
import type { Pod } from "../../mod/kube/types.ts";
import { TestPlugin } from "./devices_plugin.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { appears, patience, pod, shell, untilEnded, withObserver } from "./support.ts";

const resource = "test.denolet/thing";

function wanting(name: string, count: number): Pod {
  const limits = { [resource]: String(count) };
  return pod(name, {
    containers: [{ ...shell("main", ""), command: untilEnded, resources: { limits, requests: limits } }],
  });
}

Deno.test("a device plugin: what it gives is in the container, told by its pod's resources and status; more than there is refused", async () => {
  const readOnlyPort = freePort();
  const server = { enableServer: true, address: "127.0.0.1", port: freePort(), readOnlyPort };
  await withObserver({ name: "t-devices", config: server }, async (seen) => {
    const root = seen.node.agent.paths.kubelet;
    const dir = `${root}/device-plugins`;
    await appears(`${dir}/kubelet.sock`);
    const both = [{ ID: "a", health: "Healthy" }, { ID: "b", health: "Healthy" }];
    using plugin = new TestPlugin(dir, resource, both, {
      envs: { THING: "of-the-plugin" },
      devices: [{ containerPath: "/dev/thing", hostPath: "/dev/null", permissions: "rw" }],
      mounts: [{ containerPath: "/thing", hostPath: "/usr/lib/os-release", readOnly: true }],
      annotations: { "test.denolet/thing": "1" },
    });
    await plugin.register();
    using resources = await connectGrpc(`${root}/pod-resources/kubelet.sock`, {
      clock: systemClock,
      timeoutMs: 10_000,
    });
    await seen.node.agent.putManifest("one.json", wanting("one", 1));
    await seen.ready("one");
    assert.equal(
      await seen.out(
        "one",
        "echo $THING; head -c 0 /dev/thing && head -n 1 /thing | cut -c 1-6; touch /thing 2>&1 | grep -c Read-only",
      ),
      "of-the-plugin\nPRETTY\n1",
    );
    assert.deepEqual(plugin.allocated, [["a"]]);
    assert.equal(plugin.started, 1);

    const { podResources } = await resources.unary(PodResourcesLister.method.list, {});
    const own = podResources.find(({ name }) => name === seen.full("one"))?.containers[0]?.devices;
    assert.deepEqual(own?.map(({ resourceName, deviceIds }) => [resourceName, deviceIds]), [[resource, ["a"]]]);

    plugin.change([{ ID: "a", health: "Unhealthy" }, { ID: "b", health: "Healthy" }]);
    const kept = `${root}/pod_status/${await seen.uid("one")}.json`;
    await waitFor("the device's health in the status", async () => /"Unhealthy"/.test(await Deno.readTextFile(kept)), {
      within: patience,
    });

    await seen.node.agent.putManifest("two.json", wanting("two", 2));
    const refused = await seen.phase("two", "Failed");
    assert.equal(refused.reason, "UnexpectedAdmissionError");
    assert.match(
      refused.message ?? "",
      /requested number of devices unavailable for test\.denolet\/thing\. Requested: 2, Available: 1/,
    );

    const metrics = await (await fetch(`http://127.0.0.1:${readOnlyPort}/metrics`)).text();
    for (
      const sample of [
        'kubelet_device_plugin_registration_total{resource_name="test.denolet/thing"} 1',
        'kubelet_device_plugin_alloc_duration_seconds_count{resource_name="test.denolet/thing"} 1',
        'kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} 1',
      ]
    ) assert(metrics.includes(`\n${sample}\n`), `${sample} is not on the page`);
  });
});
