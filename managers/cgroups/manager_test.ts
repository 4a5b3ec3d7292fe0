import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { errno, FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { fakeCgroupV1, fakeCgroupV2, processesDie } from "./fake_kernel.ts";
import { detectCgroups } from "./hierarchies.ts";
import { type CgroupManagerOptions, createCgroupManager } from "./manager.ts";

const root = "/sys/fs/cgroup";

function pod(uid: string, resources?: Record<string, Record<string, string>>): BoundPod {
  return {
    metadata: { name: uid, namespace: "ns", uid },
    spec: { containers: [{ name: "c", ...(resources ? { resources } : {}) }] },
  };
}
const guaranteed = pod("g-1", { limits: { cpu: "500m", memory: "64Mi" }, requests: { cpu: "500m", memory: "64Mi" } });
const burstable = pod("b-1", { requests: { cpu: "250m" } });
const bestEffort = pod("e-1");

async function manager(host: FakeHost, more: Partial<CgroupManagerOptions> = {}) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const options: CgroupManagerOptions = {
    host,
    clock,
    log,
    hierarchies: await detectCgroups(host),
    driver: "cgroupfs",
    cgroupRoot: "/",
    podPidsLimit: 100,
    cpuCFSQuota: true,
    cpuCFSQuotaPeriod: 100_000,
    nodeCapacity: { cpu: 4000n, memory: 8n << 30n, pids: 32768n },
    enforcePods: false,
    ...more,
  };
  return { manager: createCgroupManager(options), clock, log };
}

/** Lets simulated time pass until the work has ended. */
async function through<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let done = false;
  const mark = () => void (done = true);
  work.then(mark, mark);
  for (let i = 0; !done && i < 1000; i++) {
    await turn();
    if (!done) await clock.step();
  }
  return await work;
}

const read = (host: FakeHost, path: string) => host.text(`${root}/${path}`)?.trim();

Deno.test("detectCgroups: v1, co-mounted controllers, v2, nothing", async () => {
  const v1 = new FakeHost();
  fakeCgroupV1(v1, ["cpu,cpuacct", "cpuset", "memory", "pids"]);
  v1.putNode(`${root}/cpu`, "symlink", "cpu,cpuacct");
  v1.putNode(`${root}/cpuacct`, "symlink", "cpu,cpuacct");
  const found = await detectCgroups(v1);
  assert.equal(found.version, 1);
  assert.equal(found.roots.get("cpuacct"), `${root}/cpu,cpuacct`);
  const v2 = new FakeHost();
  fakeCgroupV2(v2, ["cpu", "cpuset", "io", "memory"]);
  assert.deepEqual(await detectCgroups(v2), {
    version: 2,
    roots: new Map([["cpu", root], ["cpuset", root], ["memory", root]]),
  });
  await assert.rejects(detectCgroups(new FakeHost()), { code: "Cgroup", message: /cpu, cpuset, memory are not avail/ });
});

Deno.test("v1: node groups, pod limits, cpuset copied down", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  const { manager: m } = await manager(host, { enforcePods: true, reserved: { cpu: 1000n, memory: 1n << 30n } });
  await m.setUpNode();
  assert.equal(read(host, "cpu/kubepods/cpu.shares"), "3072");
  assert.equal(read(host, "memory/kubepods/memory.limit_in_bytes"), String(7n << 30n));
  assert.equal(read(host, "pids/kubepods/pids.max"), "32768");
  assert.equal(read(host, "cpu/kubepods/besteffort/cpu.shares"), "2");
  assert.equal(read(host, "cpu/kubepods/cpu.cfs_quota_us"), "-1");
  assert.equal(m.parentOf(burstable), "/kubepods/burstable/podb-1");
  assert.equal(await m.podExists(guaranteed), false);
  for (const p of [guaranteed, burstable, bestEffort]) await m.ensurePod(p);
  assert.equal(await m.podExists(guaranteed), true);
  assert.equal(read(host, "cpu/kubepods/podg-1/cpu.shares"), "512");
  assert.equal(read(host, "cpu/kubepods/podg-1/cpu.cfs_quota_us"), "50000");
  assert.equal(read(host, "memory/kubepods/podg-1/memory.limit_in_bytes"), String(64 << 20));
  assert.equal(read(host, "pids/kubepods/podg-1/pids.max"), "100");
  assert.equal(read(host, "cpuset/kubepods/podg-1/cpuset.cpus"), "0-3");
  assert.equal(read(host, "cpuset/kubepods/podg-1/cpuset.mems"), "0");
  assert.equal(read(host, "cpu/kubepods/burstable/podb-1/cpu.shares"), "256");
  assert.equal(read(host, "cpu/kubepods/besteffort/pode-1/cpu.shares"), "2");
  await m.minimiseCpu("g-1");
  await m.minimiseCpu("none");
  assert.equal(read(host, "cpu/kubepods/podg-1/cpu.shares"), "2");
  await m.ensurePod(guaranteed);
  assert.equal(read(host, "cpu/kubepods/podg-1/cpu.shares"), "512");
  // A removal that was cut short has left it in some hierarchies only.
  await host.remove("/sys/fs/cgroup/cpu/kubepods/podg-1");
  await m.minimiseCpu("g-1");
  await m.ensurePod(guaranteed);
  await m.updateQos([guaranteed, burstable, bestEffort]);
  assert.equal(read(host, "cpu/kubepods/burstable/cpu.shares"), "256");
  // Again: nothing changes, QoS shares stay.
  await m.setUpNode();
  assert.equal(read(host, "cpu/kubepods/burstable/cpu.shares"), "256");
  assert.deepEqual(await m.podsWithGroups(), ["b-1", "e-1", "g-1"]);
});

Deno.test("looking for the groups of pods is called off when the agent ends", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  const { manager: m } = await manager(host);
  await m.setUpNode();
  const ended = new AbortController();
  const looking = m.podsWithGroups(ended.signal);
  ended.abort();
  await assert.rejects(looking, { code: "Aborted" });
});

Deno.test("v2: controllers are enabled level by level", async () => {
  const host = new FakeHost();
  fakeCgroupV2(host);
  const { manager: m } = await manager(host, { hugePageSizes: ["2MB"], allCpus: true });
  await m.setUpNode();
  await m.ensurePod(guaranteed);
  await m.ensurePod(burstable);
  assert.equal(read(host, "kubepods/cpu.weight"), "157");
  assert.equal(read(host, "kubepods/cpuset.cpus"), "0-3");
  assert.equal(read(host, "kubepods/burstable/hugetlb.2MB.max"), String(2n ** 62n));
  assert.equal(read(host, "kubepods/podg-1/cpu.max"), "50000 100000");
  assert.equal(read(host, "kubepods/podg-1/memory.max"), String(64 << 20));
  assert.equal(read(host, "kubepods/podg-1/hugetlb.2MB.max"), "0");
  assert.equal(read(host, "kubepods/burstable/podb-1/cpu.weight"), "10");
  assert.equal(read(host, "kubepods/burstable/cgroup.subtree_control"), "cpu cpuset memory hugetlb pids");
  assert.equal(await m.podExists(burstable), true);
  // A group that lost its controllers counts as gone.
  host.put(`${root}/kubepods/burstable/podb-1/cgroup.controllers`, "cpu memory\n");
  assert.equal(await m.podExists(burstable), false);
});

Deno.test("a cgroupRoot of one's own must exist with all controllers", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  await host.mkdir(`${root}/cpu/agents`);
  const { manager: m } = await manager(host, { cgroupRoot: "/agents" });
  await assert.rejects(m.setUpNode(), {
    code: "Cgroup",
    message: /cgroupRoot \/agents \(\/agents\) must exist with all controllers; it lacks cpuacct, cpuset, memory/,
  });
  assert.equal(host.exists(`${root}/cpu/agents/kubepods`), false);
});

Deno.test("destroyPod kills only what is inside the pod's group and removes it under any QoS", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  processesDie(host);
  const { manager: m, clock } = await manager(host);
  await m.setUpNode();
  await m.ensurePod(burstable);
  await m.ensurePod(bestEffort);
  await host.mkdir(`${root}/memory/kubepods/burstable/podb-1/c1/inner`);
  await host.writeControl(`${root}/memory/kubepods/burstable/podb-1/c1/inner/cgroup.procs`, "77");
  host.put(`${root}/pids/kubepods/burstable/podb-1/cgroup.procs`, "78\n0\n1\n");
  host.onKill = ((die) => (pid: number, signal: string) => {
    die?.(pid, signal);
    host.put(`${root}/pids/kubepods/burstable/podb-1/cgroup.procs`, "");
  })(host.onKill);
  await host.writeControl(`${root}/pids/kubepods/besteffort/pode-1/cgroup.procs`, "99");
  await through(clock, m.destroyPod("b-1"));
  assert.deepEqual(host.kills.map((k) => k.pid), [77, 78]);
  assert.deepEqual(await m.podsWithGroups(), ["e-1"]);
  assert.equal(host.exists(`${root}/memory/kubepods/burstable/podb-1`), false);
  await through(clock, m.destroyPod("b-1"));
  await assert.rejects(m.destroyPod("../burstable"), { code: "Cgroup" });
});

Deno.test("hybrid machine: what the runtime makes in the unified hierarchy goes with the pod's group", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host, ["cpu", "cpuset", "memory", "pids", "systemd", "unified"]);
  const { manager: m, clock } = await manager(host);
  assert.equal(m.version, 1);
  await m.setUpNode();
  await m.ensurePod(bestEffort);
  const group = `${root}/unified/kubepods/besteffort/pode-1`;
  await host.mkdir(`${group}/container`);
  await through(clock, m.destroyPod("e-1"));
  assert.equal(host.exists(group), false);
});

Deno.test("destroyPod gives up on processes that don't die after five rounds, and says which", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  const { manager: m, clock } = await manager(host);
  await m.ensurePod(bestEffort);
  await host.writeControl(`${root}/cpu/kubepods/besteffort/pode-1/cgroup.procs`, "5");
  await assert.rejects(through(clock, m.destroyPod("e-1")), {
    code: "Cgroup",
    message: /pode-1: processes 5 survived/,
  });
  assert.equal(host.kills.length, 5);
  assert.deepEqual(await m.podsWithGroups(), ["e-1"]);
});

Deno.test("destroyPod waits while the kernel says busy", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  const { manager: m, clock } = await manager(host);
  await m.ensurePod(bestEffort);
  let busy = 3;
  host.fault((op, path) => op === "remove" && path.includes("pode-1") && busy-- > 0 ? errno("EBUSY") : undefined);
  await through(clock, m.destroyPod("e-1"));
  assert.deepEqual(await m.podsWithGroups(), []);
  await m.ensurePod(bestEffort);
  busy = Infinity;
  await assert.rejects(through(clock, m.destroyPod("e-1")), {
    code: "Cgroup",
    message: /cannot remove cgroup.*in use/,
  });
});

Deno.test("limits that the kernel refuses name the group, the file and the value", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  const { manager: m } = await manager(host);
  host.fault((op, path) => op === "writeControl" && path.endsWith("limit_in_bytes") ? errno("EBUSY") : undefined);
  await assert.rejects(m.ensurePod(guaranteed), {
    code: "Cgroup",
    message: /cgroup \/kubepods\/podg-1: cannot set memory.limit_in_bytes to 67108864: .*uses more than that now/,
  });
  await assert.rejects(m.setUpNode(), /Failed to update Node Allocatable Limits "\/kubepods"/);
  assert.ok(host.exists(`${root}/cpu/kubepods/besteffort`), "QoS groups are made all the same");
});

Deno.test("reserved groups must exist; compressible-only touches only CPU", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  const group = { purpose: "kube reserved", cgroup: "/kube", limits: { cpu: 100n, memory: 5n } } as const;
  const first = await manager(host, { reservedGroups: [{ ...group, compressibleOnly: true }] });
  await assert.rejects(
    first.manager.setUpNode(),
    /Failed to enforce kube reserved limits on cgroup "\/kube": it must exist/,
  );
  for (const name of ["cpu", "cpuacct", "cpuset", "memory", "pids", "systemd"]) {
    await host.mkdir(`${root}/${name}/kube`);
  }
  await first.manager.setUpNode();
  assert.equal(read(host, "cpu/kube/cpu.shares"), "102");
  assert.equal(read(host, "memory/kube/memory.limit_in_bytes"), "9223372036854771712");
  const second = await manager(host, { reservedGroups: [{ ...group, compressibleOnly: false }] });
  await second.manager.setUpNode();
  assert.equal(read(host, "memory/kube/memory.limit_in_bytes"), "5");
});

Deno.test("killProcesses ends one container's processes, or all of the pod's, and no one else's", async () => {
  const host = new FakeHost();
  fakeCgroupV1(host);
  processesDie(host);
  const { manager: m, clock } = await manager(host);
  await m.ensurePod(bestEffort);
  await m.ensurePod(burstable);
  const [one, two] = ["aaaaaaaa01", "aaaaaaaa02"];
  const put = async (group: string, pids: number[]) => {
    for (const controller of ["cpu", "memory"]) {
      await host.mkdir(`${root}/${controller}/${group}`);
      for (const pid of pids) await host.writeControl(`${root}/${controller}/${group}/cgroup.procs`, String(pid));
    }
  };
  await put(`kubepods/besteffort/pode-1/${one}`, [11, 12]);
  await put(`kubepods/besteffort/pode-1/${one}/inner`, [13]);
  await put(`kubepods/besteffort/pode-1/cri-containerd-${two}.scope`, [21]);
  await put(`kubepods/burstable/podb-1/${one}`, [31]);
  assert.deepEqual(await m.processesOf("e-1", one), [11, 12, 13]);
  assert.deepEqual(await m.processesOf("e-1", two), [21]);
  assert.equal(await m.processesOf("e-1", "aaaaaaaa"), undefined);
  assert.equal(await m.processesOf("e-1", "../podb-1/aaaaaaaa01"), undefined);
  assert.equal(await m.processesOf("nobody"), undefined);
  assert.deepEqual(await through(clock, m.killProcesses("e-1", one)), [11, 12, 13]);
  assert.deepEqual(host.kills.map((k) => k.pid).sort(), [11, 12, 13]);
  assert.deepEqual(await through(clock, m.killProcesses("e-1")), [21]);
  assert.deepEqual(await m.processesOf("b-1"), [31]);
});

Deno.test("v2: a kernel that can kill a whole group does it, an older one is told each process", async () => {
  for (const whole of [true, false]) {
    const host = new FakeHost();
    fakeCgroupV2(host);
    const { manager: m, clock } = await manager(host);
    await m.ensurePod(bestEffort);
    const group = `${root}/kubepods/besteffort/pode-1`;
    host.put(`${group}/cgroup.procs`, "11\n12\n");
    if (whole) host.put(`${group}/cgroup.kill`, "");
    else processesDie(host);
    const killing = m.killProcesses("e-1");
    await turn();
    assert.deepEqual([host.text(`${group}/cgroup.kill`)?.trim(), host.kills.length], whole ? ["1", 0] : [undefined, 2]);
    host.put(`${group}/cgroup.procs`, "");
    assert.deepEqual(await through(clock, killing), [11, 12]);
  }
});

Deno.test("v2 with MemoryQoS: pods keep their requests, and the groups above keep the sum", async () => {
  const host = new FakeHost();
  fakeCgroupV2(host);
  const memoryQos = { throttlingFactor: 0.9, tiered: true, allocatable: 1n << 33n };
  const group = { purpose: "kube reserved", cgroup: "/kube", compressibleOnly: false } as const;
  const kept: unknown[] = [];
  const { manager: m } = await manager(host, {
    memoryQos,
    reservedGroups: [{ ...group, limits: { memory: 4096n } }],
    onMemoryKept: (now) => kept.push(now),
  });
  await host.writeControl(`${root}/cgroup.subtree_control`, "+cpu +cpuset +memory +pids +hugetlb");
  await host.mkdir(`${root}/kube`);
  await m.setUpNode();
  const asks = pod("b-2", { requests: { memory: "32Mi" } });
  await m.ensurePod(guaranteed);
  await m.ensurePod(asks);
  await m.ensurePod(bestEffort);
  await m.updateQos([guaranteed, asks, bestEffort]);
  assert.deepEqual(
    [
      "kubepods/memory.min",
      "kubepods/memory.low",
      "kubepods/burstable/memory.low",
      "kubepods/podg-1/memory.min",
      "kubepods/burstable/podb-2/memory.low",
      "kubepods/besteffort/pode-1/memory.low",
      "kube/memory.min",
    ].map((file) => read(host, file)),
    [String(96 << 20), "0", String(32 << 20), String(64 << 20), String(32 << 20), "0", "4096"],
  );
  await m.updateQos([]);
  assert.deepEqual([read(host, "kubepods/memory.min"), read(host, "kubepods/burstable/memory.low")], ["0", "0"]);
  assert.deepEqual(kept, [{ min: 64n << 20n, low: 32n << 20n }, { min: 0n, low: 0n }]);
});
