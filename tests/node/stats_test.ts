import assert from "@assert";
import { unlessMissing } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { versions } from "./harness.ts";
import { patience, pod, shell, withObserver } from "./support.ts";

/** A sample of a page: its name, labels, value, and time where it has one. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly time: number | undefined;
}

interface Page {
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
}

/** Reads a page strictly: what is no comment and no sample fails the test. */
function parsePage(text: string): Page {
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type) types.set(type[1] ?? "", type[2] ?? "");
    if (line.startsWith("#")) continue;
    const parts = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)(?: (\d+))?$/.exec(line);
    if (!parts) throw new assert.AssertionError({ message: `no sample: ${line}` });
    const labels = [...(parts[2] ?? "").matchAll(/([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"/g)].map((each) => each.slice(1, 3));
    samples.push({
      name: parts[1] ?? "",
      labels: Object.fromEntries(labels),
      value: Number(parts[3]),
      time: parts[4] === undefined ? undefined : Number(parts[4]),
    });
  }
  return { types, samples };
}

/** metrics.md section 6: name, type, labels, and whether samples have a time. */
const resource: readonly (readonly [string, string, readonly string[], boolean])[] = [
  ["node_cpu_usage_seconds_total", "counter", [], true],
  ["node_memory_working_set_bytes", "gauge", [], true],
  ["container_cpu_usage_seconds_total", "counter", ["container", "namespace", "pod"], true],
  ["container_memory_working_set_bytes", "gauge", ["container", "namespace", "pod"], true],
  ["container_start_time_seconds", "gauge", ["container", "namespace", "pod"], false],
  ["pod_cpu_usage_seconds_total", "counter", ["namespace", "pod"], true],
  ["pod_memory_working_set_bytes", "gauge", ["namespace", "pod"], true],
  ["resource_scrape_error", "gauge", [], false],
];

const base = ["container", "id", "image", "name", "namespace", "pod"];
/** metrics.md section 5, as far as every kernel has it. */
const cadvisor: readonly (readonly [string, string, readonly string[]])[] = [
  ["container_last_seen", "gauge", base],
  ["container_start_time_seconds", "gauge", base],
  ["container_cpu_usage_seconds_total", "counter", [...base, "cpu"]],
  ["container_cpu_user_seconds_total", "counter", base],
  ["container_cpu_system_seconds_total", "counter", base],
  ["container_memory_cache", "gauge", base],
  ["container_memory_rss", "gauge", base],
  ["container_memory_mapped_file", "gauge", base],
  ["container_memory_usage_bytes", "gauge", base],
  ["container_memory_working_set_bytes", "gauge", base],
  ["container_memory_total_active_file_bytes", "gauge", base],
  ["container_memory_total_inactive_file_bytes", "gauge", base],
  ["container_memory_failures_total", "counter", [...base, "failure_type", "scope"]],
  ["container_network_receive_bytes_total", "counter", [...base, "interface"]],
  ["container_network_transmit_errors_total", "counter", [...base, "interface"]],
  ["container_threads", "gauge", base],
  ["container_threads_max", "gauge", base],
  ["container_processes", "gauge", base],
  ["container_file_descriptors", "gauge", base],
  ["container_sockets", "gauge", base],
  ["container_ulimits_soft", "gauge", [...base, "ulimit"]],
  ["container_tasks_state", "gauge", [...base, "state"]],
  ["container_health_state", "gauge", base],
  ["container_cpu_load_average_10s", "gauge", base],
  ["container_cpu_cfs_periods_total", "counter", base],
  ["container_oom_events_total", "counter", base],
  ["container_memory_failcnt", "counter", base],
  ["container_memory_max_usage_bytes", "gauge", base],
  ["container_memory_swap", "gauge", base],
  ["container_fs_inodes_free", "gauge", [...base, "device"]],
  ["container_fs_limit_bytes", "gauge", [...base, "device"]],
  ["container_spec_cpu_period", "gauge", base],
  ["container_spec_cpu_quota", "gauge", base],
  ["container_spec_memory_reservation_limit_bytes", "gauge", base],
  ["container_spec_memory_swap_limit_bytes", "gauge", base],
  ["container_spec_cpu_shares", "gauge", base],
  ["container_spec_memory_limit_bytes", "gauge", base],
  ["container_fs_usage_bytes", "gauge", [...base, "device"]],
  ["container_scrape_error", "gauge", []],
  ["machine_cpu_cores", "gauge", ["boot_id", "machine_id", "system_uuid"]],
  ["machine_memory_bytes", "gauge", ["boot_id", "machine_id", "system_uuid"]],
  ["machine_swap_bytes", "gauge", ["boot_id", "machine_id", "system_uuid"]],
  ["machine_nvm_capacity", "gauge", ["boot_id", "machine_id", "mode", "system_uuid"]],
  ["machine_scrape_error", "gauge", []],
];

/** metrics.md sections 2, 4, 7 and 8, as far as the agent counts without an API server. */
const own: readonly (readonly [string, string, readonly string[]])[] = [
  ["kubelet_node_name", "gauge", ["node"]],
  ["kubelet_running_pods", "gauge", []],
  ["kubelet_running_containers", "gauge", ["container_state"]],
  ["kubelet_desired_pods", "gauge", ["static"]],
  ["kubelet_active_pods", "gauge", ["static"]],
  ["kubelet_mirror_pods", "gauge", []],
  ["kubelet_pod_worker_duration_seconds", "histogram", ["operation_type"]],
  ["kubelet_pod_start_duration_seconds", "histogram", []],
  ["kubelet_pleg_relist_duration_seconds", "histogram", []],
  ["kubelet_pleg_relist_interval_seconds", "histogram", []],
  ["kubelet_pleg_last_seen_seconds", "gauge", []],
  ["kubelet_runtime_operations_total", "counter", ["operation_type"]],
  ["kubelet_runtime_operations_duration_seconds", "histogram", ["operation_type"]],
  ["kubelet_run_podsandbox_duration_seconds", "histogram", ["runtime_handler"]],
  ["kubelet_started_pods_total", "counter", []],
  ["kubelet_started_pods_errors_total", "counter", []],
  ["kubelet_started_containers_total", "counter", ["container_type"]],
  ["kubelet_cgroup_version", "gauge", []],
  ["kubelet_metrics_provider", "gauge", ["provider"]],
  ["kubelet_http_requests_total", "counter", ["long_running", "method", "path", "server_type"]],
  ["kubelet_http_inflight_requests", "gauge", ["long_running", "method", "path", "server_type"]],
  ["kubelet_http_requests_duration_seconds", "histogram", ["long_running", "method", "path", "server_type"]],
  ["kubelet_pod_worker_start_duration_seconds", "histogram", []],
  ["kubelet_working_pods", "gauge", ["config", "lifecycle", "static"]],
  ["kubelet_cgroup_manager_duration_seconds", "histogram", ["operation_type"]],
  ["kubelet_admission_rejections_total", "counter", ["reason"]],
  ["kubelet_container_log_filesystem_used_bytes", "gauge", ["container", "namespace", "pod", "uid"]],
  ["kubelet_volume_metric_collection_duration_seconds", "histogram", ["metric_source"]],
  ["kubelet_certificate_manager_client_ttl_seconds", "gauge", []],
  ["kubelet_orphaned_runtime_pods_total", "counter", []],
  ["storage_operation_duration_seconds", "histogram", ["migrated", "operation_name", "status", "volume_plugin"]],
  ["volume_operation_total_seconds", "histogram", ["operation_name", "plugin_name"]],
  ["volume_manager_total_volumes", "gauge", ["plugin_name", "state"]],
  ["reconstruct_volume_operations_total", "counter", []],
  ["rest_client_exec_plugin_ttl_seconds", "gauge", []],
  ["apiserver_audit_event_total", "counter", []],
  ["apiserver_client_certificate_expiration_seconds", "histogram", []],
  ["kubernetes_feature_enabled", "gauge", ["name", "stage"]],
  ["registered_metrics_total", "counter", ["deprecated_version", "stability_level"]],
  ["go_goroutines", "gauge", []],
  ["go_memstats_heap_alloc_bytes", "gauge", []],
  ["process_network_receive_bytes_total", "counter", []],
  ["kubernetes_build_info", "gauge", [
    ...["build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor"],
    "platform",
  ]],
  ["kubernetes_healthcheck", "gauge", ["name", "type"]],
  ["kubernetes_healthchecks_total", "counter", ["name", "status", "type"]],
  ["process_cpu_seconds_total", "counter", []],
  ["process_resident_memory_bytes", "gauge", []],
  ["process_virtual_memory_bytes", "gauge", []],
  ["process_start_time_seconds", "gauge", []],
  ["process_open_fds", "gauge", []],
  ["process_max_fds", "gauge", []],
];

function hasFamily(page: Page, name: string, type: string, labels: readonly string[]): void {
  assert.equal(page.types.get(name), type, name);
  const sampled = type === "histogram" ? `${name}_count` : name;
  const found = page.samples.filter((each) => each.name === sampled);
  assert.ok(found.length > 0, `${name} has no sample`);
  for (const each of found) assert.deepEqual(Object.keys(each.labels).sort(), [...labels].sort(), name);
}

/** What the kernel says that a group has used, seconds. */
async function cpuOf(group: string): Promise<number> {
  const v1 = await unlessMissing(Deno.readTextFile(`/sys/fs/cgroup/cpuacct${group}/cpuacct.usage`));
  if (v1 !== undefined) return Number(v1) / 1e9;
  return Number(/^usage_usec (\d+)$/m.exec(await Deno.readTextFile(`/sys/fs/cgroup${group}/cpu.stat`))?.[1]) / 1e6;
}

const memoryLimit = 64 * 2 ** 20, fastSize = 4 * 2 ** 20;

/** What the contract says of every name: its type, by path and name. */
const contract = new Map(
  (await Deno.readTextFile(new URL("../../mod/server/metrics/testdata/names.tsv", import.meta.url))).trim().split("\n")
    .map((row) => row.split("\t")).map(([path, name, type]) => [`${path} ${name}`, type]),
);

/** Every family of a page has the contract's type, and is in the contract. */
function asInContract(path: string, page: Page): void {
  for (const [name, type] of page.types) assert.equal(type, contract.get(`${path} ${name}`), `${path} ${name}`);
}

for (const version of versions) {
  Deno.test(`statistics of a node on containerd ${version}`, async (t) => {
    const name = `st-${version}`;
    const [port, readOnlyPort] = [freePort(), freePort()];
    const config = {
      enableServer: true,
      address: "127.0.0.1",
      port,
      readOnlyPort,
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    };
    const flags = [`--cert-dir=/tmp/denolet-${name}-pki`];
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${readOnlyPort}${path}`);
      assert.equal(response.status, 200, path);
      return await response.text();
    };
    try {
      await withObserver({ name, containerd: version, config, flags }, async (seen) => {
        const line = "head -c 100000 /dev/zero > /cache/file; echo hello; trap 'exit 0' TERM; sleep 86400 & wait $!";
        await seen.node.agent.putManifest(
          "one.json",
          pod("one", {
            containers: [{
              ...shell("main", line),
              resources: { limits: { memory: String(memoryLimit), cpu: "200m" } },
              livenessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
              volumeMounts: [{ name: "cache", mountPath: "/cache" }, { name: "fast", mountPath: "/fast" }],
            }],
            volumes: [{ name: "cache", emptyDir: {} }, {
              name: "fast",
              emptyDir: { medium: "Memory", sizeLimit: String(fastSize) },
            }],
          }),
        );
        const full = seen.full("one");
        await waitFor("the pod to run", async () => /"running":\{/.test(await get("/pods")), { within: patience });
        // What was collected for somebody else is shared for a second: it may not have the pod yet.
        await waitFor(
          "the pod's statistics",
          async () => (await get("/metrics/resource")).includes('container="main"'),
          { within: patience },
        );

        await t.step("/metrics/resource has the contract's names, types, labels and units", async () => {
          const page = parsePage(await get("/metrics/resource"));
          asInContract("/metrics/resource", page);
          for (const [metric, type, labels, timed] of resource) {
            hasFamily(page, metric, type, labels);
            for (const each of page.samples) {
              if (each.name === metric) assert.equal(each.time !== undefined, timed, metric);
            }
          }
          const value = (metric: string) =>
            page.samples.find((each) => each.name === metric && (each.labels.pod ?? full) === full)?.value ?? NaN;
          assert.equal(value("resource_scrape_error"), 0);
          assert.ok(value("node_cpu_usage_seconds_total") > value("pod_cpu_usage_seconds_total"));
          assert.ok(value("pod_cpu_usage_seconds_total") > 0);
          assert.ok(value("container_memory_working_set_bytes") <= value("pod_memory_working_set_bytes"));
          assert.ok(value("container_memory_working_set_bytes") > 0);
          assert.ok(Math.abs(value("container_start_time_seconds") - Date.now() / 1000) < 600);
        });
        await t.step("/stats/summary has the contract's shape, and what the pod uses", async () => {
          // What a layer takes is asked of the runtime behind the answers.
          const whole = async () => JSON.parse(await get("/stats/summary"));
          await waitFor(
            "what the runtime tells of the layer",
            async () => (await whole()).pods[0]?.containers[0]?.rootfs,
            { within: patience },
          );
          const { node, pods } = await whole();
          assert.equal(node.nodeName, seen.nodeName);
          assert.deepEqual(node.systemContainers.map((each: { name: string }) => each.name), ["pods"]);
          const space = ["availableBytes", "capacityBytes", "inodes", "inodesFree", "inodesUsed", "time", "usedBytes"];
          assert.deepEqual(Object.keys(node.fs).sort(), space);
          assert.deepEqual(Object.keys(node.runtime.imageFs).sort(), space);
          assert.deepEqual(node.runtime.imageFs, node.runtime.containerFs);
          assert.ok(node.rlimit.maxpid > node.rlimit.curproc && node.rlimit.curproc > 1);
          const [one] = pods;
          assert.equal(pods.length, 1);
          assert.equal(one.podRef.name, full);
          assert.deepEqual(one.network.interfaces.map((each: { name: string }) => each.name), ["eth0"]);
          const [main] = one.containers;
          assert.equal(main.name, "main");
          const { availableBytes, workingSetBytes, usageBytes, rssBytes, pageFaults } = main.memory;
          assert.equal(availableBytes + workingSetBytes, memoryLimit);
          assert.ok(usageBytes >= workingSetBytes && rssBytes > 0 && pageFaults > 0);
          assert.ok(main.cpu.usageCoreNanoSeconds > 1_000_000);
          assert.ok(main.logs.usedBytes >= 4096 && main.logs.inodesUsed === 2, JSON.stringify(main.logs));
          // The runtime measures layers each ten seconds: of a new one it tells 0.
          assert.ok(Number.isSafeInteger(main.rootfs.usedBytes));
          assert.equal(main.rootfs.capacityBytes, node.runtime.imageFs.capacityBytes);
          const [cache, fast] = one.volume;
          assert.deepEqual([cache.name, fast.name], ["cache", "fast"]);
          assert.deepEqual(Object.keys(cache).sort(), [...space, "name"].sort());
          assert.equal(cache.capacityBytes, node.fs.capacityBytes);
          assert.equal(fast.capacityBytes, fastSize, "the room of its own file system");
          assert.ok(cache.usedBytes >= 100_000 && cache.usedBytes < 120_000, String(cache.usedBytes));
          assert.ok(one["ephemeral-storage"].usedBytes >= cache.usedBytes + main.logs.usedBytes);
          assert.ok(one.process_stats.process_count >= 2);
        });
        await t.step("only_cpu_and_memory leaves the rest out; only the word true counts", async () => {
          const small = JSON.parse(await get("/stats/summary?only_cpu_and_memory=true"));
          assert.deepEqual([small.node.fs, small.node.network, small.pods[0].volume], [
            undefined,
            undefined,
            undefined,
          ]);
          assert.equal(small.pods[0].containers[0].logs, undefined);
          assert.ok(JSON.parse(await get("/stats/summary?only_cpu_and_memory=1")).node.fs);
        });
        await t.step("/metrics/cadvisor has the contract's names, types and labels", async () => {
          const page = parsePage(await get("/metrics/cadvisor"));
          for (const [metric, type, labels] of cadvisor) hasFamily(page, metric, type, labels);
          asInContract("/metrics/cadvisor", page);
          const ofMain = (metric: string) =>
            page.samples.find((each) => each.name === metric && each.labels.container === "main")?.value ?? NaN;
          assert.equal(ofMain("container_processes"), 2, "the shell and its sleep");
          assert.ok(ofMain("container_file_descriptors") >= 6, String(ofMain("container_file_descriptors")));
          assert.equal(ofMain("container_sockets"), 0);
          assert.ok(ofMain("container_ulimits_soft") > 0);
          assert.equal(ofMain("container_spec_cpu_quota"), 20_000);
          const ofNode = page.samples.filter((each) =>
            each.name === "container_fs_usage_bytes" && each.labels.id === "/"
          );
          assert.ok(ofNode.length > 0 && ofNode.every((each) => each.labels.device !== "" && each.value > 0));
          const limit = page.samples.find((each) =>
            each.name === "container_spec_memory_limit_bytes" && each.labels.container === "main"
          );
          assert.equal(limit?.value, memoryLimit);
          assert.deepEqual([limit?.labels.pod, limit?.labels.namespace, limit?.time], [full, "default", undefined]);
          const cpu = page.samples.find((each) =>
            each.name === "container_cpu_usage_seconds_total" && each.labels.container === "main"
          );
          const now = await cpuOf(cpu?.labels.id ?? "");
          assert.ok(cpu && cpu.value > 0 && cpu.value <= now && now - cpu.value < 1, `${cpu?.value} of ${now}`);
        });
        await t.step("/metrics tells what the agent did", async () => {
          await seen.node.agent.putManifest(
            "huge.json",
            pod("huge", { containers: [{ ...shell("main", "true"), resources: { requests: { cpu: "900" } } }] }),
          );
          await waitFor(
            "the pod that does not fit to be refused",
            async () => /^kubelet_admission_rejections_total/m.test(await get("/metrics")),
            { within: patience },
          );
          const asked = { path: "metrics", server_type: "readonly" };
          const before = parsePage(await get("/metrics"));
          const requests = before.samples.find((each) =>
            each.name === "kubelet_http_requests_total" && each.labels.path === "metrics"
          )?.value ?? NaN;
          const page = parsePage(await get("/metrics"));
          asInContract("/metrics", page);
          for (const [metric, type, labels] of own) hasFamily(page, metric, type, labels);
          const value = (metric: string, labels: Readonly<Record<string, string>> = {}) =>
            page.samples.find((each) =>
              each.name === metric && Object.entries(labels).every(([key, text]) => each.labels[key] === text)
            )?.value;
          assert.equal(value("kubelet_running_pods"), 1);
          assert.equal(value("kubelet_running_containers", { container_state: "running" }), 1);
          assert.equal(value("kubelet_desired_pods", { static: "true" }), 2);
          assert.equal(value("kubelet_working_pods", { lifecycle: "sync", config: "desired", static: "true" }), 1);
          assert.equal(value("kubelet_admission_rejections_total"), 1);
          const emptyDir = "kubernetes.io/empty-dir";
          assert.equal(value("volume_manager_total_volumes", { plugin_name: emptyDir }), 2);
          assert.equal(value("storage_operation_duration_seconds_count", { volume_plugin: emptyDir }), 2);
          assert.equal(value("kubelet_cgroup_manager_duration_seconds_count", { operation_type: "create" }), 1);
          assert.equal(value("kubernetes_feature_enabled", { name: "MemoryQoS", stage: "ALPHA" }), 0);
          const logs = value("kubelet_container_log_filesystem_used_bytes", { pod: full, container: "main" }) ?? 0;
          assert.ok(logs >= 4096, String(logs));
          assert.equal(value("kubelet_started_pods_total"), 1);
          assert.equal(value("kubelet_started_containers_total", { container_type: "container" }), 1);
          assert.equal(value("kubelet_pod_start_duration_seconds_count"), 1);
          assert.equal(value("kubelet_runtime_operations_total", { operation_type: "run_podsandbox" }), 1);
          assert.equal(value("kubelet_pod_worker_duration_seconds_count", { operation_type: "create" }), 1);
          assert.equal(value("kubelet_http_requests_total", asked), requests + 1);
          assert.equal(value("kubelet_http_inflight_requests", asked), 1);
          assert.equal(value("kubernetes_healthcheck", { name: "syncloop" }), 1);
          const pleg = value("kubelet_pleg_last_seen_seconds") ?? 0;
          assert.ok(Math.abs(pleg - Date.now() / 1000) < 30, String(pleg));
          const resident = value("process_resident_memory_bytes") ?? 0;
          assert.ok(resident > 20 * 2 ** 20 && resident < 500 * 2 ** 20, String(resident));
        });
        await t.step("/metrics/probes counts runs", async () => {
          const labels = ["container", "namespace", "pod", "pod_uid", "probe_type", "result"];
          let page = parsePage("");
          await waitFor("the probe to run", async () => {
            page = parsePage(await get("/metrics/probes"));
            return page.types.has("prober_probe_total");
          }, { within: patience });
          hasFamily(page, "prober_probe_total", "counter", labels);
          hasFamily(page, "prober_probe_duration_seconds", "histogram", [
            "container",
            "namespace",
            "pod",
            "probe_type",
          ]);
          hasFamily(page, "process_start_time_seconds", "gauge", []);
          const [first] = page.samples.filter((each) => each.name === "prober_probe_total");
          assert.deepEqual([first?.labels.probe_type, first?.labels.result, first?.labels.pod], [
            "Liveness",
            "successful",
            full,
          ]);
        });
        await t.step("/metrics/slis counts checks, and forgets on DELETE", async () => {
          const page = parsePage(await get("/metrics/slis"));
          assert.deepEqual([...page.types.keys()], [
            "kubernetes_healthcheck",
            "kubernetes_healthchecks_total",
            "process_start_time_seconds",
          ]);
          const reset = await fetch(`http://127.0.0.1:${readOnlyPort}/metrics/slis`, { method: "DELETE" });
          assert.equal(await reset.text(), "metrics reset\n");
          const after = parsePage(await get("/metrics/slis"));
          const counts = after.samples.filter((each) => each.name === "kubernetes_healthchecks_total");
          assert.deepEqual(new Set(counts.map((each) => each.value)), new Set([1]));
        });
      });
    } finally {
      await Deno.remove(`/tmp/denolet-${name}-pki`, { recursive: true }).catch(() => {});
    }
  });
}
