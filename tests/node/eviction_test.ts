import assert from "@assert";
import type { PodStatus } from "../../mod/kube/types.ts";
import { exists } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { versions } from "./harness.ts";
import { box, Observer, patience, pod, shell, withObserver } from "./support.ts";

/** What makes pods from manifests evictable at all. */
const evictable = "--denolet-eviction-static-pods";
/** More than any disk has free. */
const neverEnough = { evictionHard: { "nodefs.available": "99%" }, evictionPressureTransitionPeriod: "2s" };
/** Thresholds that are not met, and disk usage that is measured anew each second. */
const calm = { evictionHard: { "memory.available": "1Mi" }, volumeStatsAggPeriod: "1s" };

const storage = (limit: string) => ({ resources: { limits: { "ephemeral-storage": limit } } });
/** Writes three MiB and runs on. */
const fill = (path: string) => `head -c 3145728 /dev/zero > ${path}; trap 'exit 0' TERM; sleep 86400 & wait $!`;

function condition(status: PodStatus, type: string) {
  return status.conditions?.find((one) => one.type === type);
}

/** Starts the agent anew with other settings. */
async function again(seen: Observer, config: Readonly<Record<string, unknown>>, ...flags: string[]): Promise<number> {
  const { agent } = seen.node;
  await agent.kill();
  const before = JSON.parse(await Deno.readTextFile(agent.paths.config)) as Record<string, unknown>;
  await agent.configure({ ...before, ...config });
  const since = (await seen.records()).length;
  agent.start(flags);
  await agent.healthy();
  return since;
}

async function journal(seen: Observer, action: string) {
  const text = await Deno.readTextFile(`${seen.node.agent.paths.kubelet}/journal.jsonl`);
  return text.split("\n").filter((line) => line.includes(`"${action}"`))
    .map((line) => JSON.parse(line) as { pod?: { name: string }; reason: string; message: string });
}

for (const version of versions) {
  Deno.test(`storage limits of pods end them on containerd ${version}`, async (t) => {
    await withObserver(
      { name: `ev-${version}`, containerd: version, config: calm, flags: [evictable] },
      async (seen) => {
        const { agent } = seen.node;
        const mounted = [{ name: "data", mountPath: "/data" }];
        const pods = {
          volume: pod("volume", {
            containers: [shell("main", fill("/data/x"), { volumeMounts: mounted })],
            volumes: [{ name: "data", emptyDir: { sizeLimit: "2Mi" } }],
          }),
          whole: pod("whole", {
            containers: [shell("main", fill("/data/x"), { volumeMounts: mounted, ...storage("2Mi") })],
            volumes: [{ name: "data", emptyDir: {} }],
          }),
          layer: pod("layer", {
            containers: [shell("main", fill("/x"), storage("2Mi")), box("side", storage("1Gi"))],
          }),
          within: pod("within", {
            containers: [shell("main", fill("/data/x"), { volumeMounts: mounted, ...storage("40Mi") })],
            volumes: [{ name: "data", emptyDir: { sizeLimit: "20Mi" } }],
          }),
          critical: pod("critical", {
            priority: 2_000_001_000,
            containers: [shell("main", fill("/data/x"), { volumeMounts: mounted })],
            volumes: [{ name: "data", emptyDir: { sizeLimit: "2Mi" } }],
          }),
        };
        for (const [name, manifest] of Object.entries(pods)) await agent.putManifest(`${name}.yaml`, manifest);

        for (
          const [name, signal, message] of [
            ["volume", "emptydirfs.limit", 'Usage of EmptyDir volume "data" exceeds the limit "2Mi". '],
            [
              "whole",
              "ephemeralpodfs.limit",
              "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ",
            ],
            [
              "layer",
              "ephemeralcontainerfs.limit",
              'Container main exceeded its local ephemeral storage limit "2Mi". ',
            ],
          ] as const
        ) {
          await t.step(signal, async () => {
            const status = await seen.phase(name, "Failed");
            assert.equal(status.reason, "Evicted");
            assert.equal(status.message, message);
            assert.equal(condition(status, "DisruptionTarget"), undefined);
            assert.equal((await seen.event(name, "Evicted")).message, message);
            const [record] = (await journal(seen, "Evict")).filter((one) => one.pod?.name === seen.full(name));
            assert.equal(record?.message, `${signal}: ${message}`);
          });
        }

        await t.step("pods within their limits and critical ones run on; an evicted one stays ended", async () => {
          const since = await again(seen, {}, evictable);
          await seen.logged("the first pods", (one) => String(one.msg).includes("Pod status"), since);
          await seen.running("within");
          await seen.running("critical");
          assert.equal((await seen.status("volume"))?.reason, "Evicted");
          assert.equal((await journal(seen, "Evict")).length, 3);
        });

        await t.step("nothing is kept of an evicted pod but its status", async () => {
          await waitFor("the containers to be collected", async () => (await seen.containers("volume")).length === 0, {
            within: patience * 2,
          });
        });
      },
    );
  });
}

Deno.test("a disk that runs full: conditions, evictions and admission, and back", async (t) => {
  await withObserver({ name: "ev-disk", config: calm }, async (seen) => {
    const { agent } = seen.node;
    await agent.putManifest("web.yaml", pod("web", { containers: [box("main")] }));
    await agent.putManifest("critical.yaml", pod("critical", { priority: 2_000_001_000, containers: [box("main")] }));
    await seen.ready("web");
    await seen.ready("critical");
    const under = (since: number) => seen.logged("pressure", (one) => one.msg === "the node is under pressure", since);

    await t.step("pods from manifests are critical unless asked otherwise: none goes, and they come in", async () => {
      const since = await again(seen, neverEnough);
      assert.equal((await under(since)).condition, "DiskPressure");
      const tried = await seen.logged("what is tried", (one) => one.reason === "EvictionThresholdMet", since);
      assert.equal(tried.message, "Attempting to reclaim ephemeral-storage");
      await seen.logged("nobody goes", (one) => String(one.msg).startsWith("no pod may be evicted"), since);
      await agent.putManifest("late.yaml", pod("late", { containers: [box("main")] }));
      await seen.ready("late");
      await seen.running("web");
    });

    await t.step("a dry run tells who would go, and lets everybody in", async () => {
      const since = await again(seen, neverEnough, evictable, "--denolet-eviction-dry-run");
      const told = await seen.logged("who would go", (one) => String(one.msg).startsWith("dry run"), since);
      assert.match(String(told.pod), /^(web|late)-/);
      assert.equal((await journal(seen, "WouldEvict"))[0]?.reason, "EvictionDryRun");
      await agent.putManifest("later.yaml", pod("later", { containers: [box("main")] }));
      await seen.ready("later");
      await seen.running("web");
      await agent.removeManifest("late.yaml");
      await agent.removeManifest("later.yaml");
      await waitFor(
        "web to be alone",
        async () => (await seen.containers("late")).length + (await seen.containers("later")).length === 0,
        { within: patience },
      );
    });

    await t.step("with the option pods go, and none but critical ones come in", async () => {
      const since = await again(seen, neverEnough, evictable);
      await under(since);
      const status = await seen.phase("web", "Failed");
      assert.equal(status.reason, "Evicted");
      const figures = /Threshold quantity: \d+\w*, available: \d+\w*\. /;
      assert.match(
        status.message ?? "",
        new RegExp(`^The node was low on resource: ephemeral-storage\\. ${figures.source}`),
      );
      const disruption = condition(status, "DisruptionTarget");
      assert.equal(disruption?.status, "True");
      assert.equal(disruption?.reason, "TerminationByKubelet");
      assert.equal(disruption?.message, status.message);
      await agent.putManifest("refused.yaml", pod("refused", { containers: [box("main")] }));
      const refused = await seen.phase("refused", "Failed");
      assert.equal(refused.reason, "Evicted");
      assert.equal(refused.message, "Pod was rejected: The node had condition: [DiskPressure]. ");
      const allowed = pod("allowed", { priority: 2_000_001_000, containers: [box("main")] });
      await agent.putManifest("allowed.yaml", allowed);
      await seen.ready("allowed");
      await seen.running("critical");
    });

    await t.step("when there is room again, pods come in", async () => {
      // Lost time is read where the kernel tells of it, on cgroup v1 too.
      const psi = await exists("/proc/pressure/memory") ? ["--denolet-eviction-psi=memory.full.avg10=99"] : [];
      await again(seen, calm, evictable, ...psi);
      await agent.putManifest("welcome.yaml", pod("welcome", { containers: [box("main")] }));
      await seen.ready("welcome");
      const unread = (await seen.records()).filter(({ msg }) => / cannot be read/.test(String(msg)));
      assert.deepEqual(unread, []);
    });
  });
});

Deno.test("memory and process ids that run short: who goes first", async (t) => {
  await withObserver({ name: "ev-rank", config: calm }, async (seen) => {
    const { agent } = seen.node;
    const order = async () => (await journal(seen, "Evict")).map((one) => one.pod?.name.replace(/-ev-rank$/, ""));
    const keep = (mebibytes: number) =>
      `x=$(head -c ${mebibytes * 2 ** 20} /dev/zero | tr '\\0' x); trap 'exit 0' TERM; sleep 86400 & wait $!`;

    await t.step("memory: above the request, then priority, then how much", async () => {
      const pods = {
        idle: pod("idle", { containers: [box("main")] }),
        hungry: pod("hungry", { containers: [shell("main", keep(24))] }),
        important: pod("important", { priority: 1000, containers: [shell("main", keep(32))] }),
        modest: pod("modest", { containers: [box("main", { resources: { requests: { memory: "256Mi" } } })] }),
      };
      for (const [name, manifest] of Object.entries(pods)) await agent.putManifest(`${name}.yaml`, manifest);
      for (const name of Object.keys(pods)) await seen.ready(name);
      await waitFor("the memory to be taken", async () => {
        return (await seen.out("important", "cat /proc/1/statm")).split(" ").map(Number)[1]! > 32 * 256;
      }, { within: patience });
      await again(seen, { evictionHard: { "memory.available": "99%" } }, evictable);
      const modest = await seen.phase("modest", "Failed");
      assert.deepEqual(await order(), ["hungry", "idle", "important", "modest"]);
      const low = "The node was low on resource: memory. Threshold quantity: ";
      const hungry = await seen.status("hungry");
      assert.ok(hungry?.message?.startsWith(low), hungry?.message);
      assert.match(
        hungry?.message ?? "",
        /Container main was using \d+\w*, request is 0, has larger consumption of memory\. $/,
      );
      assert.doesNotMatch(modest.message ?? "", /Container main/);
    });

    await t.step("process ids: priority, then how many", async () => {
      for (const name of ["idle", "hungry", "important", "modest"]) await agent.removeManifest(`${name}.yaml`);
      await again(seen, calm);
      const many = "for i in 1 2 3 4 5 6 7 8; do sleep 86400 & done; trap 'exit 0' TERM; wait";
      const pods = {
        few: pod("few", { containers: [box("main")] }),
        many: pod("many", { containers: [shell("main", many)] }),
        last: pod("last", { priority: 1000, containers: [shell("main", many)] }),
        first: pod("first", { priority: -10, containers: [box("main")] }),
      };
      for (const [name, manifest] of Object.entries(pods)) await agent.putManifest(`${name}.yaml`, manifest);
      for (const name of Object.keys(pods)) await seen.ready(name);
      await again(seen, { evictionHard: { "pid.available": "1G" } }, evictable);
      await seen.phase("last", "Failed");
      assert.deepEqual((await order()).slice(4), ["first", "many", "few", "last"]);
      const status = await seen.status("many");
      assert.match(
        status?.message ?? "",
        /^The node was low on resource: pids\. Threshold quantity: 1G, available: \d+\w*\. $/,
      );
    });
  });
});
