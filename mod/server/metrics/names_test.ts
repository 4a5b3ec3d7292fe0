import assert from "@assert";
import { FakeClock } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { AgentMetrics } from "./agent_metrics.ts";
import { cadvisorFamilies } from "./cadvisor.ts";
import { writeKubelet } from "./kubelet_page.ts";
import { resourceFamilies } from "./resource.ts";
import { MetricsPage, type MetricType } from "./text.ts";
import { writeUsed } from "./used_page.ts";

/** Path, name and type of everything that the contract lists (metrics.md and the reference's own pages). */
const contractNames = (await Deno.readTextFile(new URL("./testdata/names.tsv", import.meta.url))).trim().split("\n")
  .map((line) => line.split("\t"));

/** Names of the contract that this agent does not tell, each with the reason; docs/metrics.md gives the same. */
const notTold: readonly { readonly path: string; readonly names: RegExp; readonly why: string }[] = [
  {
    path: "/metrics",
    names: new RegExp(
      "^go_(cgo|cpu_classes|gc|godebug|sync|sched_(gomax|goroutines_.+_goroutines|latencies|pauses|goroutines_created)|" +
        "memory_classes_(metadata|os|other|profiling|heap_(released|stacks|unused))|" +
        "memstats_(alloc_bytes_total|buck|frees|gc|heap_objects|heap_released|last_gc|mallocs|mcache|mspan|next_gc|stack))",
    ),
    why: "of the Go runtime, and nothing here does the same",
  },
  { path: "/metrics", names: /^csi_operations_seconds$/, why: "no CSI driver is asked for anything yet" },
  {
    path: "/metrics",
    names: /^(dra_|resource_manager_)/,
    why: "resource claims and the managers of CPUs and memory are not built yet",
  },
  {
    path: "/metrics",
    names: /^kubelet_(container_aligned_compute_resources|cpu_manager_allocation_per_numa)/,
    why: "CPU, memory and topology managers are not built yet",
  },
  {
    path: "/metrics",
    names: /^kubelet_pod_pending_resizes$/,
    why: "only told while a resize waits",
  },
  {
    path: "/metrics",
    names: /^kubelet_started_host_process_/,
    why: "host process containers are of Windows nodes only",
  },
  {
    path: "/metrics",
    names: /^rest_client_(dns_resolution|exec_plugin_policy|transport_(ca_reload|cache_gc|cert_rotation_gc|create))/,
    why: "internals of the Go client: Deno looks names up and keeps connections by itself",
  },
  { path: "/metrics", names: /^workqueue_/, why: "queues of the Go client's libraries; nothing here does the same" },
  { path: "/metrics", names: /^volume_manager_selinux_/, why: "SELinux labels by mount option are not built yet" },
  {
    path: "/metrics",
    names: /^authentication_token_cache_/,
    why: "alpha; tokens are counted as apiserver_delegated_authn_*",
  },
  { path: "/metrics/cadvisor", names: /^machine_dimm_/, why: "read from EDAC, which few machines have" },
  { path: "/metrics/resource", names: /^scrape_error$/, why: "deprecated and hidden since 1.29, as by the reference" },
];

/** Every family that a page can have, whether or not there is a sample of it now. */
async function told(): Promise<Readonly<Record<string, ReadonlyMap<string, MetricType>>>> {
  const metrics = new AgentMetrics({ clock: new FakeClock(1_000_000) });
  const host = new FakeHost({
    files: { "/proc/self/stat": "1 (kubelet) S 1", "/proc/stat": "btime 1\n", "/proc/self/fd/0": "" },
  });
  const page = new MetricsPage();
  await writeKubelet(page, {
    metrics,
    backend: { nodeName: "n", pods: () => [], allObserved: () => [], host },
    healthChecks: () => [{ name: "ping", check: () => undefined }],
    cgroupVersion: 2,
    version: "v1.36.3",
    gates: () => [["Some", true, "BETA"]],
    process: { heap: () => ({ heapTotal: 3, heapUsed: 2, external: 1 }), tasks: () => 1, runtime: "deno" },
    used: (used) => Promise.resolve(writeUsed(used, undefined)),
  });
  const probes = new Map<string, MetricType>([
    ["prober_probe_total", "counter"],
    ["prober_probe_duration_seconds", "histogram"],
    ["process_start_time_seconds", "gauge"],
  ]);
  return {
    "/metrics": page.declared(),
    "/metrics/cadvisor": cadvisorFamilies,
    "/metrics/resource": resourceFamilies,
    "/metrics/probes": probes,
  };
}

Deno.test("every name of the contract is told with its type, or is on the list of those that are not, with the reason", async () => {
  const pages = await told();
  const missing: string[] = [], wrong: string[] = [], needless: string[] = [];
  for (const [path = "", name = "", type] of contractNames) {
    const own = pages[path]?.get(name);
    const reason = notTold.find((each) => each.path === path && each.names.test(name));
    if (own === undefined && !reason) missing.push(`${path} ${name}`);
    if (own !== undefined && own !== type) wrong.push(`${path} ${name}: ${own}, the contract has ${type}`);
    if (own !== undefined && reason) needless.push(`${path} ${name}`);
  }
  assert.deepEqual({ missing, wrong, needless }, { missing: [], wrong: [], needless: [] });
});

Deno.test("each entry of the list of what is not told stands for a name of the contract", () => {
  for (const { path, names, why } of notTold) {
    assert.ok(contractNames.some(([where, name = ""]) => where === path && names.test(name)), `${path} ${names}`);
    assert.ok(why.length > 10);
  }
});
