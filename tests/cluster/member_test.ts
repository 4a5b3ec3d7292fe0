import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Secret } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { box, pod, shell } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView, patience } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";

Deno.test("an agent joins a real cluster and serves it", async (t) => {
  await withClusterNode({ name: "member" }, async (member) => {
    const { admin, agent, plane, nodeName } = member;
    const view = new ClusterView(member);

    await t.step("the node registers, becomes ready, and has a lease of its own", async () => {
      const node = await view.nodeCondition("Ready", "True");
      assert.equal(node.metadata?.labels?.["kubernetes.io/hostname"], nodeName);
      assert.equal(node.status?.nodeInfo?.kubeletVersion, "v1.36.3");
      const lease = await waitFor(
        "the node's lease",
        () => admin.get(resources.leases, { namespace: "kube-node-lease", name: nodeName }, { signal }),
        { within: patience },
      );
      assert.equal(lease.spec?.holderIdentity, nodeName);
      assert.equal(lease.metadata?.ownerReferences?.[0]?.uid, node.metadata?.uid);
    });

    await t.step("a pod is scheduled, runs and becomes ready; its events are there", async () => {
      await view.createPod("web", { containers: [box("main")] });
      const web = await view.ready("web");
      assert.equal(web.spec?.nodeName, nodeName);
      assert.match(web.status?.podIP ?? "", /^\d+\./);
      assert(web.status?.hostIP);
      const events = await waitFor("the events of the pod", async () => {
        const seen = await view.events("web");
        return seen.some((event) => event.startsWith("Started")) ? seen : undefined;
      }, { within: patience });
      assert(events.some((event) => event.startsWith("Pulled")), events.join(" | "));
    });

    await t.step("secrets and tokens come into a pod, an update within seconds", async () => {
      const secret: Secret = { metadata: { name: "s", namespace }, stringData: { word: "one" } };
      const made = await admin.create(resources.secrets, secret, { signal });
      const line = "while :; do cat /s/word; echo; sleep 0.2; done";
      await view.createPod("reader", {
        volumes: [{ name: "s", secret: { secretName: "s" } }],
        containers: [shell("main", line, {
          volumeMounts: [{ name: "s", mountPath: "/s" }],
          env: [{ name: "WORD", valueFrom: { secretKeyRef: { name: "s", key: "word" } } }],
        })],
      });
      const reader = await view.ready("reader");
      const dir = `${agent.paths.kubelet}/pods/${reader.metadata?.uid}/volumes`;
      const word = () => Deno.readTextFile(`${dir}/kubernetes.io~secret/s/word`);
      assert.equal(await word(), "one");
      const token = reader.spec?.volumes?.find(({ projected }) => projected)?.name ?? "";
      assert.match(await Deno.readTextFile(`${dir}/kubernetes.io~projected/${token}/token`), /^ey/);
      await admin.replace(resources.secrets, { ...made, data: { word: btoa("two") } }, { signal });
      await waitFor("the new word in the pod's volume", async () => await word() === "two", { within: patience });
    });

    await t.step("a static pod gets a mirror, which comes again when it is deleted", async () => {
      await agent.putManifest("still.json", pod("still", { containers: [box("main")] }));
      const name = `still-${nodeName}`;
      const mirror = await view.ready(name);
      assert(mirror.metadata?.annotations?.["kubernetes.io/config.mirror"]);
      await view.deletePod(name, 0);
      await view.podUntil(name, "to be another one", ({ metadata }) => metadata?.uid !== mirror.metadata?.uid);
      await agent.removeManifest("still.json");
      await view.gone(name);
    });

    await t.step("logs come through the API server", async () => {
      await view.createPod("talker", { restartPolicy: "Never", containers: [shell("main", "echo hello")] });
      await view.podUntil("talker", "to have succeeded", ({ status }) => status?.phase === "Succeeded");
      const { status, text } = await plane.raw(`/api/v1/namespaces/default/pods/talker/log`);
      assert.equal(`${status} ${text}`, "200 hello\n");
    });

    await t.step("pods go on while the API server is away, and are told when it is back", async () => {
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await agent.putManifest("alone.json", pod("alone", { containers: [box("main")] }));
      await agent.until("the static pod to run", (pods) => {
        return pods.some(({ name, ready }) => name === `alone-${nodeName}` && ready);
      });
      await plane.startComponent("kube-apiserver");
      await view.ready(`alone-${nodeName}`);
      await view.nodeCondition("Ready", "True");
      await agent.removeManifest("alone.json");
      await view.gone(`alone-${nodeName}`);
    });

    await t.step("deleted pods end and their objects go", async () => {
      for (const name of ["web", "reader", "talker"]) await view.deletePod(name);
      for (const name of ["web", "reader", "talker"]) await view.gone(name);
    });
  });
});
