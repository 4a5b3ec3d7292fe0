import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import { ContainerStatsSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { silent } from "../../mod/base/log.ts";
import { systemRandom } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { createStats, type StatsOptions } from "./collector.ts";
import { fakeHierarchies, putGroup } from "./fake_groups.ts";

const group = "/kubepods/burstable/podu1";
const main = "c".repeat(64), sandbox = "a".repeat(64);

function container(id: string, name: string, state: ObservedContainer["state"]): ObservedContainer {
  return {
    id,
    name,
    restartCount: 0,
    sandboxId: sandbox,
    state,
    createdAt: 5000,
    startedAt: 6000,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "busybox",
    imageRef: "busybox",
    hash: 1,
    annotations: {},
    logPath: "",
    mounts: [],
  };
}

function observedPod(containers: readonly ObservedContainer[], uid = "u1"): ObservedPod {
  const box = { attempt: 0, ready: true, createdAt: 4000, ips: [], hostNetwork: false, hasNetwork: true, handler: "" };
  return { uid, name: "web", namespace: "ns", sandboxes: [{ id: sandbox, ...box }], containers, readAt: 0 };
}

const pod: BoundPod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "ns", uid: "u1" },
  spec: { containers: [], volumes: [{ name: "cache", emptyDir: {} }, { name: "out", hostPath: { path: "/srv" } }] },
};

function setUp(version: 1 | 2, more: Partial<StatsOptions> = {}) {
  const clock = new FakeClock(1_800_000_000_000);
  const host = new FakeHost({ clock });
  const { procRoot } = host;
  host.put(`${procRoot}/stat`, "cpu 1 2 3\nbtime 1700000000\n");
  host.put(`${procRoot}/meminfo`, "MemTotal: 100 kB\nSwapTotal:       0 kB\nSwapFree:       0 kB\n");
  host.put(`${procRoot}/loadavg`, "0.1 0.2 0.3 2/133 999\n");
  host.put(`${procRoot}/sys/kernel/pid_max`, "32768\n");
  host.put(`${procRoot}/sys/kernel/threads-max`, "200000\n");
  const line = (name: string, rx: number, tx: number) => `${name}: ${rx} 2 0 0 0 0 0 0 ${tx} 3 1 0 0 0 0 0\n`;
  host.put(`${procRoot}/1/net/dev`, `Inter-| Receive | Transmit\n${line("lo", 1, 1)}${line("  eth0", 700, 800)}`);
  host.put(`${procRoot}/77/net/dev`, line("eth0", 10, 20));
  putGroup(host, version, "/", { cpuMs: 100_000, usage: 9000, inactiveFile: 1000, rss: 4000 });
  putGroup(host, version, "/kubepods", { cpuMs: 900, usage: 900, inactiveFile: 0, rss: 400 });
  putGroup(host, version, group, { cpuMs: 500, usage: 800, inactiveFile: 100, rss: 300, pids: 2 });
  const groupOf = { [main]: `${group}/cri-containerd-${main}.scope`, [sandbox]: `${group}/${sandbox}` };
  putGroup(host, version, groupOf[main] ?? "", { cpuMs: 400, usage: 600, inactiveFile: 700, rss: 200, limit: 4096 });
  putGroup(host, version, groupOf[sandbox] ?? "", { cpuMs: 1, usage: 60, inactiveFile: 0, rss: 20 });
  host.put(`${host.cgroupRoot}${version === 1 ? "/memory" : ""}${group}/${sandbox}/cgroup.procs`, "77\n");
  host.putDir("/root");
  host.put("/root/pods/u1/volumes/kubernetes.io~empty-dir/cache/file", "x".repeat(5000));
  host.put("/logs/ns_web_u1/main/0.log", "hello");
  let observed: ObservedPod[] = [observedPod([container(main, "main", "running"), container("d", "old", "exited")])];
  const runtime = new FakeRuntime({ clock, random: systemRandom });
  const scope = new Scope("test");
  const stats = createStats(
    {
      host,
      clock,
      log: silent,
      scope,
      runtime,
      images: runtime,
      hierarchies: fakeHierarchies(host, version),
      nodeName: "node1",
      rootDir: "/root",
      podLogsDir: "/logs",
      observed: () => observed,
      podByUid: (uid) => uid === "u1" ? pod : undefined,
      podGroups: (uid) => [`/kubepods/pod${uid}`, `/kubepods/burstable/pod${uid}`],
      systemGroups: [{ name: "pods", group: "/kubepods" }, { name: "misc", group: "/none" }],
      ...more,
    } satisfies StatsOptions,
  );
  return { clock, host, scope, stats, groupOf, see: (pods: ObservedPod[]) => observed = pods };
}

for (const version of [1, 2] as const) {
  Deno.test(`cgroup v${version}: a pod, its container and the node, each from its own group`, async () => {
    const { stats, clock, host, scope, groupOf } = setUp(version);
    await using _scope = scope;
    const { node, pods: [web, ...others] } = await stats.collect("summary");
    assert.deepEqual(others, []);
    if (!web) throw new Error("the pod is not told");
    assert.equal(node.startedAt, 1_700_000_000_000);
    assert.equal(node.sample.cpuNs, 100e9);
    assert.equal(node.sample.memory?.workingSet, 8000);
    assert.deepEqual(node.system.map((each) => [each.name, each.sample.memory?.usage]), [["pods", 900]]);
    assert.deepEqual(node.rlimit, { at: clock.now(), maxPid: 32_768, running: 133 });
    assert.deepEqual(node.network?.interfaces.map((each) => [each.name, each.rxBytes, each.txBytes, each.txErrors]), [
      ["eth0", 700, 800, 1],
    ]);
    assert.deepEqual([web.startedAt, web.sample?.cpuNs, web.sample?.memory?.workingSet, web.sample?.pids], [
      4000,
      500e6,
      700,
      2,
    ]);
    assert.deepEqual(web.network?.interfaces.map((each) => [each.rxBytes, each.txBytes]), [[10, 20]]);
    const [own, ...more] = web.containers;
    assert.deepEqual(more, [], "an exited container is not told");
    assert.deepEqual([own?.name, own?.startedAt, own?.group], ["main", 5000, groupOf[main]]);
    assert.equal(own?.sample?.memory?.workingSet, 0, "never below 0");
    assert.equal(own?.sample?.memory?.limit, 4096);
    assert.equal(own?.sample?.memory?.rss, 200);
    assert.equal(own?.sample?.swap?.limit, version === 1 ? 4096 : undefined);
    assert.equal(own?.logs?.used, 4096, "whole blocks");
    assert.deepEqual(web.volumes?.map((each) => [each.name, each.used, each.inodesUsed]), [["cache", 8192, 2]]);
    assert.equal(web.ephemeralStorage?.used, 4096 + 8192);
    const psi = version === 1 ? undefined : { total: 2_000_000, avg10: 1.5, avg60: 0.2, avg300: 0 };
    assert.deepEqual(own?.sample?.psi?.cpu?.some, psi);

    await clock.advance(2000);
    putGroup(host, version, group, { cpuMs: 700, usage: 800, inactiveFile: 100, rss: 300 });
    const [later] = (await stats.collect("summary")).pods;
    assert.equal(web.sample?.nanoCores, undefined, "one reading tells no rate");
    assert.equal(later?.sample?.nanoCores, 100_000_000, "200 ms in 2 s are a tenth of a core");
  });

  Deno.test(`cgroup v${version}: what cadvisor tells of a group`, async () => {
    const { stats, scope } = setUp(version);
    await using _scope = scope;
    const [web] = (await stats.collect("cadvisor")).pods;
    const sample = web?.containers[0]?.sample;
    const shares = version === 1 ? 1024 : 998; // weight 39
    assert.deepEqual(sample?.cpu, { shares, periodUs: 100_000, ...(version === 1 ? {} : { quotaUs: 50_000 }) });
    assert.deepEqual([sample?.userNs, sample?.systemNs], [70e6, 30e6]);
    assert.equal(sample?.throttling === undefined, version === 1, "throttling is of groups with a quota");
    assert.equal(web?.sandbox?.sample?.memory?.usage, 60);
  });
}

Deno.test("callers within a second share one collection; one that needs more has its own; nothing runs behind", async () => {
  const { stats, clock, host, scope } = setUp(2);
  await using _scope = scope;
  const reads = () => host.operations.filter(({ path }) => path === `${host.cgroupRoot}/cpu.stat`).length;
  const [first, second] = await Promise.all([stats.collect("summary"), stats.collect("resource")]);
  assert.equal(first, second);
  assert.equal(await stats.collect("resource"), first);
  assert.equal(reads(), 1);
  assert.equal((await stats.collect("cadvisor")).detail, "cadvisor");
  assert.equal(reads(), 2);
  await scope.settled();
  assert.equal(clock.pending, 0);
  await clock.advance(1001);
  assert.equal(reads(), 2);
  assert.equal((await stats.collect("resource", 2000)).at, first.at, "young enough for who asked");
  assert.equal(reads(), 2);
  assert.notEqual(await stats.collect("resource"), first);
  assert.equal(reads(), 3);
});

Deno.test("the node alone: of pods only rates are kept; a whole summary serves as well", async () => {
  for (const version of [1, 2] as const) {
    const { stats, clock, host, scope } = setUp(version);
    await using _scope = scope;
    const ofPods = () => host.operations.flatMap(({ path }) => path.includes(group) ? [path.split("/").at(-1)] : []);
    assert.equal((await stats.collect("node")).detail, "node");
    assert.deepEqual([...new Set(ofPods())].filter((file) => file?.startsWith("memory.")), []);
    await clock.advance(2000);
    const whole = await stats.collect("summary");
    assert.ok(whole.pods[0]?.sample?.nanoCores !== undefined, "its rate is known at the first question");
    assert.ok(whole.pods[0]?.containers[0]?.sample?.nanoCores !== undefined);
    assert.equal(await stats.collect("node"), whole);
    await clock.advance(2000);
    const { node, pods } = await stats.collect("node");
    assert.deepEqual(pods, []);
    assert.ok(node.sample.memory && node.fs && node.rlimit);
  }
});

Deno.test("groups that vanish and pods without one leave the rest whole", async () => {
  const { stats, host, scope, see, clock } = setUp(1);
  await using _scope = scope;
  await stats.collect("summary");
  await clock.advance(2000);
  await host.removeTree(`${host.cgroupRoot}/memory${group}`);
  await host.removeTree(`${host.cgroupRoot}/cpuacct${group}`);
  see([observedPod([container(main, "main", "running")]), observedPod([container("e", "x", "running")], "u2")]);
  const { pods, node } = await stats.collect("summary");
  assert.deepEqual(pods.map((each) => [each.uid, each.sample, each.containers[0]?.sample]), [
    ["u1", undefined, undefined],
    ["u2", undefined, undefined],
  ]);
  assert.ok(node.sample.memory);
});

Deno.test("the node's own figures that cannot be read fail the collection, and the next one is made anew", async () => {
  const { stats, host, scope } = setUp(2);
  await using _scope = scope;
  {
    using _denied = host.denied(`${host.cgroupRoot}/memory.stat`);
    await assert.rejects(stats.collect("resource"), /memory\.stat/);
  }
  assert.ok((await stats.collect("resource")).node.sample.memory);
});

Deno.test("a container without a group that can be found is told as the runtime tells it, its pod as the sum", async () => {
  let [cpu, calls, up] = [1000n, 0, true];
  const runtime: StatsOptions["runtime"] = {
    listContainerStats() {
      calls++;
      if (!up) return Promise.reject(new Error("down"));
      return Promise.resolve([create(ContainerStatsSchema, {
        attributes: { id: "e" },
        cpu: { timestamp: cpu * 1_000_000n, usageCoreNanoSeconds: { value: cpu * 500_000n } },
        memory: { workingSetBytes: { value: 70n }, usageBytes: { value: 90n } },
      })]);
    },
  };
  const { stats, scope, see, clock } = setUp(2, { runtime });
  await using _scope = scope;
  await stats.collect("resource");
  assert.equal(calls, 0, "the runtime is not asked for what groups tell");
  await clock.advance(2000);
  see([observedPod([container("e", "x", "running"), container("f", "y", "running")], "u2")]);
  const [first] = (await stats.collect("resource")).pods;
  assert.deepEqual([first?.sample?.cpuNs, first?.sample?.memory?.workingSet], [500_000_000, 70]);
  assert.equal(first?.containers[1]?.sample, undefined);
  cpu = 12_000n;
  await clock.advance(11_000);
  assert.equal((await stats.collect("resource")).pods[0]?.sample?.cpuNs, 500_000_000, "nobody waits for the runtime");
  await scope.settled();
  await clock.advance(1100);
  assert.equal((await stats.collect("resource")).pods[0]?.sample?.nanoCores, 500_000_000);
  up = false;
  await clock.advance(11_000);
  await stats.collect("summary");
  await scope.settled();
  await clock.advance(1100);
  assert.equal((await stats.collect("summary")).pods[0]?.sample?.memory?.usage, 90, "what it told last");
  assert.equal(calls, 3);
});

Deno.test("open files, sockets and limits of a group's processes; the node's disks with what their devices did", async () => {
  const { stats, host, scope, groupOf } = setUp(2);
  await using _scope = scope;
  const { procRoot, cgroupRoot } = host;
  host.put(`${cgroupRoot}${groupOf[main]}/cgroup.procs`, "41\n42\n0\n");
  host.putNode(`${procRoot}/41/fd/0`, "symlink", "/dev/null");
  host.putNode(`${procRoot}/41/fd/3`, "symlink", "socket:[77]");
  host.put(`${procRoot}/41/limits`, "Max open files            1024                 4096                 files\n");
  host.putNode(`${procRoot}/42/fd/1`, "symlink", "socket:[78]");
  host.put(`${procRoot}/diskstats`, "   0 0 root 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0\n   7 0 short 1\n");
  const { pods: [web], node } = await stats.collect("cadvisor");
  const own = web?.containers[0]?.sample;
  assert.deepEqual(own?.processes, [41, 42], "0 stands for a process of another PID namespace");
  assert.deepEqual(own?.open, { descriptors: 3, sockets: 2, limit: 1024 });
  assert.equal(web?.sandbox?.sample?.open?.sockets, 0, "a process that is gone has nothing open");
  const [disk] = node.disks ?? [];
  assert.equal(disk?.fs.capacity, node.fs?.capacity);
  const { reads, sectorsRead, writeMs, inFlight, ioMs, weightedMs } = disk?.traffic ?? {};
  assert.deepEqual([reads, sectorsRead, writeMs, inFlight, ioMs, weightedMs], [1, 3, 8, 9, 10, 11]);
});

Deno.test("a volume in memory has the room of its own file system and is no ephemeral storage", async () => {
  const volumes = [
    { name: "fast", emptyDir: { medium: "Memory" } },
    { name: "cache", emptyDir: {} },
    { name: "facts", downwardAPI: {} },
    { name: "conf", configMap: { name: "c" } },
    { name: "never", emptyDir: {} },
  ];
  const claim = { at: 1, name: "data", claim: { name: "data-0", namespace: "ns" }, used: 7 };
  const { stats, host, scope } = setUp(2, {
    podByUid: () => ({ ...pod, spec: { containers: [], volumes } }),
    otherVolumes: (uid) => Promise.resolve(uid === "u1" ? [claim] : []),
  });
  await using _scope = scope;
  const of = (plugin: string, name: string) => `/root/pods/u1/volumes/kubernetes.io~${plugin}/${name}`;
  await host.mkdir(of("empty-dir", "fast"));
  await host.mount({ source: "tmpfs", target: of("empty-dir", "fast"), type: "tmpfs" });
  host.setSpace(of("empty-dir", "fast"), { total: 100, free: 60, available: 50, inodes: 10, inodesFree: 8 });
  host.put(`${of("empty-dir", "fast")}/x`, "12");
  host.put(`${of("downward-api", "facts")}/labels`, "a");
  host.put(`${of("configmap", "conf")}/key`, "value");
  const { pods: [web], node } = await stats.collect("summary");
  const shown = new Map(web?.volumes?.map((each) => [each.name, each]));
  assert.deepEqual([...shown.keys()], ["fast", "cache", "facts", "conf", "data"]);
  const fast = shown.get("fast");
  assert.deepEqual([fast?.capacity, fast?.available, fast?.inodesFree, fast?.inodesUsed], [100, 50, 8, 2]);
  assert.equal(shown.get("cache")?.capacity, node.fs?.capacity);
  assert.deepEqual(shown.get("data"), claim);
  const logs = web?.containers[0]?.logs?.used ?? NaN;
  const counted = (shown.get("cache")?.used ?? NaN) + (shown.get("conf")?.used ?? NaN);
  assert.equal(web?.ephemeralStorage?.used, logs + counted);
});

Deno.test("settings are read once a minute; what a kernel does not have is not looked for at each collection", async () => {
  const { stats, clock, host, scope, groupOf } = setUp(1);
  await using _scope = scope;
  const own = groupOf[main] ?? "";
  const reads = (file: string) => host.operations.filter(({ path }) => path.endsWith(`${own}/${file}`)).length;
  const limit = () => stats.collect("cadvisor").then(({ pods: [web] }) => web?.containers[0]?.sample?.memory?.limit);
  assert.equal(await limit(), 4096);
  putGroup(host, 1, own, { cpuMs: 400, usage: 600, inactiveFile: 700, rss: 200, limit: 8192 });
  await clock.advance(2000);
  assert.equal(await limit(), 4096);
  assert.equal(reads("memory.limit_in_bytes"), 1);
  assert.equal(
    reads("memory.kmem.usage_in_bytes") + reads("memory.max_usage_in_bytes"),
    0,
    "another group has shown that there are none",
  );
  await clock.advance(60_000);
  assert.equal(await limit(), 8192);
});

Deno.test("cgroup v2: a group without a controller does not hide the figures of others", async () => {
  const { stats, host, scope, groupOf } = setUp(2);
  await using _scope = scope;
  await host.remove(`${host.cgroupRoot}/kubepods/memory.current`);
  await host.remove(`${host.cgroupRoot}/kubepods/pids.current`);
  const { pods: [web], node: { system } } = await stats.collect("cadvisor");
  assert.deepEqual([system[0]?.sample.pids, system[0]?.sample.memory], [undefined, undefined]);
  assert.equal(web?.sample?.memory?.usage, 800);
  assert.equal(web?.containers[0]?.sample?.pids, 1, groupOf[main]);
});

Deno.test("a container that is younger than what the runtime told is asked about again, before the answer", async () => {
  let calls = 0;
  const runtime: StatsOptions["runtime"] = {
    listContainerStats: () => {
      calls++;
      const layer = { timestamp: 1n, usedBytes: { value: BigInt(calls) } };
      const ids = calls === 1 ? ["other"] : [main];
      return Promise.resolve(
        ids.map((id) => create(ContainerStatsSchema, { attributes: { id }, writableLayer: layer })),
      );
    },
  };
  const { stats, scope, see, clock } = setUp(2, { runtime });
  await using _scope = scope;
  const rootfs = () => stats.collect("summary").then(({ pods: [web] }) => web?.containers[0]?.rootfs?.used);
  see([]);
  await stats.collect("summary");
  await clock.advance(1100);
  see([observedPod([{ ...container(main, "main", "running"), createdAt: clock.now() }])]);
  assert.equal(await rootfs(), 2);
  await clock.advance(1100);
  await rootfs();
  assert.equal(calls, 2, "once it is told, not again");
});
