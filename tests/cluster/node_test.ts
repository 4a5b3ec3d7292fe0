import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { Event, Lease, Node } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";

const { signal } = new AbortController();
const within = Number(Deno.env.get("DENOLET_TEST_PATIENCE") ?? 60_000);

/** What the API server has of a node. */
class Seen {
  constructor(readonly admin: ApiClient, readonly name: string) {}

  /** Undefined when there is none, or the server does not answer. */
  node(): Promise<Node | undefined> {
    return this.admin.get(resources.nodes, { name: this.name }, { signal }).catch(() => undefined);
  }

  lease(): Promise<Lease | undefined> {
    const name = { namespace: "kube-node-lease", name: this.name };
    return this.admin.get(resources.leases, name, { signal }).catch(() => undefined);
  }

  async events(): Promise<readonly Event[]> {
    const { items } = await this.admin.list(resources.events, { signal, namespace: "default" });
    return items.filter(({ involvedObject: { kind, name } }) => kind === "Node" && name === this.name);
  }

  /** Waits for a node that `look` accepts. */
  until(what: string, look: (node: Node) => boolean): Promise<Node> {
    return waitFor(what, async () => {
      const node = await this.node();
      return node && look(node) ? node : undefined;
    }, { within });
  }

  ready(): Promise<Node> {
    return this.until("the node to be ready", (node) => condition(node, "Ready")?.status === "True");
  }

  /** Waits until the lease was renewed after a time, in milliseconds since the epoch. */
  renewed(after: number): Promise<Lease> {
    return waitFor("the lease to be renewed", async () => {
      const lease = await this.lease();
      return lease && Date.parse(lease.spec?.renewTime ?? "") > after ? lease : undefined;
    }, { within });
  }
}

function condition(node: Node, type: string) {
  return node.status?.conditions?.find((one) => one.type === type);
}

/** Restarts the agent. */
async function restart({ agent }: ClusterNode, between: () => Promise<void> = () => Promise.resolve()) {
  await agent.kill();
  await between();
  agent.start();
  await agent.healthy();
}

Deno.test("cluster node: it registers, becomes ready, renews its lease, and outlives what befalls the API server", async (t) => {
  const flags = ["--node-labels=node.kubernetes.io/kind=test,mine=1", "--provider-id=test://1"];
  const config = {
    nodeLeaseDurationSeconds: 8,
    nodeStatusUpdateFrequency: "2s",
    nodeStatusReportFrequency: "10m",
    registerWithTaints: [{ key: "test", value: "1", effect: "PreferNoSchedule" }],
  };
  await withClusterNode({ name: "cl-node", flags, config }, async (cluster) => {
    const { plane, admin, nodeName } = cluster;
    const seen = new Seen(admin, nodeName);

    await t.step("the node's object: labels, taints, provider, annotation, facts", async () => {
      const node = await seen.ready();
      assert.deepEqual(node.metadata?.labels, {
        "kubernetes.io/hostname": nodeName,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": Deno.build.arch === "aarch64" ? "arm64" : "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": Deno.build.arch === "aarch64" ? "arm64" : "amd64",
        "node.kubernetes.io/kind": "test",
        mine: "1",
      });
      assert.equal(node.metadata?.annotations?.["volumes.kubernetes.io/controller-managed-attach-detach"], "true");
      assert.equal(node.spec?.providerID, "test://1");
      assert(node.spec?.taints?.some(({ key, effect }) => key === "test" && effect === "PreferNoSchedule"));
      const { status } = node;
      assert.deepEqual(status?.conditions?.map((one) => [one.type, one.status]), [
        ["MemoryPressure", "False"],
        ["DiskPressure", "False"],
        ["PIDPressure", "False"],
        ["Ready", "True"],
      ]);
      assert.equal(condition(node, "Ready")?.message, "kubelet is posting ready status");
      assert.match(status?.nodeInfo?.containerRuntimeVersion ?? "", /^containerd:\/\/\d/);
      assert.equal(status?.nodeInfo?.kubeletVersion, "v1.36.3");
      assert.equal(status?.nodeInfo?.bootID, (await Deno.readTextFile("/proc/sys/kernel/random/boot_id")).trim());
      assert.equal(status?.addresses?.at(-1)?.address, nodeName);
      assert((status?.images ?? []).some(({ names }) => names.some((name) => name.includes("busybox"))));
      for (const resource of ["cpu", "memory", "pods", "ephemeral-storage"]) {
        assert(status?.capacity?.[resource] && status.allocatable?.[resource], resource);
      }
    });

    await t.step("the lease belongs to the node and is renewed; so is a CSINode there", async () => {
      const first = await seen.renewed(0);
      assert.equal(first.spec?.holderIdentity, nodeName);
      assert.equal(first.spec?.leaseDurationSeconds, 8);
      const uid = (await seen.node())?.metadata?.uid;
      assert.deepEqual(first.metadata?.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }]);
      await seen.renewed(Date.parse(first.spec?.renewTime ?? ""));
      const csi = await admin.get(resources.csiNodes, { name: nodeName }, { signal });
      assert.equal(csi.metadata?.ownerReferences?.[0]?.uid, uid);
    });

    await t.step("its events", async () => {
      const expected = [
        "NodeAllocatableEnforced",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientMemory",
        "NodeHasSufficientPID",
        "Starting",
      ];
      const reasons = await waitFor("the node's first events", async () => {
        const found = (await seen.events()).map(({ reason = "" }) => reason);
        return expected.every((reason) => found.includes(reason)) ? found : undefined;
      }, { within });
      assert(reasons.length > 0);
      const [event] = await seen.events();
      assert.deepEqual(event?.source, { component: "kubelet", host: nodeName });
      assert.equal(event?.reportingComponent, "kubelet");
    });

    await t.step("no status is written while nothing changes", async () => {
      const heartbeat = async () => condition(await seen.ready(), "Ready")?.lastHeartbeatTime;
      // The controllers have their own changes to make at first, such as taking away taints.
      await waitFor("two renewals of the lease without a heartbeat of the status", async () => {
        const before = await heartbeat();
        const lease = await seen.renewed(Date.now());
        await seen.renewed(Date.parse(lease.spec?.renewTime ?? "") + 1);
        return await heartbeat() === before;
      }, { within });
    });

    await t.step("cordoning is told; others' labels and annotations stay", async () => {
      const patch = {
        spec: { unschedulable: true },
        metadata: { labels: { theirs: "1" }, annotations: { theirs: "1" } },
      };
      await admin.patch(resources.nodes, { name: nodeName }, patch, { signal, type: "strategic-merge" });
      await waitFor("the event of the cordon", async () => {
        return (await seen.events()).some(({ reason }) => reason === "NodeNotSchedulable");
      }, { within });
      const node = await seen.node();
      assert.equal(node?.metadata?.labels?.theirs, "1");
      assert.equal(node?.metadata?.annotations?.theirs, "1");
    });

    await t.step("another boot's id in the object: the reboot is told", async () => {
      const patch = { status: { nodeInfo: { bootID: "before" } } };
      const options = { signal, type: "strategic-merge", subresource: "status" } as const;
      await admin.patch(resources.nodes, { name: nodeName }, patch, options);
      const event = await waitFor("the event of the reboot", async () => {
        return (await seen.events()).find(({ reason }) => reason === "Rebooted");
      }, { within });
      assert.match(event.message ?? "", new RegExp(`^Node ${nodeName} has been rebooted, boot id: [0-9a-f-]{36}$`));
    });

    await t.step("the API server restarts: lease and status go on", async () => {
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await plane.startComponent("kube-apiserver");
      await seen.renewed(Date.now());
      assert.equal(condition(await seen.ready(), "Ready")?.status, "True");
    });

    await t.step("the runtime goes away and comes back: not ready, ready", async () => {
      await cluster.containerd.kill();
      const down = await seen.until("the node to be not ready", (node) => condition(node, "Ready")?.status === "False");
      assert.match(condition(down, "Ready")?.message ?? "", /container runtime is down/);
      assert.equal(condition(down, "Ready")?.reason, "KubeletNotReady");
      await cluster.containerd.start();
      await seen.ready();
      await waitFor("the events of both", async () => {
        const reasons = (await seen.events()).map(({ reason }) => reason);
        return reasons.includes("NodeNotReady") && reasons.includes("NodeReady");
      }, { within });
    });

    await t.step("the agent restarts: the node stays ready, its object is the same", async () => {
      const before = await seen.ready();
      await restart(cluster);
      const renewed = await seen.renewed(Date.now());
      assert(renewed);
      const after = await seen.ready();
      assert.equal(after.metadata?.uid, before.metadata?.uid);
      assert.equal(condition(after, "Ready")?.lastTransitionTime, condition(before, "Ready")?.lastTransitionTime);
      assert.equal(after.metadata?.labels?.theirs, "1");
    });

    await t.step("the object is deleted: it stays away, and is there anew after a restart", async () => {
      const before = await seen.node();
      await admin.delete(resources.nodes, { name: nodeName }, { signal });
      await waitFor("the agent to tell of it", async () => {
        return (await Deno.readTextFile(cluster.agent.paths.log)).includes("restart the agent to register anew");
      }, { within });
      await assert.rejects(admin.get(resources.nodes, { name: nodeName }, { signal }), isApiNotFound);
      await restart(cluster);
      const after = await seen.ready();
      assert.notEqual(after.metadata?.uid, before?.metadata?.uid);
      await waitFor("a lease of the new object", async () => {
        return (await seen.lease())?.metadata?.ownerReferences?.[0]?.uid === after.metadata?.uid;
      }, { within });
    });
  });
});
