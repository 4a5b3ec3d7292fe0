import assert from "@assert";
import { waitFor } from "../../scripts/lib/wait.ts";
import { exists } from "../../scripts/lib/files.ts";
import { agentProgram, box, type Observer, patience, pod, shell, untilEnded, withObserver } from "./support.ts";

/** The bounds of the steps of a pod's end that the agent keeps, and the patience of a machine under load on top. */
const forced = 2 * 35_000 + patience;

/** The shim of a pod's containers: the parent of a container's first process. */
async function shimOf(seen: Observer, name: string): Promise<{ shim: number; main: number }> {
  const { info } = await seen.detail((await seen.running(name)).id);
  const stat = await Deno.readTextFile(`/proc/${info.pid}/stat`);
  const shim = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  assert.match(await Deno.readTextFile(`/proc/${shim}/cmdline`), /containerd-shim/);
  return { shim, main: info.pid };
}

/** True when a process runs; a dead one that nobody has asked about does not. */
async function runs(pid: number): Promise<boolean> {
  if (!await exists(`/proc/${pid}`)) return false;
  return !/^\d+ \(.*\) [ZX]/s.test(await Deno.readTextFile(`/proc/${pid}/stat`));
}

Deno.test("a runtime that hangs for one pod: its processes are killed, it is told why, other pods come and go", async () => {
  await withObserver({ name: "t-end" }, async (seen) => {
    const { agent } = seen.node;
    const short = { terminationGracePeriodSeconds: 2 };
    await agent.putManifest(
      "stuck.yaml",
      pod("stuck", { ...short, containers: [box("main", { command: untilEnded })] }),
    );
    await agent.putManifest(
      "other.yaml",
      pod("other", { ...short, containers: [box("main", { command: untilEnded })] }),
    );
    await seen.ready("stuck");
    await seen.ready("other");
    const [stuck, other] = [await seen.uid("stuck"), await seen.uid("other")];
    const { shim, main } = await shimOf(seen, "stuck");
    Deno.kill(shim, "SIGSTOP");
    try {
      await agent.removeManifest("stuck.yaml");
      await agent.removeManifest("other.yaml");
      await agent.putManifest("new.yaml", pod("new", { ...short, containers: [shell("main", untilEnded[2] ?? "")] }));
      await seen.ready("new");
      await seen.gone("other", other);
      assert.ok(await runs(main), "the pod that hangs has its time");
      const early = await agentProgram(["explain", "stuck", "--root-dir", agent.paths.kubelet], {
        run: agent.paths.run,
      });
      assert.match(early.stdout, /Why: The pod is being ended/, "also while no step of that is over");

      await waitFor("the agent to kill what the runtime does not", async () => !await runs(main), { within: forced });
      const told = await waitFor("explain to tell the steps", async () => {
        const { stdout } = await agentProgram(["explain", "stuck", "--root-dir", agent.paths.kubelet], {
          run: agent.paths.run,
        });
        return /CgroupKill main/.test(stdout) && { stdout };
      }, { within: patience });
      assert.match(told.stdout, /the runtime did not end main, so the agent killed the processes through the control/);
      // The call's end is told by whoever is first at the deadline: gRPC here, or containerd.
      assert.match(
        told.stdout,
        /StopContainer main \(3\d(\.\d)?s\): the pod is no longer in its source FAILED: \S/,
      );
      assert.match(
        told.stdout,
        /StopContainer main \(3\d(\.\d)?s\): .*killed at once, as StopContainer with a grace of 2 s/,
      );
      assert.match(
        told.stdout,
        /CgroupKill main \(\d+(ms|(\.\d)?s)\): .*the \d+ process(es)? of its control group killed, as StopCont/,
      );
    } finally {
      Deno.kill(shim, "SIGCONT");
    }
    await waitFor(
      "the pod to go once the runtime works again",
      async () => (await seen.containers("stuck")).length === 0,
      {
        within: forced,
      },
    );
    await seen.gone("stuck", stuck);
    await agent.drain();
    await seen.nothingLeft();
  });
});
