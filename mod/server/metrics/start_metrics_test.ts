import assert from "@assert";
import type { ContainerStatus, Pod, PodSpec, PodStatus } from "../../kube/types.ts";
import type { ObservedContainer } from "../../pod/observed.ts";
import { StartMetrics } from "./start_metrics.ts";
import { MetricsPage } from "./text.ts";

const made = Date.parse("2026-01-02T03:04:05Z");
const uid = "u";

function pod(status: PodStatus = {}, spec: Partial<PodSpec> = {}, annotations: Record<string, string> = {}): Pod {
  return {
    metadata: { uid, name: "p", namespace: "n", creationTimestamp: "2026-01-02T03:04:05Z", annotations },
    spec: { containers: [{ name: "c" }], ...spec },
    status,
  };
}

function container(state: ContainerStatus["state"]): ContainerStatus {
  return { name: "c", ready: true, restartCount: 0, image: "i", imageID: "", ...(state ? { state } : {}) };
}

const running: PodStatus = {
  phase: "Running",
  startTime: "2026-01-02T03:04:06Z",
  containerStatuses: [container({ running: { startedAt: "2026-01-02T03:04:09Z" } })],
};
const starting: PodStatus = {
  phase: "Pending",
  startTime: "2026-01-02T03:04:06Z",
  containerStatuses: [container({ waiting: { reason: "ContainerCreating" } })],
};

function scene() {
  const clock = { at: made };
  const metrics = new StartMetrics(() => clock.at);
  const told = (name: string) => {
    const page = new MetricsPage();
    metrics.writeTo(page);
    return page.text().split("\n").filter((line) => line.startsWith(`kubelet_${name}`)).map((line) =>
      line.replace("kubelet_", "")
    );
  };
  /** Sum of a histogram; undefined when nothing was observed. */
  const sum = (name: string) => {
    const [line] = told(`${name}_sum`);
    return line === undefined ? undefined : Number(line.split(" ")[1]);
  };
  const after = (ms: number) => {
    clock.at = made + ms;
  };
  return { metrics, told, sum, after };
}

const whole = "pod_start_total_duration_seconds";
const sli = "pod_start_sli_duration_seconds";

Deno.test("a pod's start is from its making until the API server shows it running, once; pulls and init containers do not count", () => {
  const s = scene();
  const spec = { initContainers: [{ name: "init" }, { name: "side", restartPolicy: "Always" }] };
  s.metrics.seen(pod({}, spec));
  s.after(1000);
  s.metrics.pulling(uid); // two pulls that overlap, from 1 s to 4 s
  s.after(2000);
  s.metrics.pulling(uid);
  s.after(3000);
  s.metrics.pulled(uid, { ms: 2000, size: 11n * 1024n ** 2n });
  s.after(4000);
  s.metrics.pulled(uid, { ms: 2000, size: 0n });
  s.metrics.seen(pod(starting, spec));
  assert.equal(s.sum(whole), undefined, "it does not run yet");
  const ran = (name: string, state: "exited" | "running", from: number, until: number) =>
    ({ name, state, startedAt: made + from, finishedAt: until && made + until }) as ObservedContainer;
  s.metrics.observed = (asked) => ({
    containers: asked === uid
      ? [ran("init", "exited", 4000, 4500), ran("init", "exited", 5000, 6500), ran("side", "running", 4100, 0)]
      : [],
  });
  s.after(10_000);
  s.metrics.seen(pod(running, spec));
  s.after(20_000);
  s.metrics.seen(pod(running, spec));
  assert.equal(s.sum(whole), 10);
  assert.equal(s.sum(sli), 5); // 10 s without 3 s of pulls and 2 s of the init container
  assert.deepEqual(s.told(`first_network_${sli}`), [`first_network_${sli} 5`]);
  assert.deepEqual(s.told("image_pull_duration_seconds_count"), [
    'image_pull_duration_seconds_count{image_size_in_bytes="10MB-100MB"} 1',
    'image_pull_duration_seconds_count{image_size_in_bytes="N/A"} 1',
  ]);
});

Deno.test("a pull that failed goes on until the image is there", () => {
  const s = scene();
  s.metrics.seen(pod());
  s.metrics.pulling(uid);
  s.after(3000);
  s.metrics.present(uid);
  s.after(4000);
  s.metrics.seen(pod(running));
  assert.equal(s.sum(sli), 1);
});

const untold: readonly (readonly [why: string, pods: readonly Pod[]])[] = [
  ["it had begun before this agent did", [pod(starting), pod(running)]],
  ["it had to wait for room", [
    pod({ conditions: [{ type: "PodScheduled", status: "False" }] }),
    pod({ conditions: [{ type: "PodScheduled", status: "True" }] }),
    pod(running),
  ]],
  ["it ended before it ran", [pod(), pod({ phase: "Failed" }), pod(running)]],
  [
    "it mirrors a static pod",
    ["", "x"].map(() => pod({}, {}, { "kubernetes.io/config.mirror": "h" })).concat(pod(running)),
  ],
  ["it never runs whole", [
    pod(),
    pod({ ...running, containerStatuses: [...running.containerStatuses ?? [], container({ waiting: {} })] }),
  ]],
  ["its status tells of no container", [pod(), pod({ phase: "Running" })]],
];
for (const [why, pods] of untold) {
  Deno.test(`a pod's start is not told when ${why}`, () => {
    const s = scene();
    for (const each of pods) s.metrics.seen(each);
    assert.equal(s.sum(whole), undefined);
    assert.equal(s.sum(sli), undefined);
  });
}

Deno.test("a pod that is gone is forgotten", () => {
  const s = scene();
  s.metrics.seen(pod());
  s.metrics.gone(uid);
  s.metrics.seen(pod(running));
  assert.equal(s.sum(whole), undefined);
});

Deno.test("a pod whose volumes outlive it has a whole start, but none that counts; passing volumes are none", () => {
  const s = scene();
  const start = (volumes: PodSpec["volumes"]) => {
    const spec = { volumes: volumes ?? [] };
    s.metrics.seen(pod({}, spec));
    s.metrics.seen(pod(running, spec));
  };
  s.after(1000);
  start([{ name: "v", emptyDir: {} }, { name: "w", hostPath: { path: "/" } }]);
  assert.deepEqual([s.sum(whole), s.sum(sli)], [1, undefined]);
  start([{ name: "v", emptyDir: {} }, { name: "w", secret: {} }, { name: "x", projected: { sources: [] } }]);
  assert.deepEqual([s.sum(whole), s.sum(sli)], [2, 1]);
});

Deno.test("the first pod with a network of its own is told, no later one, and none of the node's network", () => {
  const s = scene();
  const first = () => s.told("first_network")[0]?.split(" ")[1];
  const start = (ms: number, spec: Partial<PodSpec>) => {
    s.metrics.seen(pod({}, spec));
    s.after(ms);
    s.metrics.seen(pod(running, spec));
    return first();
  };
  assert.deepEqual([start(1000, { hostNetwork: true }), start(2000, {}), start(3000, {})], ["0", "2", "2"]);
});
