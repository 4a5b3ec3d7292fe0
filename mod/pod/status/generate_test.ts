import assert from "@assert";
import fc from "fast-check";
import type { BoundPod, PodSpec, PodStatus } from "../../kube/types.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../observed.ts";
import { nextStatus } from "../testdata/status_scene.ts";
import { World } from "../testdata/model.ts";
import { draftStatus, generateStatus } from "./generate.ts";
import type { StatusInput } from "./input.ts";
import { stamp } from "./time.ts";
import { illegalTransition } from "./transition.ts";

const start = Date.UTC(2026, 10, 30, 12, 29, 14);

function podOf(spec: Partial<PodSpec> = {}, metadata: Partial<BoundPod["metadata"]> = {}): BoundPod {
  return {
    metadata: { name: "web", namespace: "ns", uid: "u1", ...metadata },
    spec: { containers: [{ name: "c", image: "localhost/busybox:1" }], ...spec },
  };
}
function instance(over: Partial<ObservedContainer> = {}): ObservedContainer {
  return {
    id: "cba3",
    name: "c",
    restartCount: 0,
    sandboxId: "s0",
    state: "running",
    createdAt: start,
    startedAt: start + 345,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "localhost/busybox:1",
    imageRef: "sha256:8a75",
    hash: undefined,
    annotations: {},
    logPath: "",
    mounts: [],
    ...over,
  };
}
const sandbox: ObservedSandbox = {
  id: "s0",
  attempt: 0,
  ready: true,
  createdAt: start,
  ips: ["10.87.3.151"],
  hostNetwork: false,
  hasNetwork: true,
  handler: "",
};
function observedOf(containers: ObservedContainer[], sandboxes: ObservedSandbox[] = [sandbox]): ObservedPod {
  return { uid: "u1", name: "web", namespace: "ns", sandboxes, containers, readAt: start };
}
function input(over: Partial<StatusInput> = {}): StatusInput {
  return {
    pod: podOf(),
    observed: observedOf([instance()]),
    probes: () => ({}),
    startErrors: () => undefined,
    hostIPs: [],
    now: start + 999,
    terminating: false,
    runtimeName: "containerd",
    ...over,
  };
}
const first = (status: PodStatus) => {
  const found = status.containerStatuses?.[0];
  if (!found) throw new Error("there is no container status");
  return found;
};

Deno.test("a running static pod has the status that the reference gives, field for field", () => {
  const resources = { limits: { memory: "64Mi" }, requests: { memory: "64Mi" } };
  const pod = podOf({ containers: [{ name: "c", image: "localhost/busybox:1", resources, livenessProbe: {} }] });
  const at = "2026-11-30T12:29:14Z";
  const yes = (type: string) => ({ type, status: "True", lastTransitionTime: at });
  const want = {
    phase: "Running",
    conditions: ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(yes),
    podIP: "10.87.3.151",
    podIPs: [{ ip: "10.87.3.151" }],
    startTime: at,
    containerStatuses: [{
      name: "c",
      state: { running: { startedAt: at } },
      lastState: {},
      ready: true,
      restartCount: 0,
      image: "localhost/busybox:1",
      imageID: "sha256:8a75",
      containerID: "containerd://cba3",
      started: true,
      allocatedResources: { memory: "64Mi" },
      resources,
    }],
    qosClass: "Burstable",
    allocatedResources: { memory: "64Mi" },
    resources,
  };
  assert.equal(JSON.stringify(generateStatus(input({ pod })), null, 1), JSON.stringify(want, null, 1));
});

Deno.test("lastTransitionTime moves only when the status of a condition changes; startTime never does", () => {
  const before = generateStatus(input());
  const same = generateStatus(input({ previous: before, now: start + 60_000 }));
  assert.deepEqual(same, before);
  const observed = observedOf([instance({ state: "exited", exitCode: 1, finishedAt: start + 60_000 })]);
  const after = generateStatus(input({ previous: before, now: start + 61_000, observed }));
  const times = Object.fromEntries((after.conditions ?? []).map((c) => [c.type, c.lastTransitionTime]));
  assert.equal(times.Ready, "2026-11-30T12:30:15Z");
  assert.equal(times.Initialized, "2026-11-30T12:29:14Z");
  assert.equal(after.startTime, before.startTime);
});

Deno.test("what the runtime applied is shown for a running container, unless it is at the kernel's minimum", () => {
  const spec = { limits: { cpu: "1", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } };
  type Row = [applied: [shares: number, quota: number, memory: number], spec: typeof spec, want: unknown];
  const rows: Row[] = [
    [[102, 100_000, 64 << 20], spec, spec],
    [[512, 50_000, 128 << 20], spec, {
      limits: { cpu: "500m", memory: "128Mi" },
      requests: { cpu: "500m", memory: "32Mi" },
    }],
    [[0, 0, 0], spec, spec],
    [[2, 1000, 0], { limits: { cpu: "5m", memory: "1Gi" }, requests: { cpu: "1m", memory: "1Gi" } }, {
      limits: { cpu: "5m", memory: "1Gi" },
      requests: { cpu: "1m", memory: "1Gi" },
    }],
  ];
  for (const [[cpuShares, cpuQuota, memoryLimit], resources, want] of rows) {
    const pod = podOf({ containers: [{ name: "c", resources }] });
    const applied = { cpuShares, cpuQuota, cpuPeriod: 100_000, memoryLimit };
    const running = generateStatus(input({ pod, observed: observedOf([instance({ resources: applied })]) }));
    assert.deepEqual(first(running).resources, want);
    assert.deepEqual(first(running).allocatedResources, resources.requests);
    const ended = instance({ resources: applied, state: "exited" });
    assert.deepEqual(first(generateStatus(input({ pod, observed: observedOf([ended]) }))).resources, resources);
  }
  const none = generateStatus(input());
  assert.deepEqual([first(none).resources, first(none).allocatedResources, none.resources], [{}, undefined, {}]);
});

Deno.test("the pod's own resources are summed as the pod runs, in the notation of the spec", () => {
  const of = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { memory } });
  const pod = podOf({
    initContainers: [
      { name: "i", resources: of("2", "10Mi") },
      { name: "s", restartPolicy: "Always", resources: of("100m", "16Mi") },
    ],
    containers: [{ name: "c", resources: of("200m", "64Mi") }, { name: "d", resources: of("0.3", "64Mi") }],
    overhead: { memory: "1Mi", cpu: "1" },
  });
  const status = generateStatus(input({ pod, observed: observedOf([]) }));
  assert.deepEqual(status.allocatedResources, { cpu: "3", memory: "145Mi" });
  assert.deepEqual(status.resources, { limits: { memory: "145Mi" }, requests: { cpu: "3", memory: "145Mi" } });
  const level = podOf({ resources: { requests: { cpu: "1" }, limits: { cpu: "2" } } });
  assert.deepEqual(generateStatus(input({ pod: level })).resources, { limits: { cpu: "2" }, requests: { cpu: "1" } });
});

Deno.test("mounts and the user are shown", () => {
  const volumeMounts = [
    { name: "a", mountPath: "/a" },
    { name: "b", mountPath: "/b", readOnly: true, recursiveReadOnly: "IfPossible" },
    { name: "c", mountPath: "/c", readOnly: true },
  ];
  const pod = podOf({ containers: [{ name: "c", volumeMounts }] });
  const user = { uid: 1000, gid: 0, supplementalGroups: [7] };
  const observed = observedOf([instance({ user })]);
  const modes = (recursiveReadOnly: boolean) =>
    first(generateStatus(input({ pod, observed, recursiveReadOnly }))).volumeMounts?.map((m) => m.recursiveReadOnly);
  assert.deepEqual(modes(true), [undefined, "Enabled", "Disabled"]);
  assert.deepEqual(modes(false), [undefined, "Disabled", "Disabled"]);
  assert.deepEqual(first(generateStatus(input({ pod, observed }))).user, { linux: user });
});

Deno.test("termination messages share the pod's budget, and no character is cut in two", () => {
  const containers = ["a", "b", "c"].map((name) => ({ name }));
  const message = "ä".repeat(4000);
  const observed = observedOf(containers.map(({ name }) => instance({ name, id: name, state: "exited", message })));
  const status = generateStatus(input({ pod: podOf({ containers }), observed }));
  for (const s of status.containerStatuses ?? []) assert.equal(s.state?.terminated?.message, "ä".repeat(2048));
  const odd = generateStatus(input({
    pod: podOf({ containers: [...containers, { name: "d" }, { name: "e" }] }),
    observed,
  }));
  assert.equal(first(odd).state?.terminated?.message, "ä".repeat(1228));
});

Deno.test("a rejected pod is Failed with the reason, and nothing else is made up", () => {
  const rejected = { reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" };
  const later = { ...input({ rejected }).pod, metadata: { ...input({ rejected }).pod.metadata, generation: 2 } };
  assert.equal(generateStatus(input({ rejected, pod: later })).observedGeneration, 2);
  assert.deepEqual(generateStatus(input({ rejected })), {
    phase: "Failed",
    message: "Pod was rejected: Node didn't have enough resource: cpu",
    reason: "OutOfcpu",
    startTime: "2026-11-30T12:29:14Z",
    qosClass: "BestEffort",
  });
});

Deno.test("a forced end sets phase, reason and the disruption condition, and stays", () => {
  const forced = { reason: "Evicted", message: "The node was low on resource: memory. ", disruption: "why" };
  const status = generateStatus(input({ forced }));
  assert.deepEqual([status.phase, status.reason, status.message], ["Failed", forced.reason, forced.message]);
  const disruption = status.conditions?.find((c) => c.type === "DisruptionTarget");
  assert.deepEqual([disruption?.status, disruption?.reason, disruption?.message], [
    "True",
    "TerminationByKubelet",
    "why",
  ]);
  const later = generateStatus(input({ previous: status, now: start + 60_000 }));
  assert.deepEqual(later, status);
});

Deno.test("addresses: node family first, the last ones kept, host network pods have the node's", () => {
  type Row = [over: Partial<StatusInput>, want: string[]];
  const dual: ObservedSandbox = { ...sandbox, ips: ["fd00::5", "10.0.0.5", "10.0.0.6"] };
  const dead: ObservedSandbox = { ...sandbox, ready: false, ips: [] };
  const previous: PodStatus = { podIPs: [{ ip: "10.0.0.9" }] };
  const host = podOf({ hostNetwork: true });
  const rows: Row[] = [
    [{ observed: observedOf([], [dual]) }, ["10.0.0.5", "fd00::5"]],
    [{ observed: observedOf([], [dual]), hostIPs: ["fd00::1"] }, ["fd00::5", "10.0.0.5"]],
    [{ observed: observedOf([], [dead]), previous }, ["10.0.0.9"]],
    [{ observed: observedOf([], [dead, { ...sandbox, id: "old" }]), previous }, []],
    [{ observed: observedOf([], []) }, []],
    [{ pod: host, observed: observedOf([]), hostIPs: ["192.0.2.1"] }, ["192.0.2.1"]],
    [{ pod: host, observed: observedOf([]), hostIPs: ["192.0.2.1", "fd00::1"], previous }, ["10.0.0.9", "fd00::1"]],
    [{ pod: host, observed: observedOf([]) }, []],
  ];
  for (const [over, want] of rows) {
    const status = generateStatus(input(over));
    assert.deepEqual(status.podIPs?.map((p) => p.ip) ?? [], want);
    assert.equal(status.podIP, want[0]);
    assert.equal(status.hostIP, over.hostIPs?.[0]);
  }
});

Deno.test("conditions of others and the generation are kept", () => {
  const pod: BoundPod = {
    ...podOf({ readinessGates: [{ conditionType: "ex.io/g" }] }, { generation: 3 }),
    status: { conditions: [{ type: "ex.io/g", status: "Unknown" }, { type: "Ready", status: "True" }] },
  };
  const status = generateStatus(input({ pod }));
  assert.deepEqual(status.conditions?.[0], { type: "ex.io/g", status: "Unknown" });
  assert.equal(status.conditions?.filter((c) => c.type === "Ready").length, 1);
  assert.equal(
    status.conditions?.find((c) => c.type === "Ready")?.message,
    'the status of pod readiness gate "ex.io/g" is not "True", but Unknown',
  );
  assert.equal(status.observedGeneration, 3);
  assert.ok(status.conditions?.slice(1).every((c) => c.observedGeneration === 3));
});

Deno.test("times that make no sense are no reason to fail", () => {
  assert.equal(stamp(start + 999), "2026-11-30T12:29:14Z");
  assert.equal(stamp(-1), "1969-12-31T23:59:59Z");
  for (const bad of [NaN, Infinity, 1e300]) assert.equal(stamp(bad), "1970-01-01T00:00:00Z");
});

Deno.test("whatever happens: restart counts never fall, a terminal phase is never left, the same input changes nothing", async () => {
  const what = fc.constantFrom(
    "exit",
    "exit",
    "unknown",
    "lose",
    "sandbox",
    "pass",
    "sync",
    "sync",
    "terminating",
    "reset",
  );
  const events = fc.array(fc.record({ what, pick: fc.nat(2), code: fc.constantFrom(0, 1, 9) }), { maxLength: 30 });
  const policy = fc.constantFrom("Always", "OnFailure", "Never");
  await fc.assert(
    fc.asyncProperty(policy, events, async (restartPolicy, list) => {
      const rule = { action: "RestartAllContainers", exitCodes: { operator: "In", values: [9] } };
      const world = new World(podOf({
        restartPolicy,
        containers: [
          { name: "a" },
          { name: "b", restartPolicy: "OnFailure", restartPolicyRules: [rule] },
          { name: "c" },
        ],
      }));
      let before = nextStatus(world);
      const order = ["Pending", "Running", "Succeeded", "Failed"];
      for (const e of list) {
        const live = world.containers.find((c) => c.name === "abc"[e.pick] && c.state === "running");
        if (e.what === "exit" && live) world.end(live, e.code);
        else if (e.what === "unknown" && live) live.state = "unknown";
        else if (e.what === "lose") world.containers = world.containers.filter((c) => c.name !== "abc"[e.pick]);
        else if (e.what === "sandbox" && world.sandboxes[0]) world.sandboxes[0].ready = false;
        else if (e.what === "pass") await world.clock.advance(e.pick * 200_000);
        else if (e.what === "sync") world.apply(world.decide());
        const after = nextStatus(world, { terminating: e.what === "terminating" });
        for (const s of after.containerStatuses ?? []) {
          const old = before.containerStatuses?.find((o) => o.name === s.name);
          assert.ok(s.restartCount >= (old?.restartCount ?? 0), `${s.name}: ${JSON.stringify([old, s])}`);
        }
        assert.ok(
          order.indexOf(after.phase ?? "") >= order.indexOf(before.phase ?? ""),
          `${before.phase} to ${after.phase}`,
        );
        if (before.phase === "Succeeded" || before.phase === "Failed") assert.equal(after.phase, before.phase);
        before = after;
        if (e.what === "terminating") continue;
        const again = nextStatus(world);
        assert.deepEqual(nextStatus(world), again, "a status settles");
        before = again;
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("a container that ended for good and is said to run: the update is dropped, and the cause can be told", () => {
  const pod = podOf({ restartPolicy: "Never" });
  const ended = observedOf([instance({ state: "exited", exitCode: 0, finishedAt: start })]);
  const previous = generateStatus(input({ pod, observed: ended }));
  const next = input({ pod, previous });
  assert.equal(generateStatus(next), previous);
  assert.equal(
    illegalTransition(pod, previous, draftStatus(next)),
    "terminated container c attempted illegal transition to non-terminated state",
  );
});

Deno.test("a resize under way: given, and what is carried out; its conditions go with the pod's end", () => {
  const resources = { limits: { memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } };
  const pod = podOf({ containers: [{ name: "c", resources }], restartPolicy: "Never" });
  const had = { limits: { memory: "512Mi" }, requests: { cpu: "500m", memory: "512Mi" } };
  const progress = { type: "PodResizeInProgress", status: "True", observedGeneration: 2 };
  const over = {
    pod,
    resizes: [progress],
    resize: { gates: { podLevel: true, initContainers: true }, actuated: { containers: new Map([["c", had]]) } },
  };
  const running = generateStatus(input(over));
  assert.deepEqual([first(running).allocatedResources, first(running).resources], [resources.requests, had]);
  assert.deepEqual([running.allocatedResources, running.resources], [resources.requests, had]);
  assert.deepEqual(running.conditions?.filter((c) => c.type === progress.type), [progress]);
  // What the runtime tells goes before what was recorded, but no runtime tells of the memory request.
  const applied = { cpuShares: 1024, cpuQuota: 0, cpuPeriod: 100_000, memoryLimit: 2 ** 30 };
  const told = generateStatus(input({ ...over, observed: observedOf([instance({ resources: applied })]) }));
  assert.deepEqual(first(told).resources, {
    limits: { memory: "1Gi" },
    requests: { cpu: "1", memory: "512Mi" },
  });
  const ended = generateStatus(input({ ...over, observed: observedOf([instance({ state: "exited" })]) }));
  assert.deepEqual([ended.phase, ended.conditions?.some((c) => c.type === progress.type)], ["Succeeded", false]);
});

Deno.test("a stop signal is told by its gate, where the runtime tells it", () => {
  const observed = observedOf([instance({ stopSignal: "SIGUSR1" })]);
  assert.equal(first(generateStatus(input({ observed, stopSignals: true }))).stopSignal, "SIGUSR1");
  assert.equal(first(generateStatus(input({ observed }))).stopSignal, undefined);
  assert.equal(first(generateStatus(input({ stopSignals: true }))).stopSignal, undefined);
});
