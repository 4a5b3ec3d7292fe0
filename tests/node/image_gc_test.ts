import assert from "@assert";
import { ImageService } from "../../cri/gen/runtime_pb.ts";
import { run } from "../../scripts/lib/command.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { versions } from "./harness.ts";
import { box, Observer, patience, pod, shell, withObserver } from "./support.ts";

const steady = pod("steady", { containers: [box("main")] });
const ended = pod("ended", {
  restartPolicy: "Never",
  containers: [shell("main", "exit 0", { image: "localhost/web:1" })],
});

/** A disk that is never empty enough. A minimum age of 0 would be the default of two minutes. */
const thresholds = { imageGCHighThresholdPercent: 1, imageGCLowThresholdPercent: 0, imageMinimumGCAge: "1ns" };

async function images(seen: Observer): Promise<string[]> {
  const { images } = await seen.cri.call(ImageService.method.listImages, {});
  return images.map((one) => one.repoTags[0] ?? one.id).toSorted();
}

/** Starts the agent anew, which collects at once, and waits until it has. */
async function collected(seen: Observer): Promise<void> {
  const { agent } = seen.node;
  await agent.kill();
  const since = (await seen.records()).length;
  agent.start();
  await agent.healthy();
  // The disk holds more than images.
  await seen.logged(
    "the end of a collection",
    (one) => one.msg === "node event" && one.reason === "FreeDiskSpaceFailed",
    since,
  );
}

const all = ["localhost/busybox:1", "localhost/pause:1", "localhost/web:1"];

for (const version of versions) {
  Deno.test(`images are collected on containerd ${version}`, async (t) => {
    await withObserver({
      name: `ig-${version}`,
      containerd: version,
      config: { imageGCHighThresholdPercent: 100 },
    }, async (seen) => {
      const { agent, containerd } = seen.node;
      await agent.putManifest("steady.yaml", steady);
      await agent.putManifest("ended.yaml", ended);
      await seen.ready("steady");
      await seen.phase("ended", "Succeeded");
      const config = JSON.parse(await Deno.readTextFile(agent.paths.config)) as object;
      await Deno.writeTextFile(agent.paths.config, JSON.stringify({ ...config, ...thresholds }));

      await t.step("what runs, what has ended and what sandboxes are made of keep their images", async () => {
        await collected(seen);
        assert.deepEqual(await images(seen), all);
      });

      await agent.removeManifest("ended.yaml");
      await waitFor("the pod to be gone", async () => (await seen.containers("ended")).length === 0, {
        within: patience,
      });

      if (version === "v2") {
        await t.step("an image that is pinned stays", async () => {
          const label = async (value: string) =>
            await run([
              `${containerd.binDir}/ctr`,
              ...["-a", containerd.socket, "-n", "k8s.io", "images", "label", "localhost/web:1"],
              `io.cri-containerd.pinned=${value}`,
            ]);
          const pinned = async (wanted: boolean) =>
            await waitFor(`pinned: ${wanted}`, async () => {
              const { images } = await seen.cri.call(ImageService.method.listImages, {});
              return images.find((one) => one.repoTags.includes("localhost/web:1"))?.pinned === wanted;
            }, { within: patience });
          await label("pinned");
          await pinned(true);
          await collected(seen);
          assert.deepEqual(await images(seen), all);
          await label("");
          await pinned(false);
        });
      }

      await t.step("an image that nothing uses goes, with its reason in the journal", async () => {
        // One that is seen and judged within one millisecond is too young still.
        for (let tries = 0; tries < 3 && (await images(seen)).length === all.length; tries++) await collected(seen);
        assert.deepEqual(await images(seen), all.slice(0, 2));
        const journal = await Deno.readTextFile(`${agent.paths.kubelet}/journal.jsonl`);
        const removals = journal.split("\n").filter((line) => line.includes('"RemoveImage"'))
          .map((line) => JSON.parse(line) as { reason: string; message: string; error?: string });
        assert.equal(removals.length, 1);
        assert.equal(removals[0]?.reason, "DiskUse");
        assert.match(removals[0]?.message ?? "", /^image localhost\/web:1: never used; \d+ % of the image file system/);
        assert.equal(removals[0]?.error, undefined);
      });

      await t.step("pods still start", async () => {
        await agent.putManifest("later.yaml", pod("later", { containers: [box("main")] }));
        await seen.ready("later");
        await seen.running("steady");
      });
    });
  });
}
