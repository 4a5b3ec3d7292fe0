import type { Host } from "../../base/host.ts";
import type { HealthCheck } from "../healthz.ts";
import type { ServerBackend } from "../types.ts";
import type { AgentMetrics } from "./agent_metrics.ts";
import { Histogram, Numbers } from "./registry.ts";
import { MetricsPage, type MetricType } from "./text.ts";

/** What the pages about the agent itself are made of. */
export interface KubeletPageOptions {
  readonly metrics: AgentMetrics;
  readonly backend: Pick<ServerBackend, "nodeName" | "pods" | "allObserved" | "host">;
  readonly healthChecks: () => readonly HealthCheck[];
  readonly cgroupVersion: 1 | 2;
  /** Such as v1.36.3. */
  readonly version: string;
}

/** What this agent has none of, and so counts as 0: CPU and memory are pinned to nobody, nothing shuts down. */
const zeros: readonly (readonly [string, MetricType, string])[] = [
  ["kubelet_mirror_pods", "gauge", "Mirror pods"],
  ["kubelet_managed_ephemeral_containers", "gauge", "Ephemeral containers"],
  ["kubelet_cpu_manager_pinning_requests_total", "counter", "Containers that asked for CPUs of their own"],
  ["kubelet_cpu_manager_pinning_errors_total", "counter", "Containers that got no CPUs of their own"],
  ["kubelet_cpu_manager_exclusive_cpu_allocation_count", "gauge", "CPUs that belong to one container"],
  ["kubelet_memory_manager_pinning_requests_total", "counter", "Containers that asked for memory of one node"],
  ["kubelet_memory_manager_pinning_errors_total", "counter", "Containers that got no memory of one node"],
  ["kubelet_topology_manager_admission_requests_total", "counter", "Pods whose topology was looked at"],
  ["kubelet_topology_manager_admission_errors_total", "counter", "Pods whose topology did not fit"],
  ["kubelet_graceful_shutdown_start_time_seconds", "gauge", "When the node's last shutdown began"],
  ["kubelet_graceful_shutdown_end_time_seconds", "gauge", "When the node's last shutdown ended"],
  ["kubelet_pod_in_progress_resizes", "gauge", "Pods that are being resized"],
];

function gauge(page: MetricsPage, name: string, help: string, value: number, labels = {}): void {
  page.family(name, "gauge", help);
  page.sample(name, labels, value);
}

/** The page /metrics, as far as this agent counts (metrics.md sections 2 to 4). */
export async function kubeletPage(options: KubeletPageOptions): Promise<string> {
  const { metrics, backend, cgroupVersion, version } = options;
  const page = new MetricsPage();
  gauge(page, "kubelet_node_name", "The node's name", 1, { node: backend.nodeName });
  gauge(page, "kubelet_cgroup_version", "Version of the control groups", cgroupVersion);
  gauge(page, "kubelet_metrics_provider", "Where statistics of containers come from", 1, { provider: "cadvisor" });
  const [, major = "", minor = ""] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  gauge(page, "kubernetes_build_info", "What was built; always 1", 1, { git_version: version, major, minor });
  for (const [name, type, help] of zeros) {
    page.family(name, type, help);
    page.sample(name, {}, 0);
  }
  pods(page, backend);
  for (const each of Object.values(metrics)) {
    if (!(each instanceof Numbers || each instanceof Histogram)) continue;
    if (each !== metrics.probes && each !== metrics.probeSeconds && each !== metrics.healthChecks) each.writeTo(page);
  }
  health(page, options);
  await processOf(page, backend.host);
  return page.text();
}

function pods(page: MetricsPage, backend: KubeletPageOptions["backend"]): void {
  let sandboxes = 0;
  const states: Record<string, number> = { created: 0, exited: 0, running: 0, unknown: 0 };
  for (const { sandboxes: boxes, containers } of backend.allObserved()) {
    if (boxes.some(({ ready }) => ready)) sandboxes++;
    for (const { state } of containers) states[state] = (states[state] ?? 0) + 1;
  }
  gauge(page, "kubelet_running_pods", "Pods with a sandbox that is ready", sandboxes);
  for (const [state, count] of Object.entries(states)) {
    gauge(page, "kubelet_running_containers", "Containers in the runtime, by state", count, { container_state: state });
  }
  const wanted = backend.pods();
  const active = wanted.filter(({ status }) => !["Succeeded", "Failed"].includes(status?.phase ?? ""));
  // Every pod of an agent without an API server comes from a file, a URL or its standard input.
  for (
    const [name, help, count] of [
      ["kubelet_desired_pods", "Pods that are wanted", wanted.length],
      ["kubelet_active_pods", "Pods that are wanted and have not ended", active.length],
    ] as const
  ) {
    gauge(page, name, help, 0, { static: "" });
    gauge(page, name, help, count, { static: "true" });
  }
}

/** Asks each check once; a page of health is a look at health. */
function health(page: MetricsPage, { metrics, healthChecks }: KubeletPageOptions): void {
  for (const { name, check } of healthChecks()) {
    const ok = check() === undefined;
    const labels = { name, type: "healthz" };
    gauge(page, "kubernetes_healthcheck", "[STABLE] 1 when the check succeeds, else 0", ok ? 1 : 0, labels);
    metrics.healthChecks.add({ name, status: ok ? "success" : "error", type: "healthz" });
  }
  metrics.healthChecks.writeTo(page);
}

/** The page /metrics/slis (metrics.md section 8). */
export function slisPage(options: KubeletPageOptions): string {
  const page = new MetricsPage();
  health(page, options);
  return page.text();
}

/** The page /metrics/probes (metrics.md section 7). */
export async function probesPage({ metrics, backend: { host } }: KubeletPageOptions): Promise<string> {
  const page = new MetricsPage();
  metrics.forgetProbes();
  metrics.probes.writeTo(page);
  metrics.probeSeconds.writeTo(page);
  const started = await startOf(host);
  if (started !== undefined) gauge(page, "process_start_time_seconds", startHelp, started);
  return page.text();
}

const startHelp = "When the agent started, seconds since the epoch";
/** What Linux shows to programs, on every machine that this agent runs on. */
const ticks = 100, pageBytes = 4096;

/** Fields of /proc/self/stat from the third on: the name before them may hold anything. */
async function statOf(host: Host): Promise<readonly number[]> {
  const text = await host.readText(`${host.procRoot}/self/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
}

async function startOf(host: Host, stat?: readonly number[]): Promise<number | undefined> {
  const [, boot] = /^btime (\d+)$/m.exec(await host.readText(`${host.procRoot}/stat`)) ?? [];
  const ticksAfter = (stat ?? await statOf(host))[19];
  return boot === undefined || ticksAfter === undefined ? undefined : Number(boot) + ticksAfter / ticks;
}

async function processOf(page: MetricsPage, host: Host): Promise<void> {
  const self = `${host.procRoot}/self`;
  const [stat, files, limits] = await Promise.all([
    statOf(host),
    host.readDir(`${self}/fd`),
    host.readText(`${self}/limits`),
  ]);
  const limit = (name: string) => {
    const [, text] = new RegExp(`^${name}\\s+(\\S+)`, "m").exec(limits) ?? [];
    return text === "unlimited" ? Infinity : Number(text);
  };
  const [user = 0, system = 0] = stat.slice(11, 13);
  page.family("process_cpu_seconds_total", "counter", "CPU time of the agent, seconds");
  page.sample("process_cpu_seconds_total", {}, (user + system) / ticks);
  gauge(page, "process_virtual_memory_bytes", "Address space of the agent, bytes", stat[20] ?? 0);
  gauge(page, "process_resident_memory_bytes", "Resident memory of the agent, bytes", (stat[21] ?? 0) * pageBytes);
  gauge(page, "process_open_fds", "Files that the agent has open", files.length);
  gauge(page, "process_max_fds", "Files that the agent may have open", limit("Max open files"));
  gauge(page, "process_virtual_memory_max_bytes", "Address space that it may have, bytes", limit("Max address space"));
  const started = await startOf(host, stat);
  if (started !== undefined) gauge(page, "process_start_time_seconds", startHelp, started);
}
