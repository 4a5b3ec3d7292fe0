import assert from "@assert";
import { FakeRuntime } from "../../../cri/fake/runtime.ts";
import { FakeClock } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { systemRandom } from "../../base/random.ts";
import { configSource } from "../../kube/pod.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { PodSyncer } from "../../sync/pod_worker.ts";
import { AgentMetrics } from "./agent_metrics.ts";
import { kubeletPage, type KubeletPageOptions, probesPage, slisPage } from "./kubelet_page.ts";
import { exponential, Histogram } from "./registry.ts";
import { meteredImages, meteredRuntime } from "./runtime_meter.ts";
import { MetricsPage } from "./text.ts";

const pod: BoundPod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "ns", uid: "u1" },
  spec: { containers: [{ name: "main" }], initContainers: [{ name: "first" }] },
};
const still: BoundPod = {
  ...pod,
  metadata: { ...pod.metadata, uid: "u2", annotations: { [configSource]: "file" } },
  spec: { ...pod.spec, ephemeralContainers: [{ name: "debug" }] },
};
const because = { pod: { namespace: "ns", name: "web", uid: "u1" }, container: "first", reason: "R", message: "m" };

function setUp() {
  const clock = new FakeClock(1_800_000_000_000);
  const host = new FakeHost({ clock });
  const fields = Array.from({ length: 50 }, (_, at) => at + 1);
  host.put(`${host.procRoot}/self/stat`, `7 (a ) b) ${fields.slice(2).map((n) => n === 3 ? "S" : n).join(" ")}\n`);
  host.put(
    `${host.procRoot}/self/limits`,
    "Max open files   1024  4096 files\nMax address space  unlimited unlimited bytes\n",
  );
  host.put(`${host.procRoot}/self/fd/0`, "");
  host.put(`${host.procRoot}/stat`, "btime 1700000000\n");
  const metrics = new AgentMetrics({ clock });
  const pods = new Map([[pod.metadata.uid, pod]]);
  metrics.podByUid = (uid) => pods.get(uid);
  let sick = false;
  const options: KubeletPageOptions = {
    metrics,
    backend: {
      nodeName: "node1",
      pods: () => [{ pod, status: { phase: "Failed" } }, { pod: still, status: { phase: "Running" } }],
      allObserved: () => [],
      host,
    },
    mirrors: () => 1,
    healthChecks: () => [{ name: "syncloop", check: () => sick ? "slow" : undefined }],
    cgroupVersion: 2,
    version: "v1.36.3",
  };
  return { clock, metrics, pods, options, fail: () => sick = true };
}

/** Samples of a page that begin with a name. */
function of(page: string, name: string): string[] {
  return page.split("\n").filter((line) => line.startsWith(name));
}

Deno.test("a histogram counts what is at most each bound, and all of it", () => {
  const histogram = new Histogram({ name: "h", help: "h", buckets: [1, 2] });
  for (const value of [1, 1.5, 3]) histogram.observe({ a: "b" }, value);
  const page = new MetricsPage();
  histogram.writeTo(page);
  assert.equal(
    page.text(),
    '# HELP h h\n# TYPE h histogram\nh_bucket{a="b",le="1"} 1\nh_bucket{a="b",le="2"} 2\n' +
      'h_bucket{a="b",le="+Inf"} 3\nh_sum{a="b"} 5.5\nh_count{a="b"} 3\n',
  );
  assert.deepEqual(exponential(.005, 2.5, 3), [.005, .0125, .03125]);
});

Deno.test("calls to the runtime are counted with their operation, their time and their failure", async () => {
  const { clock, metrics, options } = setUp();
  const fake = new FakeRuntime({ clock, random: systemRandom });
  const metered = { meter: metrics, now: () => clock.now() };
  const runtime = meteredRuntime(fake, metered), images = meteredImages(fake, metered);
  await runtime.listContainers();
  await runtime.listContainers({ id: "x" });
  await images.listImages();
  await assert.rejects(runtime.containerStatus("none"));
  await assert.rejects(runtime.startContainer("none", { because }));
  const page = await kubeletPage(options);
  assert.deepEqual(of(page, "kubelet_runtime_operations_total"), [
    'kubelet_runtime_operations_total{operation_type="list_containers"} 2',
    'kubelet_runtime_operations_total{operation_type="list_images"} 1',
    'kubelet_runtime_operations_total{operation_type="container_status"} 1',
    'kubelet_runtime_operations_total{operation_type="start_container"} 1',
  ]);
  assert.deepEqual(of(page, "kubelet_runtime_operations_errors_total"), [
    'kubelet_runtime_operations_errors_total{operation_type="container_status"} 1',
    'kubelet_runtime_operations_errors_total{operation_type="start_container"} 1',
  ]);
  const config = { metadata: { name: "web", namespace: "ns", uid: "u1", attempt: 0 } };
  await runtime.runPodSandbox(config, "", { because });
  metrics.sandbox("kata", true, 1, true);
  const later = await kubeletPage(options);
  assert.deepEqual(of(later, "kubelet_started_pods"), [
    "kubelet_started_pods_errors_total 1",
    "kubelet_started_pods_total 2",
  ]);
  assert.deepEqual(of(later, "kubelet_run_podsandbox_errors_total"), [
    'kubelet_run_podsandbox_errors_total{runtime_handler="kata"} 1',
  ]);
});

Deno.test("evictions are counted by what ran short, with the age of the readings", async () => {
  const { metrics, options } = setUp();
  metrics.evictionStatsAge("memory.available", 2);
  metrics.evicted("memory.available");
  metrics.evicted("memory.available");
  metrics.evicted("emptydirfs.limit");
  const page = await kubeletPage(options);
  assert.deepEqual(of(page, "kubelet_evictions"), [
    'kubelet_evictions{eviction_signal="memory.available"} 2',
    'kubelet_evictions{eviction_signal="emptydirfs.limit"} 1',
  ]);
  assert.deepEqual(of(page, "kubelet_eviction_stats_age_seconds_sum"), [
    'kubelet_eviction_stats_age_seconds_sum{eviction_signal="memory.available"} 2',
  ]);
});

Deno.test("starts, passes and relists are timed", async () => {
  const { clock, metrics, options } = setUp();
  const startTime = new Date(clock.now()).toISOString();
  // One that ran before the agent started tells nothing of its start.
  metrics.status({ ...pod, metadata: { ...pod.metadata, uid: "old" } }, { phase: "Running", startTime });
  metrics.status(pod, { phase: "Pending", startTime });
  metrics.relist(clock.now());
  await clock.advance(3000);
  metrics.status(pod, { phase: "Running", startTime });
  metrics.status(pod, { phase: "Running", startTime });
  metrics.relist(clock.now() - 1000);
  const nothing = () => Promise.resolve();
  const syncer: PodSyncer = metrics.syncer({
    sync: () => clock.sleep(20).then(() => ({})),
    terminate: () => Promise.reject(new Error("no")),
    release: nothing,
    purge: nothing,
  });
  const { signal } = new AbortController();
  for (let pass = 0; pass < 3; pass++) {
    const done = syncer.sync(pod, { signal });
    await clock.advance(20);
    await done;
  }
  await assert.rejects(
    syncer.terminate(pod, { signal, graceSeconds: 1, why: { reason: "R", message: "" }, failed: undefined, since: 0 }),
    /no/,
  );
  const page = await kubeletPage(options);
  assert.deepEqual(of(page, "kubelet_pod_start_duration_seconds_sum"), ["kubelet_pod_start_duration_seconds_sum 3"]);
  assert.deepEqual(of(page, "kubelet_pod_worker_duration_seconds_count"), [
    'kubelet_pod_worker_duration_seconds_count{operation_type="create"} 1',
    'kubelet_pod_worker_duration_seconds_count{operation_type="sync"} 2',
    'kubelet_pod_worker_duration_seconds_count{operation_type="kill"} 1',
  ]);
  assert.deepEqual(of(page, "kubelet_containers_per_pod_count_count"), ["kubelet_containers_per_pod_count_count 1"]);
  assert.deepEqual(of(page, "kubelet_pleg_relist_interval_seconds_sum"), [
    "kubelet_pleg_relist_interval_seconds_sum 2",
  ]);
  assert.deepEqual(of(page, "kubelet_pleg_last_seen_seconds"), ["kubelet_pleg_last_seen_seconds 1800000002"]);
  assert.deepEqual(of(page, "kubelet_desired_pods"), [
    'kubelet_desired_pods{static=""} 1',
    'kubelet_desired_pods{static="true"} 1',
  ]);
  assert.deepEqual(of(page, "kubelet_active_pods"), [
    'kubelet_active_pods{static=""} 0',
    'kubelet_active_pods{static="true"} 1',
  ]);
  assert.deepEqual(of(page, "kubelet_mirror_pods"), ["kubelet_mirror_pods 1"]);
  assert.deepEqual(of(page, "kubelet_managed_ephemeral_containers"), ["kubelet_managed_ephemeral_containers 1"]);
});

Deno.test("the process, and health", async () => {
  const { options, fail } = setUp();
  const page = await kubeletPage(options);
  assert.deepEqual(of(page, "process_"), [
    "process_cpu_seconds_total 0.29", // fields 14 and 15
    "process_max_fds 1024",
    "process_network_receive_bytes_total 0",
    "process_network_transmit_bytes_total 0",
    "process_open_fds 1",
    `process_resident_memory_bytes ${24 * 4096}`,
    "process_start_time_seconds 1700000000.22",
    "process_virtual_memory_bytes 23",
    "process_virtual_memory_max_bytes +Inf",
  ]);
  fail();
  const health = 'name="syncloop"';
  const slis = slisPage(options);
  assert(slis.includes("\nprocess_start_time_seconds 1700000000.22\n"));
  assert.deepEqual(slis.split("\n").filter((line) => line.startsWith("kubernetes")), [
    `kubernetes_healthcheck{${health},type="healthz"} 0`,
    `kubernetes_healthchecks_total{${health},status="success",type="healthz"} 1`,
    `kubernetes_healthchecks_total{${health},status="error",type="healthz"} 1`,
  ]);
});

Deno.test("probes: failed ones are counted but not timed; series go with their pod, also when nobody looks", async () => {
  const { metrics, options, pods } = setUp();
  metrics.probe({ pod, container: "main", type: "liveness", ok: true, tookMs: 20 });
  metrics.probe({ pod, container: "main", type: "readiness", ok: false, tookMs: 20 });
  const labels = 'container="main",namespace="ns",pod="web",pod_uid="u1"';
  const page = await probesPage(options);
  assert.deepEqual(of(page, "prober_probe_total"), [
    `prober_probe_total{${labels},probe_type="Liveness",result="successful"} 1`,
    `prober_probe_total{${labels},probe_type="Readiness",result="failed"} 1`,
  ]);
  assert.deepEqual(of(page, "prober_probe_duration_seconds_count"), [
    'prober_probe_duration_seconds_count{container="main",namespace="ns",pod="web",probe_type="Liveness"} 1',
  ]);
  pods.clear();
  assert.deepEqual(of(await probesPage(options), "prober_"), []);
  for (let n = 0; n < 5000; n++) {
    const gone = { ...pod, metadata: { ...pod.metadata, uid: `u${n}`, name: `p${n}` } };
    metrics.probe({ pod: gone, container: "main", type: "liveness", ok: true, tookMs: 1 });
  }
  assert.ok(metrics.probes.size < 500, String(metrics.probes.size));
});

Deno.test("containers that were tried to start count by their kind, failures with their reason", async () => {
  const { metrics, options } = setUp();
  metrics.container("ephemeral", undefined);
  metrics.container("init", undefined);
  metrics.container("regular", "ErrImagePull");
  assert.deepEqual(of(await kubeletPage(options), "kubelet_started_containers").sort(), [
    'kubelet_started_containers_errors_total{code="ErrImagePull",container_type="container"} 1',
    'kubelet_started_containers_total{container_type="container"} 1',
    'kubelet_started_containers_total{container_type="ephemeral_container"} 1',
    'kubelet_started_containers_total{container_type="init_container"} 1',
  ]);
});
