import assert from "@assert";
import { controlWrites, cpuMask, type GroupLimits } from "./limits.ts";
import { expandSlice, groupPath, parseRoot, podPart, podUidOf, qosName } from "./names.ts";
import { limitProperties } from "./systemd.ts";

const uid = "0a1b-2c3d";

Deno.test("group paths by driver, QoS and root", () => {
  const table: [string, "Guaranteed" | "Burstable" | "BestEffort", string, string][] = [
    ["/", "Guaranteed", "/kubepods/pod0a1b-2c3d", "/kubepods.slice/kubepods-pod0a1b_2c3d.slice"],
    [
      "/",
      "Burstable",
      "/kubepods/burstable/pod0a1b-2c3d",
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_2c3d.slice",
    ],
    [
      "/agent-1",
      "BestEffort",
      "/agent-1/kubepods/besteffort/pod0a1b-2c3d",
      "/agent_1.slice/agent_1-kubepods.slice/agent_1-kubepods-besteffort.slice/agent_1-kubepods-besteffort-pod0a1b_2c3d.slice",
    ],
  ];
  for (const [root, qos, cgroupfs, systemd] of table) {
    const name = [...qosName([...parseRoot(root), "kubepods"], qos), podPart(uid)];
    assert.equal(groupPath(name, "cgroupfs"), cgroupfs);
    assert.equal(groupPath(name, "systemd"), systemd);
    const parent = name.slice(0, -1);
    assert.equal(podUidOf(cgroupfs.split("/").at(-1) ?? "", parent, "cgroupfs"), uid);
    assert.equal(podUidOf(systemd.split("/").at(-1) ?? "", parent, "systemd"), uid);
  }
  assert.equal(groupPath([], "systemd"), "/");
  assert.equal(podUidOf("kubepods-burstable.slice", ["kubepods"], "systemd"), undefined);
  assert.equal(podUidOf("burstable", ["kubepods"], "cgroupfs"), undefined);
});

Deno.test("names that could lead elsewhere are refused", () => {
  for (const bad of ["", "..", "a/b", "../x", "a\0b", "x".repeat(300), "a..b"]) {
    assert.throws(() => podPart(bad), { code: "Cgroup" }, bad);
  }
  for (const bad of ["", "rel", "/a/../b", "/./a"]) assert.throws(() => parseRoot(bad), { code: "Cgroup" }, bad);
  assert.throws(() => expandSlice("a--b.slice"), { code: "Cgroup" });
});

Deno.test("control files by version", () => {
  const all: GroupLimits = {
    cpuShares: 512,
    cpuQuota: 50_000,
    cpuPeriod: 100_000,
    memoryLimit: 1000n,
    pidsLimit: 7,
    cpus: "0-1",
    hugepages: { "2MB": 4n },
  };
  const text = (version: 1 | 2, limits: GroupLimits) =>
    controlWrites(version, limits).map((w) => `${w.file}=${w.value}`);
  assert.deepEqual(text(1, all), [
    "cpuset.cpus=0-1",
    "cpu.shares=512",
    "cpu.cfs_period_us=100000",
    "cpu.cfs_quota_us=50000",
    "memory.limit_in_bytes=1000",
    "pids.max=7",
    "hugetlb.2MB.limit_in_bytes=4",
  ]);
  assert.deepEqual(text(2, all), [
    "cpuset.cpus=0-1",
    "cpu.weight=20",
    "cpu.max=50000 100000",
    "memory.max=1000",
    "pids.max=7",
    "hugetlb.2MB.max=4",
  ]);
  assert.deepEqual(text(2, { cpuQuota: -1, cpuPeriod: 50_000, memoryLimit: -1n, pidsLimit: -1 }), [
    "cpu.max=max 50000",
    "memory.max=max",
    "pids.max=max",
  ]);
  assert.deepEqual(text(1, { cpuQuota: 0, memoryLimit: 0n, pidsLimit: 0 }), []);
  assert.deepEqual(text(2, { cpuShares: 262_144 }), ["cpu.weight=10000"]);
});

Deno.test("systemd properties: quota in whole percents, rounded up; CPU masks", () => {
  const props = limitProperties(2, {
    cpuShares: 2,
    cpuQuota: 12_345,
    cpuPeriod: 100_000,
    memoryLimit: 5n,
    cpus: "0-8",
  });
  assert.deepEqual(props, [
    ["CPUWeight", "t", "1"],
    ["CPUQuotaPeriodUSec", "t", "100000"],
    ["CPUQuotaPerSecUSec", "t", "130000"],
    ["MemoryMax", "t", "5"],
    ["AllowedCPUs", "ay", "2", "255", "1"],
  ]);
  assert.deepEqual(limitProperties(1, { cpuShares: 2, memoryLimit: 5n, pidsLimit: -1 }), [
    ["CPUShares", "t", "2"],
    ["MemoryLimit", "t", "5"],
    ["TasksMax", "t", "18446744073709551615"],
  ]);
  assert.deepEqual(cpuMask("1,8-9,x,70000"), [2, 3]);
});
