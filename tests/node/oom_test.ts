import assert from "@assert";
import { waitFor } from "../../scripts/lib/wait.ts";
import { versions } from "./harness.ts";
import { agentProgram, Observer, patience, pod, shell, untilEnded, withObserver } from "./support.ts";

const limited = { resources: { limits: { memory: "20Mi" } } };
/** Takes far more memory than the limit, in a child process of the shell's. */
const hungry = "head -c 200000000 /dev/zero | tail";

for (const containerd of versions) {
  Deno.test(`containerd ${containerd}: what ran out of memory is told, in the status and in the journal`, async () => {
    await withObserver({ name: `t-oom-${containerd}`, containerd }, async (seen) => {
      const { agent } = seen.node;
      await agent.putManifest(
        "hungry.yaml",
        pod("hungry", { restartPolicy: "Never", containers: [shell("main", `exec tail /dev/zero`, limited)] }),
      );
      await agent.putManifest(
        "parent.yaml",
        pod("parent", { containers: [shell("main", `${hungry}; echo lived on; ${untilEnded[2]}`, limited)] }),
      );
      const status = await seen.phase("hungry", "Failed");
      const { terminated } = Observer.of(status, "main").state ?? {};
      assert.deepEqual([terminated?.reason, terminated?.exitCode], ["OOMKilled", 137]);

      await waitFor("the parent to live on", async () => (await seen.log("parent")).join("\n").includes("lived on"), {
        within: patience,
      });
      const lives = await seen.ready("parent");
      assert.equal(Observer.of(lives, "main").restartCount, 0, "one process is killed, not the container");

      for (const [name, process] of [["hungry", "tail"], ["parent", "tail"]] as const) {
        const { text } = await waitFor(`explain to name the process of ${name}`, async () => {
          const { stdout } = await agentProgram(["explain", name, "--root-dir", agent.paths.kubelet], {
            run: agent.paths.run,
          });
          return /OOMKill main/.test(stdout) && { text: stdout };
        }, { within: patience });
        // The pod's limit is its one container's: which of both is met first is the kernel's affair.
        const said = new RegExp(
          `OOMKill main: the kernel killed process ${process} \\(pid \\d+\\): (container main|the pod) was at its memory limit`,
        );
        assert.match(text, said);
      }
      const events = (await seen.records()).filter((one) => one.msg === "event" && one.reason === "SystemOOM");
      assert.deepEqual(events, [], "the machine itself had memory");
      await agent.drain();
      await seen.nothingLeft();
    });
  });
}
