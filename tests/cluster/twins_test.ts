import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { withNode } from "../node/harness.ts";
import { box, pod } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView, patience } from "./support.ts";

const config = { nodeStatusUpdateFrequency: "2s", nodeLeaseDurationSeconds: 8 };

Deno.test("two agents of one node's name: neither ends, and containers of neither come and go", async () => {
  await withClusterNode({ name: "twin-a", config }, async (member) => {
    const { plane, agent: first, nodeName } = member;
    const view = new ClusterView(member);
    await view.nodeCondition("Ready", "True");
    const flags = [
      `--kubeconfig=${plane.dir}/node-${nodeName}.kubeconfig`,
      `--cert-dir=${plane.dir}/pki-b`,
      `--hostname-override=${nodeName}`,
    ];
    await withNode({ name: "twin-b", config, flags }, async ({ agent: second }) => {
      await first.putManifest("static.json", pod("static", { containers: [box("main")] }));
      await view.createPod("api", { nodeName, containers: [box("main")] });
      await view.ready("api");
      const runs = (name: string) => (pods: Awaited<ReturnType<typeof first.pods>>) =>
        pods.some((one) => one.name === name && one.containers[0]?.state === "running");
      for (const agent of [first, second]) await agent.until("the pod to run", runs("api"), patience);
      await first.until("the static pod to run", runs(`static-${nodeName}`), patience);
      const before = [await first.pods(), await second.pods()];
      // Its mirror is deleted by the one that does not know it, and made again, but not without a pause.
      const log = () => Deno.readTextFile(first.paths.log);
      const mirrors = async () => (await log()).split("creating the mirror pod").length;
      await waitFor(
        "the log to ask for another node",
        async () => (await log()).includes("another node of this name"),
        {
          within: patience,
        },
      );
      const made = await mirrors();
      await systemClock.sleep(12_000);
      assert(await mirrors() - made <= 4);
      assert.deepEqual([await first.pods(), await second.pods()], before);
      await view.deletePod("api");
      await view.gone("api");
      for (const agent of [first, second]) {
        await agent.until("the pod to go", (pods) => !pods.some(({ name }) => name === "api"), patience);
        await agent.healthy();
      }
    });
  });
});
