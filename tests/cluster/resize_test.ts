import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Container, Pod } from "../../mod/kube/types.ts";
import { agentProgram, box, cgroupValue } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";
const mebi = (count: number) => String(count * 2 ** 20);
const sized = (name: string, cpu: string, memory: string, rest: Partial<Container> = {}) => {
  const list = { cpu, memory };
  return box(name, { resources: { requests: list, limits: list }, ...rest });
};

const resizeConditions = ({ status }: Pod) => status?.conditions?.filter((c) => c.type.startsWith("PodResize")) ?? [];

/** True once the status tells that the resize to these figures, in this generation, is over. */
const resized = (cpu: string, memory: string, generation: number) => (pod: Pod) => {
  const [first] = pod.status?.containerStatuses ?? [];
  const { limits } = first?.resources ?? {};
  return resizeConditions(pod).length === 0 && pod.status?.observedGeneration === generation &&
    limits?.cpu === cpu && limits.memory === memory;
};

Deno.test("pods of a real API server are resized in place", async (t) => {
  await withClusterNode({ name: "c-resize", containerd: "v2", controllers: true }, async (member) => {
    const { admin, agent, nodeName } = member;
    const view = new ClusterView(member);
    await view.nodeCondition("Ready", "True");
    const { cgroup } = agent.paths;
    /** Shares, quota and memory limit of the pod's group and of the container in it. */
    const kernel = async (pod: Pod) => {
      const id = pod.status?.containerStatuses?.[0]?.containerID?.split("//")[1];
      const group = `${cgroup}/kubepods/pod${pod.metadata?.uid}`;
      const of = (path: string) =>
        Promise.all([
          cgroupValue("cpu", path, "cpu.shares"),
          cgroupValue("cpu", path, "cpu.cfs_quota_us"),
          cgroupValue("memory", path, "memory.limit_in_bytes"),
        ]);
      return { pod: await of(group), container: await of(`${group}/${id}`) };
    };
    const give = async (name: string, list: { cpu: string; memory: string }) => {
      const patch = { spec: { containers: [{ name: "c", resources: { requests: list, limits: list } }] } };
      await admin.patch<Pod>(resources.pods, { namespace, name }, patch, {
        type: "strategic-merge",
        subresource: "resize",
        signal,
      });
    };

    await t.step("more, and less: the kernel has it, the container runs on", async () => {
      await view.createPod("web", { nodeName, containers: [sized("c", "100m", "64Mi")] });
      const before = await view.ready("web");
      const small = ["102", "10000", mebi(64)];
      assert.deepEqual(await kernel(before), { pod: small, container: small });
      await give("web", { cpu: "200m", memory: "128Mi" });
      const after = await view.podUntil("web", "to have more", resized("200m", "128Mi", 2));
      const large = ["204", "20000", mebi(128)];
      assert.deepEqual(await kernel(after), { pod: large, container: large });
      const [[old], [now]] = [before.status?.containerStatuses ?? [], after.status?.containerStatuses ?? []];
      assert.deepEqual([now?.containerID, now?.restartCount], [old?.containerID, 0]);
      assert.deepEqual(now?.allocatedResources, { cpu: "200m", memory: "128Mi" });
      await give("web", { cpu: "50m", memory: "32Mi" });
      const less = await view.podUntil("web", "to have less", resized("50m", "32Mi", 3));
      const tiny = ["51", "5000", mebi(32)];
      assert.deepEqual(await kernel(less), { pod: tiny, container: tiny });
      assert.equal(less.status?.containerStatuses?.[0]?.containerID, old?.containerID);
      const events = (await view.events("web")).filter((text) => text.startsWith("Resize"));
      assert.deepEqual(events.map((text) => text.split(":")[0]).sort(), [
        "ResizeCompleted",
        "ResizeCompleted",
        "ResizeStarted",
        "ResizeStarted",
      ]);
    });

    await t.step("what does not fit waits, also over a restart of the agent, until it is taken back", async () => {
      const cpus = Number((await view.node())?.status?.allocatable?.cpu?.replace(/m$/, ""));
      const much = cpus > 500 ? `${cpus - 10}m` : `${cpus * 1000 - 10}m`;
      await view.createPod("other", { nodeName, containers: [sized("c", "50m", "8Mi")] });
      await view.ready("other");
      await give("web", { cpu: much, memory: "32Mi" });
      const waiting = (pod: Pod) => resizeConditions(pod)[0]?.type === "PodResizePending";
      const pod = await view.podUntil("web", "to wait", waiting);
      const [condition] = resizeConditions(pod);
      assert.deepEqual([condition?.reason, condition?.observedGeneration], ["Deferred", 4]);
      const { stdout } = await agentProgram(["explain", "web", "--root-dir", agent.paths.kubelet], {
        run: agent.paths.run,
      });
      assert.match(
        stdout,
        /Why: The resize of the pod in place waits( since \S+)? for room on the node: .*\nRemedy: Free/,
      );
      assert(condition?.message?.startsWith("Node didn't have enough resource: cpu"), condition?.message);
      await agent.kill();
      agent.start();
      await agent.healthy();
      await give("web", { cpu: "60m", memory: "32Mi" });
      const after = await view.podUntil("web", "to have what it wants now", resized("60m", "32Mi", 5));
      const [status] = after.status?.containerStatuses ?? [];
      assert.deepEqual([status?.restartCount, status?.containerID], [
        0,
        pod.status?.containerStatuses?.[0]?.containerID,
      ]);
      await view.deletePod("other");
      await view.deletePod("web");
      await view.gone("web");
    });

    await t.step("a container whose policy says so is restarted for its memory", async () => {
      const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
      await view.createPod("again", { nodeName, containers: [sized("c", "50m", "32Mi", { resizePolicy })] });
      await view.ready("again");
      await give("again", { cpu: "50m", memory: "64Mi" });
      const after = await view.podUntil("again", "to have more", resized("50m", "64Mi", 2));
      assert.equal(after.status?.containerStatuses?.[0]?.restartCount, 1);
      assert.deepEqual((await kernel(after)).container, ["51", "5000", mebi(64)]);
      await view.deletePod("again");
      await view.gone("again");
    });
  });
});
