import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import { silent } from "../../mod/base/log.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { detectCgroups, GroupTree, type Hierarchies } from "./hierarchies.ts";
import { killGroup } from "./kill_group.ts";
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

/** Where a unified hierarchy is, beside others or alone; undefined without one, or one that cannot kill a group at once. */
async function unified(): Promise<string | undefined> {
  if (Deno.uid() !== 0) return undefined;
  const host = createDenoHost();
  const roots = [`${host.cgroupRoot}/unified`, host.cgroupRoot];
  for (const root of roots) if (await host.stat(`${root}/cgroup.controllers`)) return root;
  return undefined;
}
const v2 = await unified();

Deno.test({
  name: "real kernel: a v1 group whose processes begin others all the time, or are frozen, is killed",
  ignore: hierarchies?.version !== 1 || !hierarchies.roots.has("freezer") || !hierarchies.roots.has("pids"),
  async fn() {
    if (!hierarchies) return;
    const host = createDenoHost();
    const clock = systemClock;
    const roots = new Map([...hierarchies.roots].filter(([name]) => ["freezer", "pids"].includes(name)));
    const tree = new GroupTree({ host, clock, hierarchies: { version: 1, roots } });
    for (const frozen of [false, true]) {
      const path = `/denolet-kill1-${Deno.pid}`;
      const joins: string[] = [];
      for (const base of roots.values()) {
        await host.mkdir(`${base}${path}/inner`);
        joins.push(`echo $$ > ${base}${path}/inner/cgroup.procs`);
      }
      await host.writeControl(`${roots.get("pids")}${path}/pids.max`, "60");
      // Each child begins the next before it ends: whoever lists them is always a little late.
      const next = `while :; do (sleep 0.02; exec sleep 0.02) & sleep 0.01; done`;
      const line = `${joins.join("; ")}; (trap '' TERM; ${next}) & ${next}`;
      const child = new Deno.Command("/bin/sh", { args: ["-c", line], stdout: "null", stderr: "null" }).spawn();
      try {
        for (let i = 0; i < 500 && (await tree.pids(path)).length < 4; i++) await clock.sleep(10);
        if (frozen) await host.writeControl(`${roots.get("freezer")}${path}/inner/freezer.state`, "FROZEN");
        const killed = await killGroup({ host, clock, log: silent, tree }, path, "u");
        assert.ok(killed.includes(child.pid), `${killed.length} processes`);
        assert.equal((await child.status).signal, "SIGKILL");
      } finally {
        await tree.freeze(path, false);
        for (const pid of await tree.pids(path)) host.kill(pid, "SIGKILL");
        await child.status;
        await tree.remove(path);
        assert.equal(await tree.anywhere(path), false);
      }
    }
  },
});

Deno.test({
  name: "real kernel: a unified group is killed at once, with what its processes begin meanwhile",
  ignore: v2 === undefined,
  async fn() {
    if (v2 === undefined) return;
    const host = createDenoHost();
    const clock = systemClock;
    const tree = new GroupTree({ host, clock, hierarchies: { version: 2, roots: new Map([["any", v2]]) } });
    const path = `/denolet-kill-${Deno.pid}`;
    const inner = `${v2}${path}/inner`;
    await host.mkdir(inner);
    // Joins the group, then begins processes for as long as it lives.
    const line = `echo $$ > ${inner}/cgroup.procs; while :; do sleep 60 & sleep 0.01; done`;
    const child = new Deno.Command("/bin/sh", { args: ["-c", line], stdout: "null", stderr: "null" }).spawn();
    try {
      for (let i = 0; i < 500 && (await tree.pids(path)).length < 5; i++) await clock.sleep(10);
      const kills: number[] = [];
      const counting = {
        stat: (file: string) => host.stat(file),
        writeControl: (file: string, data: string) => host.writeControl(file, data),
        kill: (pid: number) => void kills.push(pid),
      };
      const killed = await killGroup({ host: counting, clock, log: silent, tree }, path, "u");
      assert.ok(killed.includes(child.pid) && killed.length >= 5, `${killed.length} processes`);
      assert.equal((await child.status).signal, "SIGKILL");
      assert.deepEqual(await tree.pids(path), []);
      if (await host.stat(`${v2}${path}/cgroup.kill`)) assert.deepEqual(kills, [], "the kernel did it");
    } finally {
      for (const pid of await tree.pids(path)) host.kill(pid, "SIGKILL");
      await child.status;
      await tree.remove(path);
      assert.equal(await tree.anywhere(path), false);
    }
  },
});
