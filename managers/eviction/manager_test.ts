import assert from "@assert";
import { KubeletError } from "../../mod/base/errors.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import { configSource } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { PodSample, StatsSnapshot } from "../stats/types.ts";
import { EvictionManager } from "./manager.ts";
import { containerStats, fs, Gi, hard, memory, Mi, pod, podStats, policy, snapshot } from "./testing.ts";
import { psiThresholds } from "./thresholds.ts";
import type { DiskLayout, Eviction, EvictionPolicy } from "./types.ts";

/** A node under a manager; what is free and who runs is set by the test. */
function setUp(own: Partial<EvictionPolicy>) {
  const clock = new FakeClock(1_000_000);
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const journal = new Journal({ clock });
  const evicted: Eviction[] = [];
  const counted: string[] = [];
  const reclaimed: string[] = [];
  const world = {
    memory: 5 * Gi,
    disk: 50 * Gi,
    pids: 900,
    stalled: 0,
    pods: [] as BoundPod[],
    stats: [] as PodSample[],
    cleaned: new Set<string>(),
    layout: "single" as DiskLayout | Error,
    read: undefined as (() => Promise<StatsSnapshot>) | undefined,
    /** What the nth way of giving back frees. */
    onReclaim: (_way: string): void => {},
    looks: 0,
    details: [] as string[],
  };
  const reading = () => {
    const at = clock.now();
    const time = { total: 0, avg10: world.stalled, avg60: 0, avg300: 0 };
    return snapshot(at, {
      sample: { at, memory: memory(10 * Gi - world.memory), psi: { memory: { some: time, full: time } } },
      fs: fs(at, world.disk, 100 * Gi),
      imageFs: fs(at, world.disk, 100 * Gi),
      rlimit: { at, maxPid: 1000, running: 1000 - world.pids },
    }, world.stats);
  };
  const reclaim = (way: string) => () => {
    reclaimed.push(way);
    world.onReclaim(way);
    return Promise.resolve();
  };
  const manager = new EvictionManager({
    policy: { ...policy, ...own },
    stats: {
      collect: async (detail) => {
        world.looks++;
        world.details.push(detail);
        const full = await (world.read?.() ?? Promise.resolve(reading()));
        return detail === "summary" ? full : { ...full, detail, pods: [] };
      },
    },
    pods: {
      active: () => world.pods,
      evict: (eviction) => {
        evicted.push(eviction);
      },
      cleaned: (uid) => world.cleaned.has(uid),
    },
    reclaim: { containers: reclaim("containers"), images: reclaim("images") },
    layout: () => world.layout instanceof Error ? Promise.reject(world.layout) : Promise.resolve(world.layout),
    clock,
    log,
    events,
    journal,
    meter: {
      evicted: (signal) => counted.push(signal),
      evictionStatsAge: (signal, seconds) => counted.push(`${signal} ${seconds}`),
    },
  });
  return {
    ...{ world, clock, log, events, journal, evicted, counted, reclaimed, manager, reading },
    /** One look, time passing as it must. */
    async look() {
      const found = manager.look(AbortSignal.timeout(60_000));
      let done = false;
      void found.finally(() => done = true).catch(() => {});
      for (let turns = 0; !done && turns < 200; turns++) await clock.advance(500);
      return (await found).map(({ metadata }) => metadata.name);
    },
    warned: () => log.lines.filter(({ level }) => level === "warn").map(({ message }) => message),
  };
}

const using = (name: string, mebibytes: number) =>
  podStats(name, {
    sample: { at: 1, memory: memory(mebibytes * Mi) },
    containers: [containerStats("main", { sample: { at: 1, memory: memory(mebibytes * Mi) } })],
  });
const fromFile = { [configSource]: "file" };

Deno.test("a hard shortage ends one pod in a second: event, journal, metrics, disruption", async () => {
  const { world, look, evicted, events, journal, counted, manager } = setUp({
    thresholds: [hard("memory.available", "100Mi")],
  });
  world.pods = [pod("small"), pod("large")];
  world.stats = [using("small", 10), using("large", 300)];
  assert.deepEqual(await look(), []);
  assert.deepEqual(manager.conditions, []);
  world.memory = 50 * Mi;
  assert.deepEqual(await look(), ["large"]);
  const message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. " +
    "Container main was using 300Mi, request is 0, has larger consumption of memory. ";
  const annotations = {
    offending_containers: "main",
    offending_containers_usage: "300Mi",
    starved_resource: "memory",
  };
  assert.deepEqual(evicted, [{
    pod: world.pods[1],
    graceSeconds: 1,
    message,
    disruption: message,
    annotations,
    signal: "memory.available",
  }]);
  assert.deepEqual(events.events, [{ pod: world.pods[1], type: "Warning", reason: "Evicted", message, annotations }]);
  assert.deepEqual(events.nodeEvents, [{
    type: "Warning",
    reason: "EvictionThresholdMet",
    message: "Attempting to reclaim memory",
  }]);
  const [record] = journal.records();
  assert.equal(record?.action, "Evict");
  assert.equal(record?.reason, "Evicted");
  assert.equal(record?.message, `memory.available: ${message}`);
  assert.deepEqual(counted, ["memory.available 0", "memory.available"]);
  assert.deepEqual(manager.conditions, ["MemoryPressure"]);
  assert.deepEqual(manager.pressure, ["MemoryPressure"]);
});

Deno.test("a soft shortage waits its grace, and gives the pod what it asks for, within the policy's limit", async () => {
  for (
    const [limit, own, want] of [[30, 10, 10], [30, 60, 30], [0, 10, 0], [30, undefined, 30]] as const
  ) {
    const { world, look, evicted, clock } = setUp({
      thresholds: [hard("memory.available", "1Gi", { grace: 20_000 })],
      maxPodGraceSeconds: limit,
    });
    world.pods = [pod("web", own === undefined ? {} : { terminationGracePeriodSeconds: own })];
    world.memory = Mi;
    assert.deepEqual(await look(), []);
    await clock.advance(10_000);
    assert.deepEqual(await look(), []);
    await clock.advance(10_000);
    assert.deepEqual(await look(), ["web"]);
    assert.equal(evicted[0]?.graceSeconds, want);
  }
});

Deno.test("critical pods are never chosen: static ones, mirrors, and those of high priority", async () => {
  const { world, look, evicted, warned, manager } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  world.memory = Mi;
  world.pods = [
    pod("static", {}, fromFile),
    pod("mirror", {}, { "kubernetes.io/config.mirror": "x" }),
    pod("critical", { priority: 2_000_000_000 }),
  ];
  assert.deepEqual(await look(), []);
  assert.deepEqual(evicted, []);
  assert.deepEqual(manager.conditions, ["MemoryPressure"]);
  assert.ok(warned().some((text) => text.startsWith("no pod may be evicted")));
  world.pods = [...world.pods, pod("nearly", { priority: 1_999_999_999 })];
  world.stats = [using("nearly", 1)];
  assert.deepEqual(await look(), ["nearly"]);
});

Deno.test("with the option, pods from files are evicted like others, unless their priority is critical", async () => {
  const { world, look } = setUp({ thresholds: [hard("memory.available", "1Gi")], staticPods: true });
  world.memory = Mi;
  world.pods = [
    pod("critical", { priority: 2_000_000_000 }, fromFile),
    pod("mirror", {}, { ...fromFile, "kubernetes.io/config.mirror": "x" }),
    pod("static", {}, fromFile),
  ];
  assert.deepEqual(await look(), ["static"]);
});

Deno.test("on a full disk what nobody needs goes first; when that is enough, no pod does", async () => {
  const { world, look, reclaimed, events } = setUp({
    thresholds: [hard("nodefs.available", "10Gi", { reclaim: "5Gi" })],
  });
  world.pods = [pod("web")];
  world.disk = 9 * Gi;
  world.onReclaim = () => world.disk += 3 * Gi;
  assert.deepEqual(await look(), [], "15 GiB are free then");
  assert.deepEqual(reclaimed, ["containers", "images"]);
  assert.equal(events.events.length, 0);
  world.disk = 9 * Gi;
  world.onReclaim = () => world.disk += 2 * Gi;
  assert.deepEqual(await look(), ["web"], "13 GiB are less than the threshold and what is to be freed beyond");
});

Deno.test("giving back that fails is told, and a pod goes", async () => {
  const { world, look, warned } = setUp({ thresholds: [hard("nodefs.available", "10Gi")] });
  world.pods = [pod("web")];
  world.disk = Gi;
  world.onReclaim = (way) => {
    if (way === "images") throw new KubeletError("Runtime", "the runtime is down");
  };
  assert.deepEqual(await look(), ["web"]);
  assert.ok(warned().includes("not all could be given back that nobody needs"));
});

Deno.test("shortage of memory gives back nothing, and an image disk's of its own leaves the node's containers alone", async () => {
  const memoryOnly = setUp({ thresholds: [hard("memory.available", "9Gi")] });
  memoryOnly.world.pods = [pod("web")];
  await memoryOnly.look();
  assert.deepEqual(memoryOnly.reclaimed, []);
  const disk = setUp({ thresholds: [hard("nodefs.available", "60Gi")] });
  disk.world.layout = "imagefs";
  disk.world.pods = [pod("web")];
  assert.deepEqual(await disk.look(), ["web"]);
  assert.deepEqual(disk.reclaimed, []);
});

Deno.test("a reading from before what was given back does not decide; one that never gets newer lets a pod go", async () => {
  const { world, look, reading } = setUp({ thresholds: [hard("nodefs.available", "10Gi")] });
  world.pods = [pod("web")];
  world.disk = Gi;
  const stale = reading();
  let reads = 0;
  world.read = () => Promise.resolve(++reads > 4 ? reading() : { ...stale, at: reading().at });
  world.onReclaim = () => world.disk = 50 * Gi;
  assert.deepEqual(await look(), []);
  assert.equal(reads, 5);
  const never = setUp({ thresholds: [hard("nodefs.available", "10Gi")] });
  never.world.pods = [pod("web")];
  never.world.disk = Gi;
  const old = never.reading();
  never.world.read = () => Promise.resolve({ ...old, at: never.clock.now() });
  assert.deepEqual(await never.look(), ["web"]);
});

Deno.test("pods beyond limits of their own go first, all at once, without a disruption and before any threshold", async () => {
  const { world, look, evicted, counted } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  const limited = (name: string, annotations?: Record<string, string>) =>
    pod(name, { volumes: [{ name: "cache", emptyDir: { sizeLimit: "1Mi" } }] }, annotations);
  const full = (name: string) => podStats(name, { volumes: [{ name: "cache", at: 1, used: 2 * Mi }] });
  world.pods = [limited("a"), limited("b"), limited("static", fromFile), pod("other")];
  world.stats = [full("a"), full("b"), full("static")];
  world.memory = Mi;
  assert.deepEqual(await look(), ["a", "b"]);
  assert.deepEqual(evicted.map(({ graceSeconds, disruption, message }) => ({ graceSeconds, disruption, message })), [
    { graceSeconds: 1, disruption: undefined, message: 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". ' },
    { graceSeconds: 1, disruption: undefined, message: 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". ' },
  ]);
  assert.deepEqual(counted, ["emptydirfs.limit", "emptydirfs.limit"]);
});

Deno.test("local storage isolation off: limits of pods' own evict nobody", async () => {
  const { world, look } = setUp({ storageLimits: false });
  world.pods = [pod("a", { volumes: [{ name: "cache", emptyDir: { sizeLimit: "1Mi" } }] })];
  world.stats = [podStats("a", { volumes: [{ name: "cache", at: 1, used: 2 * Mi }] })];
  assert.deepEqual(await look(), []);
  assert.equal(world.looks, 0);
});

Deno.test("pods are read once a minute, and whenever something runs short or a pod has a limit", async () => {
  const { world, look, clock, evicted } = setUp({ thresholds: [hard("memory.available", "100Mi")] });
  world.pods = [pod("small"), pod("large")];
  world.stats = [using("small", 10), using("large", 300)];
  for (let looks = 0; looks < 7; looks++) {
    await look();
    await clock.advance(10_000);
  }
  assert.deepEqual(world.details, ["summary", "node", "node", "node", "node", "node", "summary"]);
  world.memory = 50 * Mi;
  assert.deepEqual(await look(), ["large"]);
  assert.deepEqual(world.details.slice(7), ["node", "summary"]);
  assert.match(evicted[0]?.message ?? "", /using 300Mi/);
  world.memory = 5 * Gi;
  world.pods = [pod("limited", { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Mi" } }] })];
  await look();
  assert.equal(world.details.at(-1), "summary");
});

Deno.test("nothing is read where there is nothing to decide", async () => {
  const { world, look } = setUp({});
  world.pods = [pod("a"), pod("static", { volumes: [{ name: "c", emptyDir: { sizeLimit: "1" } }] }, fromFile)];
  assert.deepEqual(await look(), []);
  assert.equal(world.looks, 0);
});

Deno.test("readings that fail, hang or are old evict nobody, and are told once until one is good again", async () => {
  const { world, look, warned, clock, manager, reading } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  const about = "the node's resources cannot be read; nothing is evicted until they can";
  world.pods = [pod("web")];
  world.memory = Mi;
  for (
    const bad of [
      () => Promise.reject(new KubeletError("Host", "no such file")),
      () => Promise.reject(new KubeletError("Host", "no such file")),
      () => new Promise<never>(() => {}),
      () => Promise.resolve({ ...reading(), at: clock.now() - 31_000 }),
    ]
  ) {
    world.read = bad;
    assert.deepEqual(await look(), []);
  }
  assert.deepEqual(warned().filter((text) => text === about).length, 1);
  assert.deepEqual(manager.conditions, []);
  world.read = undefined;
  assert.deepEqual(await look(), ["web"]);
  world.read = () => Promise.reject(new KubeletError("Host", "again"));
  assert.deepEqual(await look(), []);
  assert.deepEqual(warned().filter((text) => text === about).length, 2);
  assert.deepEqual(manager.conditions, ["MemoryPressure"], "what was known stays");
});

Deno.test("until the runtime tells where images lie nothing is evicted", async () => {
  const { world, look, warned } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  world.pods = [pod("web")];
  world.memory = Mi;
  world.layout = new KubeletError("Runtime", "not yet");
  assert.deepEqual(await look(), []);
  assert.deepEqual(await look(), []);
  assert.equal(warned().filter((text) => text.startsWith("the runtime does not tell where images lie")).length, 1);
  world.layout = "single";
  assert.deepEqual(await look(), ["web"]);
});

Deno.test("dry run: nothing is ended or removed and nobody turned away; what would be is told once", async () => {
  const { world, look, evicted, reclaimed, journal, events, counted, manager, warned } = setUp({
    thresholds: [hard("memory.available", "1Gi"), hard("nodefs.available", "10Gi")],
    dryRun: true,
  });
  world.pods = [pod("web")];
  world.stats = [using("web", 10)];
  world.memory = Mi;
  world.disk = Mi;
  assert.deepEqual(await look(), []);
  assert.deepEqual(await look(), []);
  assert.deepEqual([evicted, reclaimed, events.events, counted], [[], [], [], []]);
  const [record, ...more] = journal.records();
  assert.equal(record?.action, "WouldEvict");
  assert.equal(record?.reason, "EvictionDryRun");
  assert.match(record?.message ?? "", /^memory\.available: The node was low on resource: memory\. /);
  assert.deepEqual(more, []);
  assert.equal(warned().filter((text) => text.startsWith("dry run")).length, 1);
  assert.deepEqual(manager.conditions, ["MemoryPressure", "DiskPressure"]);
  assert.deepEqual(manager.pressure, []);
});

Deno.test("time lost for want of memory evicts, where that is asked for", async () => {
  const { world, look, evicted, manager } = setUp({ thresholds: psiThresholds({ "memory.full.avg10": "20" }) });
  world.pods = [pod("web")];
  world.stats = [using("web", 10)];
  world.stalled = 20;
  assert.deepEqual(await look(), []);
  world.stalled = 20.01;
  assert.deepEqual(await look(), ["web"]);
  assert.match(evicted[0]?.message ?? "", /Threshold of memory\.full\.avg10: 20 %, time lost: 20\.01 %\. /);
  assert.deepEqual(manager.conditions, ["MemoryPressure"]);
});

Deno.test("run: each ten seconds; after an eviction as soon as the pod is gone, or after half a minute; others go meanwhile", async () => {
  const { world, clock, evicted, manager, warned } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  await using scope = new Scope("test");
  scope.spawn("eviction", (signal) => manager.run(signal));
  await clock.advance(10_000);
  assert.equal(world.looks, 2, "at once, and after ten seconds");
  world.pods = [pod("a"), pod("b"), pod("c")];
  world.stats = [using("a", 300), using("b", 200), using("c", 100)];
  world.memory = Mi;
  const names = () => evicted.map((each) => each.pod.metadata.name);
  await clock.advance(10_000);
  assert.deepEqual(names(), ["a"]);
  await clock.advance(5000);
  world.cleaned.add("a");
  world.pods = world.pods.slice(1);
  await clock.advance(1000);
  assert.deepEqual(names(), ["a", "b"], "without ten seconds' wait");
  await clock.advance(29_000);
  assert.deepEqual(names(), ["a", "b"]);
  await clock.advance(1000);
  assert.deepEqual(names(), ["a", "b", "c"], "b is stuck");
  assert.ok(warned().some((text) => text.startsWith("pods that were evicted have not ended yet")));
  await clock.advance(120_000);
  assert.deepEqual(names(), ["a", "b", "c"]);
});

Deno.test("run: what fails unexpectedly is logged, and the next look comes", async () => {
  const { world, clock, log, manager, evicted } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  await using scope = new Scope("test");
  world.memory = Mi;
  // A quantity that cannot be read, which admission would have refused.
  const bad = pod("bad", { containers: [{ name: "main", image: "i", resources: { requests: { memory: "lots" } } }] });
  world.pods = [bad];
  world.stats = [using("bad", 1)];
  scope.spawn("eviction", (signal) => manager.run(signal));
  await clock.advance(1);
  assert.ok(log.lines.some(({ level, message }) => level === "error" && message.startsWith("a look at the node's")));
  world.pods = [pod("web")];
  await clock.advance(10_000);
  assert.deepEqual(evicted.map((each) => each.pod.metadata.name), ["web"]);
});
