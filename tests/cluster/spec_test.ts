import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Pod } from "../../mod/kube/types.ts";
import { box, cgroupValue, patience, shell } from "../node/support.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";
const gates = { ContainerStopSignals: true };

Deno.test("fields that only an API server lets through: host name, stop signal, resources of the whole pod", async (t) => {
  await withClusterNode({
    name: "c-spec",
    containerd: "v2",
    controllers: true,
    apiServerFlags: ["--feature-gates=ContainerStopSignals=true"],
    config: { featureGates: gates },
  }, async (member) => {
    const { admin, agent, nodeName } = member;
    const view = new ClusterView(member);
    await view.nodeCondition("Ready", "True");

    await t.step("a host name of its own, whatever the pod's name", async () => {
      const check = 'test "$(hostname)" = other.example && grep -q "other.example" /etc/hosts; exit $?';
      await view.createPod("named", {
        nodeName,
        hostnameOverride: "other.example",
        restartPolicy: "Never",
        containers: [shell("c", check)],
      });
      const pod = await view.podUntil("named", "to have ended", ({ status }) => /ed$/.test(status?.phase ?? ""));
      assert.equal(pod.status?.phase, "Succeeded", JSON.stringify(pod.status?.containerStatuses));
      await view.deletePod("named");
      await view.gone("named");
    });

    await t.step("a stop signal of its own; the status tells it", async () => {
      const command = "trap 'exit 7' USR1; trap '' TERM; while :; do sleep 0.2; done";
      await view.createPod("signalled", {
        nodeName,
        os: { name: "linux" },
        terminationGracePeriodSeconds: 60,
        containers: [shell("c", command, { lifecycle: { stopSignal: "SIGUSR1" } })],
      }, { finalizers: ["example.com/hold"] });
      const pod = await view.ready("signalled");
      assert.equal(pod.status?.containerStatuses?.[0]?.stopSignal, "SIGUSR1");
      await view.deletePod("signalled");
      const over = await view.podUntil("signalled", "to have ended", ({ status }) => status?.phase === "Failed");
      assert.equal(over.status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 7);
      await admin.patch(resources.pods, { namespace, name: "signalled" }, { metadata: { finalizers: null } }, {
        type: "merge",
        signal,
      });
      await view.gone("signalled");
    });

    await t.step("the resources of the whole pod, resized while it runs", async () => {
      const node = await view.node();
      assert(node?.status?.declaredFeatures?.includes("InPlacePodLevelResourcesVerticalScaling"));
      const list = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { cpu, memory } });
      await view.createPod("whole", { nodeName, resources: list("100m", "64Mi"), containers: [box("c"), box("d")] });
      const pod = await view.ready("whole");
      const group = `${agent.paths.cgroup}/kubepods/pod${pod.metadata?.uid}`;
      const kernel = () =>
        Promise.all([
          cgroupValue("cpu", group, "cpu.shares"),
          cgroupValue("cpu", group, "cpu.cfs_quota_us"),
          cgroupValue("memory", group, "memory.limit_in_bytes"),
        ]);
      assert.deepEqual(await kernel(), ["102", "10000", String(64 * 2 ** 20)]);
      const patch = { spec: { resources: list("200m", "128Mi") } };
      const how = { type: "strategic-merge", subresource: "resize", signal } as const;
      await admin.patch<Pod>(resources.pods, { namespace, name: "whole" }, patch, how);
      await waitFor("the kernel to have it", async () => (await kernel())[2] === String(128 * 2 ** 20), {
        within: patience,
      });
      const after = await view.podUntil(
        "whole",
        "to have more",
        ({ status }) => status?.resources?.limits?.memory === "128Mi" && status.observedGeneration === 2,
      );
      assert.deepEqual(await kernel(), ["204", "20000", String(128 * 2 ** 20)]);
      assert.deepEqual(after.status?.allocatedResources, { cpu: "200m", memory: "128Mi" });
      assert.deepEqual(after.status?.containerStatuses?.map((c) => c.restartCount), [0, 0]);
      await view.deletePod("whole");
      await view.gone("whole");
    });
  });
});
