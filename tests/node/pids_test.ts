import assert from "@assert";
import { cgroupValue, pod, shell, untilEnded, withObserver } from "./support.ts";

Deno.test("podPidsLimit: a pod's processes are counted together, and no more are let in", async () => {
  await withObserver({ name: "t-pids", config: { podPidsLimit: 40 } }, async (seen) => {
    const { agent } = seen.node;
    const running = { command: untilEnded };
    await agent.putManifest(
      "many.yaml",
      pod("many", { containers: [shell("main", "", running), shell("other", "", running)] }),
    );
    await agent.putManifest("calm.yaml", pod("calm", { containers: [shell("main", "", running)] }));
    await seen.ready("many");
    await seen.ready("calm");
    const group = `${agent.paths.cgroup}/kubepods/besteffort/pod${await seen.uid("many")}`;
    assert.equal(await cgroupValue("pids", group, "pids.max"), "40");

    // Each stays: the shell is told when the kernel lets no more in.
    const bomb = "i=0; while [ $i -lt 60 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done; echo all of them";
    const { out, code } = await seen.exec("many", bomb);
    assert.ok(code !== 0 || !out.includes("all of them"), `60 processes were let in: ${out}`);
    // The shell that was told has ended.
    const now = Number(await cgroupValue("pids", group, "pids.current"));
    assert.ok(now >= 38 && now <= 40, `${now} processes`);
    // The other container of the pod shares the limit; another pod does not.
    const other = await seen.exec("many", "sleep 1 & sleep 1 & sleep 1 & wait", "other").catch(() => ({ code: 1 }));
    assert.notEqual(other.code, 0);
    assert.equal((await seen.exec("calm", "sleep 0 & wait")).code, 0);
    await agent.drain();
    await seen.nothingLeft();
  });
});
