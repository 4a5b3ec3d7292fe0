import assert from "@assert";
import type { BoundPod, Container, PodSpec, ResourceRequirements } from "../../kube/types.ts";
import type { ObservedPod } from "../observed.ts";
import type { PodCgroupLimits } from "../resources.ts";
import { type PodResourceInfo, resourcesOf, withResources } from "./allocation.ts";
import { type GroupState, memoryObstacle, type ResizeStep, resizeSteps } from "./group_plan.ts";
import { compareResizes, countedPod, infeasible, type ResizePolicy } from "./judge.ts";
import { needsRestart, resizeAction, resizeInProgress } from "./needs.ts";
import { resizeOperations } from "./operations.ts";

const gates = { podLevel: true, initContainers: true };
const both = (cpu: string, memory: string): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});
const container = (name: string, resources: ResourceRequirements, rest: Partial<Container> = {}): Container => ({
  name,
  resources,
  ...rest,
});
const pod = (containers: Container[], spec: Partial<PodSpec> = {}, uid = "u"): BoundPod => ({
  metadata: { name: uid, namespace: "default", uid, generation: 1 },
  spec: { containers, ...spec },
});
const observed = (...running: string[]): ObservedPod => ({
  uid: "u",
  name: "u",
  namespace: "default",
  sandboxes: [],
  containers: running.map((name) => ({
    id: `id-${name}`,
    name,
    restartCount: 0,
    sandboxId: "s",
    state: "running",
    createdAt: 1,
    startedAt: 1,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "",
    imageRef: "",
    hash: undefined,
    annotations: {},
    logPath: "",
    mounts: [],
  })),
  readAt: 0,
});
const info = (of: Record<string, ResourceRequirements>, own?: ResourceRequirements): PodResourceInfo => ({
  containers: new Map(Object.entries(of)),
  ...(own ? { pod: own } : {}),
});

Deno.test("a pod keeps what it was given; one that was given what it wants is the same object", () => {
  const wanted = pod([container("a", both("1", "1Gi"))], { initContainers: [container("i", both("1", "1Gi"))] });
  assert.equal(withResources(wanted, info({ a: both("1000m", "1024Mi"), i: both("1", "1Gi") }), gates), wanted);
  const given = withResources(wanted, info({ a: both("500m", "1Gi") }), gates);
  assert.deepEqual(given.spec.containers[0]?.resources, both("500m", "1Gi"));
  assert.equal(given.spec.initContainers?.[0], wanted.spec.initContainers?.[0]);
  // A pod's own resources count by their gate, and may have been none before.
  const own = { ...wanted, spec: { ...wanted.spec, resources: both("2", "2Gi") } };
  assert.equal(withResources(own, info({}), { ...gates, podLevel: false }), own);
  assert.equal(withResources(own, info({}), gates).spec.resources, undefined);
  // Init containers that are no sidecars are kept only by their gate.
  assert.deepEqual([...resourcesOf(wanted, { ...gates, initContainers: false }).containers.keys()], ["a"]);
  assert.deepEqual([...resourcesOf(wanted, gates).containers.keys()], ["i", "a"]);
});

Deno.test("what has to change: less comes before more; what is not running, or not recorded, is left alone", () => {
  const now = pod([
    container("more", both("2", "64Mi")),
    container("less", both("250m", "64Mi")),
    container("least", both("100m", "32Mi")),
    container("ended", both("2", "2Gi")),
    container("unknown", both("2", "2Gi")),
  ]);
  const actuated = info({
    more: both("1", "64Mi"),
    less: both("500m", "64Mi"),
    least: both("500m", "64Mi"),
    ended: both("1", "1Gi"),
  });
  const view = { gates, actuated };
  const seen = observed("more", "less", "least", "unknown");
  const action = resizeAction(now, seen, view, { leaving: new Set(), restarts: false });
  assert.deepEqual(action?.cpu.map((u) => u.name), ["least", "less", "more"]);
  assert.deepEqual(action?.memory.map((u) => [u.id, u.from.memoryLimit, u.to.memoryLimit]), [
    ["id-least", 64n * 2n ** 20n, 32n * 2n ** 20n],
  ]);
  assert(resizeInProgress(now, seen, view));
  assert(!resizeInProgress(now, observed("ended", "unknown"), { gates, actuated: info({}) }));
  const none = resizeAction(now, seen, { gates, actuated: undefined }, { leaving: new Set(), restarts: false });
  assert.equal(none, undefined);
  const leaving = new Set(["id-more", "id-less", "id-least"]);
  assert.equal(resizeAction(now, seen, view, { leaving, restarts: false }), undefined);
});

Deno.test("the pod's own limit stands in for a container's; its change reaches those without one", () => {
  const now = pod([container("own", both("1", "1Gi")), container("bare", {})], { resources: both("3", "3Gi") });
  const view = {
    gates,
    actuated: info({ own: both("1", "1Gi"), bare: { limits: { cpu: "2", memory: "2Gi" } } }, both("2", "2Gi")),
  };
  const action = resizeAction(now, observed("own", "bare"), view, { leaving: new Set(), restarts: false });
  assert.deepEqual([action?.cpu.map((u) => u.name), action?.podLevel], [["bare"], true]);
  const off = { ...view, gates: { ...gates, podLevel: false } };
  const without = resizeAction(pod([container("own", both("1", "1Gi"))]), observed("own"), off, {
    leaving: new Set(),
    restarts: false,
  });
  assert.equal(without, undefined);
});

Deno.test("a restart only for what the policy names", () => {
  const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  const cases: readonly (readonly [ResourceRequirements, boolean])[] = [
    [both("1", "2Gi"), true],
    [both("2", "1Gi"), false],
    [both("1", "1024Mi"), false],
    [{ requests: { cpu: "1", memory: "512Mi" }, limits: { cpu: "1", memory: "1Gi" } }, true],
  ];
  for (const [resources, restarts] of cases) {
    const spec = container("c", resources, { resizePolicy });
    const now = pod([spec]);
    const [instance] = observed("c").containers;
    if (!instance) throw new Error("no container");
    const view = { gates, actuated: info({ c: both("1", "1Gi") }) };
    assert.equal(needsRestart(now, spec, instance, view), restarts, JSON.stringify(resources));
    assert.equal(needsRestart(now, spec, { ...instance, state: "exited" }, view), false);
    assert.equal(needsRestart(now, spec, instance, undefined), false);
  }
});

Deno.test("the order of a resize: memory first; up before the containers, down after them", () => {
  const mebi = 2n ** 20n;
  const now: GroupState = { memoryLimit: 64n * mebi, cpuQuota: 50_000, cpuPeriod: 100_000, cpuShares: 512 };
  const wanted = (memory: bigint, quota: number, shares: number): PodCgroupLimits => ({
    memoryLimit: memory,
    cpuQuota: quota,
    cpuPeriod: 100_000,
    cpuShares: shares,
    hugepages: {},
  });
  const update = { id: "i", name: "c", from: figures(64n, 500n), to: figures(128n, 1000n) };
  const action = { memory: [update], cpu: [update], podLevel: false, restarts: false };
  const words = (steps: ResizeStep[]) => steps.map((s) => s.do === "shares" ? "shares" : `${s.do} ${s.resource}`);
  assert.deepEqual(words(resizeSteps(action, now, wanted(128n * mebi, 100_000, 1024))), [
    "limit memory",
    "containers memory",
    "limit cpu",
    "shares",
    "containers cpu",
  ]);
  assert.deepEqual(words(resizeSteps(action, now, wanted(32n * mebi, 25_000, 256))), [
    "containers memory",
    "limit memory",
    "containers cpu",
    "shares",
    "limit cpu",
  ]);
  // No quota is the greatest; a limit that the pod has no more is left; a restart alone sets the group.
  assert.deepEqual(words(resizeSteps(action, { ...now, cpuQuota: -1 }, wanted(0n, 25_000, 512))), [
    "containers memory",
    "containers cpu",
    "limit cpu",
  ]);
  const restart = { memory: [], cpu: [], podLevel: false, restarts: true };
  assert.deepEqual(words(resizeSteps(restart, now, wanted(128n * mebi, 50_000, 512))), ["limit memory"]);
  const cpuOnly = { ...action, memory: [] };
  assert.deepEqual(words(resizeSteps(cpuOnly, now, wanted(128n * mebi, 50_000, 512))), ["containers cpu"]);
});

function figures(mebi: bigint, cpu: bigint) {
  const memory = mebi * 2n ** 20n;
  return { memoryLimit: memory, memoryRequest: memory, cpuLimit: cpu, cpuRequest: cpu };
}

Deno.test("limits below what is used are refused, each by its figures", () => {
  const now: GroupState = { memoryLimit: 100n, cpuQuota: -1, cpuPeriod: 100_000, cpuShares: 2 };
  const wanted: PodCgroupLimits = { memoryLimit: 50n, cpuShares: 2, hugepages: {} };
  const update = { id: "i", name: "c", from: figures(2n, 1n), to: { ...figures(1n, 1n), memoryLimit: 50n } };
  const action = { memory: [update], cpu: [], podLevel: false, restarts: false };
  const use = (all: bigint | undefined, one: bigint | undefined) =>
    memoryObstacle(action, now, wanted, { pod: all, containers: new Map([["c", one]]) });
  assert.equal(use(49n, 49n), undefined);
  assert.equal(
    use(60n, 50n),
    "cannot decrease memory limits: [attempting to set pod memory limit (50) below current usage (60), " +
      'attempting to set container "c" memory limit (50) below current usage (50)]',
  );
  assert.equal(use(49n, undefined), 'cannot decrease memory limits: missing container "c" memory usage');
});

Deno.test("which resize comes first", () => {
  const entry = (
    uid: string,
    from: string,
    to: string,
    more: { priority?: number; since?: number; burst?: boolean } = {},
  ) => {
    const resources = more.burst ? { requests: { cpu: to } } : both(to, "1Gi");
    const wanted = pod([container("c", resources)], more.priority ? { priority: more.priority } : {}, uid);
    return { pod: wanted, allocated: pod([container("c", both(from, "1Gi"))], {}, uid), since: more.since };
  };
  const sorted = [
    entry("late", "1", "2", { since: 20 }),
    entry("burst", "1", "2", { burst: true, since: 1 }),
    entry("early", "1", "2", { since: 10 }),
    entry("new", "1", "2"),
    entry("high", "1", "2", { priority: 5, burst: true }),
    entry("less", "2", "1"),
  ].sort(compareResizes).map((e) => e.pod.metadata.uid);
  assert.deepEqual(sorted, ["less", "high", "early", "late", "new", "burst"]);
});

Deno.test("what can never be done, and why", () => {
  const policy: ResizePolicy = {
    gates,
    cpuManagerPolicy: "none",
    memoryManagerPolicy: "None",
    exclusiveCpus: false,
    exclusiveMemory: false,
    swaps: () => false,
  };
  const [old, now] = [pod([container("c", both("1", "1Gi"))]), pod([container("c", both("2", "2Gi"))])];
  const bare = (of: BoundPod) => ({ ...of, spec: { ...of.spec, resources: both("4", "4Gi") } });
  const why = (more: Partial<ResizePolicy>, wanted = now) => infeasible(wanted, old, { ...policy, ...more })?.message;
  assert.equal(why({}), undefined);
  assert.equal(why({ swaps: () => true }), "In-place resize of containers with swap is not supported.");
  assert.equal(
    why({ cpuManagerPolicy: "static" }),
    'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
  );
  assert.equal(why({ cpuManagerPolicy: "static", exclusiveCpus: true }), undefined);
  assert.equal(why({ cpuManagerPolicy: "static" }, pod([container("c", both("1", "2Gi"))])), undefined);
  assert.equal(
    why({ memoryManagerPolicy: "Static" }),
    'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
  );
  assert.equal(
    why({ gates: { ...gates, podLevel: false } }, bare(old)),
    "InPlacePodLevelResourcesVerticalScaling is disabled",
  );
});

Deno.test("what shrinks still counts until that is carried out; the metric's words", () => {
  const now = pod([container("c", both("500m", "2Gi"))]);
  const counted = countedPod(now, info({ c: both("1", "1Gi") }), gates);
  assert.deepEqual(counted.spec.containers[0]?.resources?.requests, { cpu: "1", memory: "2Gi" });
  assert.equal(countedPod(now, info({ c: both("500m", "2Gi") }), gates), now);
  assert.equal(countedPod(now, undefined, gates), now);
  const old = pod([container("c", { requests: { cpu: "1" }, limits: { memory: "1Gi" } })]);
  assert.deepEqual(resizeOperations(old, now).map((o) => `${o.resource} ${o.requirement} ${o.operation}`), [
    "memory requests add",
    "memory limits increase",
    "cpu requests decrease",
    "cpu limits add",
  ]);
});
