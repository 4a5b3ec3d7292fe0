import assert from "@assert";
import type { CgroupManager } from "../../../managers/cgroups/types.ts";
import { FakeClock } from "../../base/fake_clock.ts";
import type { BoundPod } from "../../kube/types.ts";
import { AgentMetrics } from "./agent_metrics.ts";
import { ClientMetrics } from "./client_metrics.ts";
import type { MetricSource } from "./metric_set.ts";
import { PluginMetrics } from "./plugin_metrics.ts";
import { SecurityMetrics } from "./security_metrics.ts";
import { MetricsPage } from "./text.ts";
import { writeUsed } from "./used_page.ts";
import { WorkMetrics } from "./work_metrics.ts";

/** The samples of a set whose names begin so. */
function told(source: MetricSource, prefix: string): string[] {
  const page = new MetricsPage();
  source.writeTo(page);
  return page.text().split("\n").filter((line) => line.startsWith(prefix));
}

const reasons: readonly (readonly [string, string])[] = [
  ["OutOfcpu", "OutOfcpu"],
  ["OutOfexample.com/gpu", "OutOfExtendedResources"],
  ["Evicted", "Evicted"],
  ["NodeAffinity", "Other"],
  ["__proto__", "Other"],
];
for (const [reason, label] of reasons) {
  Deno.test(`a pod refused for ${reason} counts as ${label}`, () => {
    const work = new WorkMetrics();
    work.rejected(reason);
    assert.deepEqual(told(work, "kubelet_admission"), [`kubelet_admission_rejections_total{reason="${label}"} 1`]);
  });
}

Deno.test("what managers do: preemptions, images, volumes by plugin; nothing is told of vectors before", () => {
  const work = new WorkMetrics();
  for (const prefix of ["kubelet_preemptions", "kubelet_image_garbage", "storage_operation"]) {
    assert.deepEqual(told(work, prefix), []);
  }
  work.preempted("cpu");
  work.imageRemoved("age");
  work.ensuredImage({ policy: "Always", present: undefined, pulled: true });
  work.volume({ plugin: "kubernetes.io/image", operation: "volume_mount", seconds: .2, failed: true });
  work.volume({ plugin: "kubernetes.io/image", operation: "volume_mount", seconds: 2, failed: false });
  assert.deepEqual(told(work, "kubelet_preemptions"), ['kubelet_preemptions{preemption_signal="cpu"} 1']);
  assert.deepEqual(told(work, "kubelet_image_garbage"), ['kubelet_image_garbage_collected_total{reason="age"} 1']);
  const ensured = 'present_locally="unknown",pull_policy="always",pull_required="true"';
  assert.deepEqual(told(work, "kubelet_image_manager"), [
    `kubelet_image_manager_ensure_image_requests_total{${ensured}} 1`,
  ]);
  assert.deepEqual(told(work, "kubelet_image_volume"), [
    "kubelet_image_volume_mounted_errors_total 1",
    "kubelet_image_volume_mounted_succeed_total 1",
    "kubelet_image_volume_requested_total 2",
  ]);
  const [failed, done] = told(work, "storage_operation_duration_seconds_count");
  assert.match(
    failed ?? "",
    /operation_name="volume_mount",status="fail-unknown",volume_plugin="kubernetes.io\/image"} 1/,
  );
  assert.match(done ?? "", /status="success"/);
  assert.equal(told(work, "volume_operation_total_seconds_count").length, 1);
  const of = (count: number) => new Map([["kubernetes.io/empty-dir", count]]);
  work.volumes = { mounted: () => of(1), wanted: () => of(2) };
  assert.deepEqual(told(work, "volume_manager_total"), [
    'volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"} 1',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"} 2',
  ]);
});

Deno.test("records of pulls: how many, and how full the reference's memory for them would be", () => {
  const security = new SecurityMetrics();
  const figures = () => told(security, "kubelet_imagemanager").map((line) => line.replace("kubelet_imagemanager_", ""));
  const capacity = { intents: 220, records: 550 };
  assert.deepEqual(figures(), [
    "inmemory_pulledrecords_usage_percent 0",
    "inmemory_pullintents_usage_percent 0",
    "ondisk_pulledrecords 0",
    "ondisk_pullintents 0",
  ]);
  security.pullRecords({ intents: 5, records: 600, capacity });
  assert.deepEqual(figures(), [
    "inmemory_pulledrecords_usage_percent 100",
    "inmemory_pullintents_usage_percent 2",
    "ondisk_pulledrecords 600",
    "ondisk_pullintents 5",
  ]);
  security.pullRecords({ intents: 1, records: 1, capacity: { intents: 0, records: 0 } });
  assert.equal(figures()[0], "inmemory_pulledrecords_usage_percent 0");
});

Deno.test("what goes another way than it should is counted, and 0 before", () => {
  const work = new WorkMetrics();
  const names = [
    ..."kubelet_restarted_pods_total kubelet_orphaned_runtime_pods_total kubelet_lifecycle_handler".split(" "),
    ..."kubelet_sleep_action reconstruct_ force_cleaned_ kubelet_orphan_pod_cleaned".split(" "),
  ];
  const all = () => names.flatMap((name) => told(work, name)).filter((line) => !line.endsWith(" 0"));
  assert.deepEqual(all(), []);
  assert.equal(names.flatMap((name) => told(work, name)).length, 11);
  work.restartedPod(true);
  work.orphanedPod();
  work.httpFallback();
  work.sleepCut();
  work.foundVolume(true);
  work.foundVolume(false);
  work.forcedVolume(false);
  work.forcedVolume(true);
  work.orphanVolumes(3, 1);
  assert.deepEqual(all(), [
    'kubelet_restarted_pods_total{static="true"} 1',
    "kubelet_orphaned_runtime_pods_total 1",
    "kubelet_lifecycle_handler_http_fallbacks_total 1",
    "kubelet_sleep_action_terminated_early_total 1",
    "reconstruct_volume_operations_errors_total 1",
    "reconstruct_volume_operations_total 2",
    "force_cleaned_failed_volume_operation_errors_total 1",
    "force_cleaned_failed_volume_operations_total 2",
    "kubelet_orphan_pod_cleaned_volumes 3",
    "kubelet_orphan_pod_cleaned_volumes_errors 1",
  ]);
});

Deno.test("memory kept for pods is told only where it is kept", () => {
  const work = new WorkMetrics();
  assert.deepEqual(told(work, "kubelet_memory_qos"), []);
  work.memoryKept({ min: 2n ** 30n, low: 0n });
  assert.deepEqual(told(work, "kubelet_memory_qos"), [
    "kubelet_memory_qos_node_memory_low_bytes 0",
    "kubelet_memory_qos_node_memory_min_bytes 1073741824",
  ]);
});

Deno.test("plugins: registrations, allocations, calls about pods' resources, sockets; nothing is told before there are any", () => {
  const plugins = new PluginMetrics();
  assert.deepEqual(told(plugins, ""), [""]);
  plugins.registered("example.com/d");
  plugins.allocated("example.com/d", 250);
  plugins.podResources({ version: "v1", method: "list", failed: false });
  plugins.podResources({ version: "v1", method: "get", failed: true });
  plugins.podResources({ version: "v1", method: "get_allocatable", failed: false });
  plugins.podResources({ version: "v1alpha1", method: "list", failed: true });
  plugins.sockets = () => ({ sockets: ["/r/a.sock", "/r/b.sock"], registered: ["/r/a.sock"] });
  assert.deepEqual(told(plugins, "kubelet_device_plugin_registration"), [
    'kubelet_device_plugin_registration_total{resource_name="example.com/d"} 1',
  ]);
  assert.deepEqual(told(plugins, "kubelet_device_plugin_alloc_duration_seconds_sum"), [
    'kubelet_device_plugin_alloc_duration_seconds_sum{resource_name="example.com/d"} 0.25',
  ]);
  assert.deepEqual(told(plugins, "kubelet_pod_resources_endpoint"), [
    'kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"} 1',
    'kubelet_pod_resources_endpoint_requests_get{server_api_version="v1"} 1',
    'kubelet_pod_resources_endpoint_requests_get_allocatable{server_api_version="v1"} 1',
    'kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} 1',
    'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"} 3',
    'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1alpha1"} 1',
  ]);
  assert.deepEqual(told(plugins, "plugin_manager"), [
    'plugin_manager_total_plugins{socket_path="/r/a.sock",state="actual_state_of_world"} 1',
    'plugin_manager_total_plugins{socket_path="/r/a.sock",state="desired_state_of_world"} 1',
    'plugin_manager_total_plugins{socket_path="/r/b.sock",state="desired_state_of_world"} 1',
  ]);
});

Deno.test("work on control groups is timed, whatever else the manager is; a pod's first is its making", async () => {
  class Groups {
    readonly #own = "kept";
    fails = false;
    ensurePod(): Promise<void> {
      return this.fails ? Promise.reject(new Error(this.#own)) : Promise.resolve();
    }
    destroyPod(): Promise<void> {
      return Promise.resolve();
    }
    updateQos(): Promise<void> {
      return Promise.resolve();
    }
    more(): string {
      return this.#own;
    }
  }
  const inner = new Groups();
  const work = new WorkMetrics();
  const groups = work.groups(inner as unknown as CgroupManager & Groups, () => 0);
  const pod = { metadata: { uid: "u1" } } as BoundPod;
  assert.equal(groups.more(), "kept");
  await groups.ensurePod(pod);
  await groups.ensurePod(pod);
  await groups.updateQos([]);
  await groups.destroyPod("u1");
  inner.fails = true;
  await assert.rejects(groups.ensurePod(pod), /kept/);
  assert.deepEqual(told(work, "kubelet_cgroup_manager_duration_seconds_count"), [
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 2',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="update"} 2',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="destroy"} 1',
  ]);
});

Deno.test("who asks is counted under few names", () => {
  const metrics = new AgentMetrics({ clock: new FakeClock() });
  for (const user of ["system:node:n1", "me@example.com", "admin", undefined]) {
    metrics.authenticated({ user, seconds: .01, ...(user === "admin" ? { certificateEnds: 7200 } : {}) });
  }
  metrics.authorized("denied", .01);
  assert.deepEqual(told(metrics.auth, "authenticated_user_requests"), [
    'authenticated_user_requests{username="other"} 1',
    'authenticated_user_requests{username="email_id"} 1',
    'authenticated_user_requests{username="admin"} 1',
  ]);
  assert.deepEqual(told(metrics.auth, "authentication_attempts"), [
    'authentication_attempts{result="success"} 3',
    'authentication_attempts{result="failure"} 1',
  ]);
  assert.deepEqual(told(metrics.auth, "authorization_attempts_total"), [
    'authorization_attempts_total{result="denied"} 1',
  ]);
  assert.deepEqual(told(metrics.auth, "apiserver_client_certificate_expiration_seconds_sum"), [
    "apiserver_client_certificate_expiration_seconds_sum 7200",
  ]);
});

Deno.test("calls of the API server: nothing before the first, then by host", () => {
  const client = new ClientMetrics(() => 60_000);
  assert.deepEqual(told(client, "rest_client_request"), []);
  client.request({ verb: "GET", host: "h:1", code: 200, method: "GET", seconds: .1, receivedBytes: 5 });
  client.retried({ verb: "GET", host: "h:1", code: "<error>" });
  client.limited({ verb: "GET", host: "h:1" }, 1);
  assert.deepEqual(told(client, "rest_client_requests_total"), [
    'rest_client_requests_total{code="200",host="h:1",method="GET"} 1',
  ]);
  assert.deepEqual(told(client, "rest_client_exec_plugin_call"), []);
  assert.deepEqual(told(client, "rest_client_exec_plugin_ttl"), ["rest_client_exec_plugin_ttl_seconds +Inf"]);
  client.pluginCall("plugin_execution_error", 3);
  client.pluginCertificate({ notAfter: 90_000, replacedAgeMs: undefined });
  client.pluginCertificate({ notAfter: 120_000, replacedAgeMs: 5000 });
  client.openTransports = () => 3;
  assert.deepEqual(told(client, "rest_client_exec_plugin_call"), [
    'rest_client_exec_plugin_call_total{call_status="plugin_execution_error",code="3"} 1',
  ]);
  assert.deepEqual(told(client, "rest_client_exec_plugin_ttl"), ["rest_client_exec_plugin_ttl_seconds 60"]);
  assert.deepEqual(told(client, "rest_client_exec_plugin_certificate_rotation_age_sum"), [
    "rest_client_exec_plugin_certificate_rotation_age_sum 5",
  ]);
  assert.deepEqual(told(client, "rest_client_transport_cache_entries"), ["rest_client_transport_cache_entries 3"]);
  assert.equal(told(client, "rest_client_request_size_bytes").length, 0, "what is not known is not told");
  assert.equal(
    told(client, "rest_client_response_size_bytes_count")[0],
    'rest_client_response_size_bytes_count{host="h:1",verb="GET"} 1',
  );
});

Deno.test("certificates: the time that is left, +Inf without one", () => {
  const security = new SecurityMetrics();
  const ttl = () => told(security, "kubelet_certificate_manager_client_ttl")[0];
  assert.equal(ttl(), "kubelet_certificate_manager_client_ttl_seconds +Inf");
  security.certificateTtl("client", () => 60_000);
  security.refresh();
  assert.equal(ttl(), "kubelet_certificate_manager_client_ttl_seconds 60");
  assert.deepEqual(told(security, "kubelet_certificate_manager_server_ttl"), [
    "kubelet_certificate_manager_server_ttl_seconds +Inf",
  ]);
  for (const what of ["client", "serving", "serving"] as const) security.renewFailed(what);
  security.rotated("client", 1);
  security.rotated("serving", 7_200_000);
  assert.deepEqual(
    ["kubelet_certificate_manager_client_expiration_renew_errors", "kubelet_server_expiration_renew_errors"].flatMap(
      (name) => told(security, name),
    ),
    ["kubelet_certificate_manager_client_expiration_renew_errors 1", "kubelet_server_expiration_renew_errors 2"],
  );
  assert.deepEqual(told(security, "kubelet_certificate_manager_server_rotation_seconds_sum"), [
    "kubelet_certificate_manager_server_rotation_seconds_sum 7200",
  ]);
  assert.deepEqual(told(security, "kubelet_podcertificate"), []);
  security.podCertificates = () => [{ signer: "example.com/s", state: "fresh", count: 2 }];
  assert.deepEqual(told(security, "kubelet_podcertificate"), [
    'kubelet_podcertificate_states{signer_name="example.com/s",state="fresh"} 2',
  ]);
  security.pluginConfiguration("a");
  security.pluginConfiguration("b");
  assert.deepEqual(told(security, "kubelet_credential_provider_config_info"), [
    'kubelet_credential_provider_config_info{hash="b"} 1',
  ]);
});

Deno.test("volumes of claims are told once, logs of each container; all else is left out", () => {
  const claim = { name: "data-0", namespace: "ns" };
  const fs = { at: 1, used: 3, capacity: 9, inodes: 8 };
  const pod = (name: string) => ({
    ...{ uid: `u-${name}`, name, namespace: "ns", startedAt: 1, group: undefined, sample: undefined },
    containers: [{
      ...{ name: "main", id: "c", image: "i", startedAt: 1, group: undefined, sample: undefined },
      logs: { at: 1, used: 4096 },
    }],
    volumes: [{ name: "v", claim, abnormal: true, ...fs }, { name: "scratch", ...fs }],
  });
  const node = { name: "n", startedAt: 1, memoryCapacity: 1, swapCapacity: 0, cpus: 1, sample: { at: 1 }, system: [] };
  const page = new MetricsPage();
  writeUsed(page, { at: 1, detail: "summary", node, pods: [pod("a"), pod("b")] });
  const samples = page.text().split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const labels = '{namespace="ns",persistentvolumeclaim="data-0"}';
  assert.deepEqual(samples, [
    'kubelet_container_log_filesystem_used_bytes{container="main",namespace="ns",pod="a",uid="u-a"} 4096',
    'kubelet_container_log_filesystem_used_bytes{container="main",namespace="ns",pod="b",uid="u-b"} 4096',
    `kubelet_volume_stats_capacity_bytes${labels} 9`,
    `kubelet_volume_stats_health_status_abnormal${labels} 1`,
    `kubelet_volume_stats_inodes${labels} 8`,
    `kubelet_volume_stats_used_bytes${labels} 3`,
  ]);
});
