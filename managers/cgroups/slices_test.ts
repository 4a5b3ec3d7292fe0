import assert from "@assert";
import { limitProperties } from "./systemd.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { silent } from "../../mod/base/log.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { fakeCgroupV2 } from "./fake_kernel.ts";
import { FakeSystemd } from "./fake_systemd.ts";
import { detectCgroups } from "./hierarchies.ts";
import { createCgroupManager } from "./manager.ts";

const root = "/sys/fs/cgroup";
const pod = (uid: string, cpu?: string): BoundPod => ({
  metadata: { name: uid, namespace: "ns", uid },
  spec: { containers: [{ name: "c", ...(cpu === undefined ? {} : { resources: { requests: { cpu } } }) }] },
});
const path = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb_1.slice";
const unit = "kubepods-burstable-podb_1.slice";

/** Lets simulated time pass until the work has ended; `between` is called after each step. */
async function through<T>(clock: FakeClock, work: Promise<T>, between: () => void = () => {}): Promise<T> {
  let done = false;
  const mark = () => void (done = true);
  work.then(mark, mark);
  for (let i = 0; !done && i < 1000; i++) {
    await turn();
    if (!done && await clock.step()) between();
  }
  return await work;
}

async function scene() {
  const host = new FakeHost();
  fakeCgroupV2(host);
  const clock = new FakeClock();
  const systemd = new FakeSystemd(host);
  const manager = createCgroupManager({
    host,
    clock,
    log: silent,
    hierarchies: await detectCgroups(host),
    driver: "systemd",
    cgroupRoot: "/",
    podPidsLimit: 100,
    cpuCFSQuota: true,
    cpuCFSQuotaPeriod: 100_000,
    nodeCapacity: { cpu: 4000n, memory: 8n << 30n, pids: 32768n },
    enforcePods: false,
    allCpus: true,
  });
  const read = (file: string) => host.text(`${root}${file}`)?.trim();
  return { host, clock, systemd, manager, read };
}

Deno.test("systemd: node, QoS and pod slices are units with the limits, and the files agree", async () => {
  const { host, systemd, manager, read } = await scene();
  await manager.setUpNode();
  await manager.ensurePod(pod("b-1", "250m"));
  assert.deepEqual([...systemd.units.keys()], [
    "kubepods.slice",
    "kubepods-burstable.slice",
    "kubepods-besteffort.slice",
    unit,
  ]);
  const props = (name: string, ...of: string[]) => of.map((p) => systemd.units.get(name)?.get(p)?.join(" "));
  assert.deepEqual(
    props("kubepods.slice", "Wants", "CPUWeight", "MemoryMax", "TasksMax", "AllowedCPUs", "DefaultDependencies"),
    ["1 -.slice", "157", String(8n << 30n), "32768", "1 15", "false"],
  );
  assert.deepEqual(props(unit, "Wants", "CPUWeight", "TasksMax", "AllowedCPUs", "CPUAccounting", "IOAccounting"), [
    "1 kubepods-burstable.slice",
    "10",
    "100",
    undefined,
    "true",
    "true",
  ]);
  assert.equal(manager.parentOf(pod("b-1", "250m")), path);
  assert.equal(read("/kubepods.slice/cpuset.cpus"), "0-3");
  assert.equal(read(`${path}/cpu.weight`), "10");
  assert.equal(read(`${path}/pids.max`), "100");
  systemd.runScope(unit);
  const calls = host.commands.length;
  await manager.ensurePod(pod("b-1", "250m"));
  assert.equal(host.commands.length, calls, "an unchanged pod costs no call");
  assert.deepEqual(await manager.podsWithGroups(), ["b-1"]);
});

Deno.test("systemd takes cpuset from groups that it does not know to use it: they are made whole again", async () => {
  const { clock, systemd, manager, read } = await scene();
  await through(clock, manager.setUpNode());
  await through(clock, manager.ensurePod(pod("b-1", "250m")));
  systemd.runScope(unit);
  await through(clock, manager.ensurePod(pod("b-2", "250m")));
  assert.equal(await manager.podExists(pod("b-1", "250m")), true, "a container keeps the controllers where it is");
  assert.match(read("/kubepods.slice/cgroup.controllers") ?? "", /cpuset/, "AllowedCPUs keeps it where pods are");
});

Deno.test("systemd: destroyPod stops the slice; a pod that returns meanwhile gets a new one", async () => {
  const { host, clock, systemd, manager } = await scene();
  await manager.setUpNode();
  await manager.ensurePod(pod("b-1", "250m"));
  systemd.slow = true;
  await through(clock, manager.destroyPod("b-1"));
  assert.deepEqual(await manager.podsWithGroups(), []);
  assert.ok(systemd.units.has(unit), "the stop is only queued");
  await through(clock, manager.ensurePod(pod("b-1", "250m")), () => systemd.settle());
  assert.deepEqual(await manager.podsWithGroups(), ["b-1"]);
  assert.ok(host.exists(root + path));
  systemd.slow = false;
  await through(clock, manager.destroyPod("b-1"));
  await through(clock, manager.destroyPod("b-1"));
  assert.equal(systemd.units.has(unit), false);
});

Deno.test("systemd: what it refuses names the unit and the remedy", async () => {
  const { host, clock, manager } = await scene();
  const answer = (stderr: string) => host.onRun = () => ({ code: 1, stdout: "", stderr });
  answer("Failed to connect to bus: No such file or directory");
  await assert.rejects(manager.ensurePod(pod("e-1")), {
    code: "Cgroup",
    message: /StartTransientUnit kubepods-besteffort-pode_1.slice: Failed to connect to bus.*is systemd running/,
  });
  answer("Unit was already loaded or has a fragment file.");
  await assert.rejects(through(clock, manager.ensurePod(pod("e-1"))), {
    code: "Cgroup",
    message: /did not make the group of kubepods-besteffort-pode_1.slice within 30 s \(systemctl status/,
  });
});

Deno.test("what a slice keeps of memory is a property on v2, so that systemd does not take it back", () => {
  const limits = { memoryMin: 4096n, memoryLow: 0n };
  assert.deepEqual(limitProperties(2, limits), [["MemoryMin", "t", "4096"], ["MemoryLow", "t", "0"]]);
  assert.deepEqual(limitProperties(1, limits), []);
});
