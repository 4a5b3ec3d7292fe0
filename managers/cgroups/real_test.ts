import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import { silent } from "../../mod/base/log.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { detectCgroups, GroupTree, type Hierarchies } from "./hierarchies.ts";
import { createCgroupManager } from "./manager.ts";

async function usable(): Promise<Hierarchies | undefined> {
  const found = await detectCgroups(createDenoHost()).catch(() => undefined);
  return Deno.uid() === 0 ? found : undefined;
}
const hierarchies = await usable();

Deno.test({
  name: "real kernel: a pod's group is made, joined, killed and removed",
  ignore: hierarchies === undefined,
  async fn() {
    if (!hierarchies) return;
    const host = createDenoHost();
    const clock = systemClock;
    const cgroupRoot = `/denolet-test-${Deno.pid}`;
    const tree = new GroupTree({ host, clock, hierarchies });
    const pod: BoundPod = {
      metadata: { name: "p", namespace: "ns", uid: "real-1" },
      spec: {
        containers: [{ name: "c", resources: { limits: { cpu: "500m", memory: "64Mi" }, requests: { cpu: "250m" } } }],
      },
    };
    const manager = createCgroupManager({
      host,
      clock,
      log: silent,
      hierarchies,
      driver: "cgroupfs",
      cgroupRoot,
      podPidsLimit: 50,
      cpuCFSQuota: true,
      cpuCFSQuotaPeriod: 100_000,
      nodeCapacity: { cpu: 2000n, memory: 1n << 30n },
      enforcePods: false,
    });
    await assert.rejects(manager.setUpNode(), { code: "Cgroup" });
    await tree.make(cgroupRoot);
    const child = new Deno.Command("/bin/sleep", { args: ["1000"] }).spawn();
    try {
      await manager.setUpNode();
      await manager.ensurePod(pod);
      await manager.ensurePod(pod);
      assert.equal(await manager.podExists(pod), true);
      const path = manager.parentOf(pod);
      const file = (controller: string, name: string) => `${hierarchies.roots.get(controller)}${path}/${name}`;
      if (hierarchies.version === 1) {
        assert.equal((await host.readText(file("cpu", "cpu.shares"))).trim(), "256");
        assert.equal((await host.readText(file("cpu", "cpu.cfs_quota_us"))).trim(), "50000");
        assert.equal((await host.readText(file("memory", "memory.limit_in_bytes"))).trim(), String(64 << 20));
      }
      // Every controller takes a process: cpusets are filled.
      for (const base of new Set(hierarchies.roots.values())) {
        await host.mkdir(`${base}${path}/c1`);
        if (base === hierarchies.roots.get("cpuset") && hierarchies.version === 1) {
          for (const f of ["cpuset.cpus", "cpuset.mems"]) {
            await host.writeControl(`${base}${path}/c1/${f}`, (await host.readText(`${base}${path}/${f}`)).trim());
          }
        }
        await host.writeControl(`${base}${path}/c1/cgroup.procs`, String(child.pid));
      }
      assert.deepEqual(await manager.podsWithGroups(), ["real-1"]);
      await manager.destroyPod("real-1");
      assert.equal((await child.status).signal, "SIGKILL");
      assert.deepEqual(await manager.podsWithGroups(), []);
    } finally {
      host.kill(child.pid, "SIGKILL");
      await child.status;
      await tree.remove(cgroupRoot);
      assert.equal(await tree.anywhere(cgroupRoot), false);
    }
  },
});
