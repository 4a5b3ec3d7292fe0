import assert from "@assert";
import { KubeletError } from "../../mod/base/errors.ts";
import { Scope } from "../../mod/base/scope.ts";
import { Gi, hard, Mi, pod, podStats } from "./testing.ts";
import { psiThresholds } from "./thresholds.ts";
import { fromFile, setUp, using } from "./manager_testing.ts";

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
