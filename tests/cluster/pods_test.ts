import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Pod, PodCondition, PodSpec } from "../../mod/kube/types.ts";
import { exists } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { box, pod, shell } from "../node/support.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";
import { ClusterView, hasCondition, patience } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";
/** A command that takes no notice of being told to end. */
const stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"];

const condition = (pod: Pod | undefined, type: string): PodCondition | undefined =>
  pod?.status?.conditions?.find((one) => one.type === type);
const ended = ({ status }: Pod) => status?.phase === "Failed" || status?.phase === "Succeeded";

Deno.test("pods of a real API server live and end on the node as they should", async (t) => {
  await withClusterNode({ name: "api-pods", controllers: true }, async (member) => {
    const { admin, agent, nodeName } = member;
    const view = new ClusterView(member);
    await view.nodeCondition("Ready", "True");
    const create = (name: string, spec: PodSpec, metadata: Pod["metadata"] = {}) =>
      view.createPod(name, { nodeName, ...spec }, metadata);
    const uidOf = (made: Pod) => made.metadata?.uid ?? "";
    /** Waits until neither the runtime nor the disk has anything of a pod. */
    const swept = (uid: string) =>
      waitFor(`nothing to be left of ${uid}`, async () => {
        const known = (await agent.pods()).some((one) => one.uid === uid);
        return !known && !await exists(`${agent.paths.kubelet}/pods/${uid}`);
      }, { within: patience });

    await t.step("a status tells all; few writes bring it", async () => {
      const made = await create("whole", {
        containers: [box("main", { resources: { requests: { cpu: "0.010", memory: "8Mi" } } })],
      });
      const { status = {} } = await view.ready("whole");
      assert.deepEqual([status.phase, status.qosClass, status.observedGeneration], ["Running", "Burstable", 1]);
      assert(status.hostIP && status.hostIPs?.[0]?.ip === status.hostIP, JSON.stringify(status));
      assert(status.podIP && status.podIPs?.[0]?.ip === status.podIP && status.startTime);
      const types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
      assert.deepEqual(status.conditions?.map((one) => `${one.type} ${one.status} ${one.observedGeneration}`), [
        ...types.map((type) => `${type} True 1`),
      ]);
      const [main] = status.containerStatuses ?? [];
      assert(main?.state?.running?.startedAt && main.containerID && main.imageID && main.ready && main.started);
      // Nothing differs any more: the object stays as it is, also for an agent that starts anew.
      const settled = (await view.pod("whole"))?.metadata?.resourceVersion;
      await agent.kill();
      agent.start();
      await agent.healthy(patience);
      const other = await create("other", { containers: [box("main")] });
      await view.ready("other");
      assert.equal((await view.pod("whole"))?.metadata?.resourceVersion, settled);
      await view.deletePod("other");
      await view.gone("other");
      await swept(uidOf(other));
      await view.deletePod("whole");
      await view.gone("whole");
      await swept(uidOf(made));
    });

    await t.step("deleted within its grace, with a shorter one later, and by force: nothing is left", async () => {
      const made: Pod[] = [];
      for (const name of ["patient", "forced"]) {
        made.push(
          await create(name, {
            terminationGracePeriodSeconds: name === "patient" ? 3600 : 2,
            containers: [box("main", { command: stubborn })],
          }),
        );
      }
      await view.ready("patient");
      await view.ready("forced");
      await view.deletePod("patient");
      await view.podUntil(
        "patient",
        "to be on its way out",
        ({ metadata }) => metadata?.deletionTimestamp !== undefined,
      );
      await view.deletePod("forced", 0);
      assert.equal(await view.pod("forced"), undefined);
      // The same name again while the other one still ends.
      const again = await create("forced", { containers: [box("main")] });
      await view.ready("forced");
      assert.equal((await view.pod("patient"))?.status?.phase, "Running");
      await view.deletePod("patient", 1);
      await view.gone("patient");
      for (const one of made) await swept(uidOf(one));
      assert.equal(uidOf(await view.ready("forced")), uidOf(again));
      await view.deletePod("forced");
      await view.gone("forced");
    });

    await t.step(
      "a job's pod tells how it ended and stays; one held by a finalizer has ended all the same",
      async () => {
        const job = await create("job", { restartPolicy: "Never", containers: [shell("main", "echo no; exit 3")] });
        const held = await create("held", { containers: [box("main")] }, { finalizers: ["example.com/hold"] });
        const failed = await view.podUntil("job", "to have ended", ended);
        const exit = failed.status?.containerStatuses?.[0]?.state?.terminated;
        assert.deepEqual([failed.status?.phase, exit?.exitCode, exit?.reason], ["Failed", 3, "Error"]);
        assert.deepEqual([condition(failed, "Ready")?.status, condition(failed, "Ready")?.reason], [
          "False",
          "PodFailed",
        ]);
        await view.ready("held");
        await view.deletePod("held");
        const over = await view.podUntil("held", "to have ended", ended);
        assert.equal(over.metadata?.deletionTimestamp !== undefined, true);
        assert.equal((await view.pod("job"))?.metadata?.uid, uidOf(job));
        await admin.patch(resources.pods, { namespace, name: "held" }, { metadata: { finalizers: null } }, {
          type: "merge",
          signal,
        });
        await view.gone("held");
        await view.deletePod("job");
        await view.gone("job");
        for (const one of [job, held]) await swept(uidOf(one));
      },
    );

    await t.step("a readiness gate waits for its condition, which is kept", async () => {
      const type = "example.com/up";
      await create("gated", { readinessGates: [{ conditionType: type }], containers: [box("main")] });
      const waiting = await view.podUntil(
        "gated",
        "to have its containers ready",
        hasCondition("ContainersReady", "True"),
      );
      assert.equal(condition(waiting, "Ready")?.reason, "ReadinessGatesNotReady");
      await setCondition(member, "gated", { type, status: "True" });
      const ready = await view.ready("gated");
      assert.equal(condition(ready, type)?.status, "True");
      await setCondition(member, "gated", { type, status: "False" });
      await view.podUntil("gated", "not to be ready", hasCondition("Ready", "False"));
      await view.deletePod("gated");
      await view.gone("gated");
    });

    await t.step("an ephemeral container joins, a new image replaces its container", async () => {
      const made = await create("changing", { containers: [box("main"), box("other")] });
      await view.ready("changing");
      const extra = { ...box("debug"), targetContainerName: "main" };
      await admin.patch(resources.pods, { namespace, name: "changing" }, { spec: { ephemeralContainers: [extra] } }, {
        type: "strategic-merge",
        subresource: "ephemeralcontainers",
        signal,
      });
      await view.podUntil(
        "changing",
        "to have the ephemeral container run",
        ({ status }) => status?.ephemeralContainerStatuses?.[0]?.state?.running !== undefined,
      );
      const image = "localhost/web:1";
      await admin.patch(resources.pods, { namespace, name: "changing" }, {
        spec: { containers: [{ name: "other", image }] },
      }, {
        type: "strategic-merge",
        signal,
      });
      const renewed = await view.podUntil(
        "changing",
        "to have the new image",
        ({ status }) =>
          status?.containerStatuses?.some((one) => one.name === "other" && one.restartCount === 1) ?? false,
      );
      assert.equal(renewed.status?.observedGeneration, 3);
      assert.equal(renewed.status?.containerStatuses?.find((one) => one.name === "main")?.restartCount, 0);
      await view.deletePod("changing");
      await view.gone("changing");
      await swept(uidOf(made));
    });

    await t.step("a pod that does not fit is told why and is never started", async () => {
      await create("huge", { containers: [box("main", { resources: { requests: { cpu: "1000" } } })] });
      const refused = await view.podUntil("huge", "to be refused", ended);
      assert.deepEqual([refused.status?.phase, refused.status?.reason], ["Failed", "OutOfcpu"]);
      await waitFor(
        "its event",
        async () => (await view.events("huge")).some((event) => event.startsWith("OutOfcpu")),
        {
          within: patience,
        },
      );
      await view.deletePod("huge");
      await view.gone("huge");
    });

    await t.step(
      "a manifest that is deleted and put back at once: its pod comes again, counted on, under its mirror",
      async () => {
        const manifest = pod("blinks", { containers: [box("main")] });
        await agent.putManifest("blinks.json", manifest);
        const name = `blinks-${nodeName}`;
        const mirror = await view.ready(name);
        await agent.removeManifest("blinks.json");
        await agent.putManifest("blinks.json", manifest);
        const again = await view.podUntil(
          name,
          "to have come again",
          ({ status }) =>
            status?.containerStatuses?.[0]?.restartCount === 1 &&
            status.containerStatuses[0].state?.running !== undefined,
        );
        assert.equal(again.metadata?.uid, mirror.metadata?.uid);
        // Put in its place as it was, it is the same manifest.
        await agent.putManifest("blinks.json", manifest);
        await agent.removeManifest("blinks.json");
        await view.gone(name);
      },
    );

    await t.step(
      "the agent killed -9: no container and no readiness changes; what happened meanwhile is made up for",
      async () => {
        const readinessProbe = { exec: { command: ["true"] }, periodSeconds: 1 };
        for (const name of ["steady", "leaves", "vanishes"]) {
          await create(name, { containers: [box("main", { readinessProbe })] });
        }
        await agent.putManifest("still.json", pod("still", { containers: [box("main")] }));
        const before = await view.ready("steady");
        const leaves = await view.ready("leaves"), vanishes = await view.ready("vanishes");
        const mirror = await view.ready(`still-${nodeName}`);
        await agent.kill("SIGKILL");
        await view.deletePod("leaves");
        await view.deletePod("vanishes", 0);
        await create("comes", { containers: [box("main")] });
        agent.start();
        await view.gone("leaves");
        await view.ready("comes");
        for (const one of [leaves, vanishes]) await swept(uidOf(one));
        const after = await view.pod("steady");
        assert.deepEqual(after?.status, before.status);
        assert.equal(after?.metadata?.resourceVersion, before.metadata?.resourceVersion);
        const shown = await view.pod(`still-${nodeName}`);
        assert.deepEqual([shown?.metadata?.uid, shown?.status], [mirror.metadata?.uid, mirror.status]);
        await agent.removeManifest("still.json");
        await view.gone(`still-${nodeName}`);
        for (const name of ["steady", "comes"]) {
          await view.deletePod(name);
          await view.gone(name);
        }
      },
    );
  });
});

async function setCondition({ admin }: ClusterNode, name: string, condition: PodCondition): Promise<void> {
  await admin.patch(resources.pods, { namespace, name }, { status: { conditions: [condition] } }, {
    type: "strategic-merge",
    subresource: "status",
    signal,
  });
}
