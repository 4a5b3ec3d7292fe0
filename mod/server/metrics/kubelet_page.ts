import { isStatic } from "../../kube/pod.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { HealthCheck } from "../healthz.ts";
import type { ServerBackend } from "../types.ts";
import type { AgentMetrics } from "./agent_metrics.ts";
import { emptyHistograms, zeros } from "./fixed_families.ts";
import { MetricSet } from "./metric_set.ts";
import { type ProcessOptions, startHelp, startOf, writeProcess } from "./process_page.ts";
import { Histogram, Numbers } from "./registry.ts";
import { MetricsPage } from "./text.ts";

/** What the pages about the agent itself are made of. */
export interface KubeletPageOptions {
  readonly metrics: AgentMetrics;
  readonly backend: Pick<ServerBackend, "nodeName" | "pods" | "allObserved" | "host">;
  readonly healthChecks: () => readonly HealthCheck[];
  readonly cgroupVersion: 1 | 2;
  /** Such as v1.36.3. */
  readonly version: string;
  /** The machine's, as Go names it. */
  readonly arch?: string;
  /** Every feature gate. */
  readonly gates?: () => readonly (readonly [name: string, on: boolean, stage: string])[];
  /** Pods that nobody wants any more and that have not gone yet. */
  readonly leaving?: () => readonly { readonly pod: BoundPod }[];
  /** Number of mirror pods that the API server has. */
  readonly mirrors?: () => number;
  /** What the agent's process tells of itself. */
  readonly process?: Omit<ProcessOptions, "host">;
  /** Puts in what is taken from the node's statistics. */
  readonly used?: (page: MetricsPage) => Promise<void>;
}

function gauge(page: MetricsPage, name: string, help: string, value: number, labels = {}): void {
  page.family(name, "gauge", help);
  page.sample(name, labels, value);
}

/** The page /metrics, as far as this agent counts (metrics.md sections 2 to 4). */
export async function kubeletPage(options: KubeletPageOptions): Promise<string> {
  const page = new MetricsPage();
  await writeKubelet(page, options);
  return page.text();
}

/** Puts all of /metrics into a page. */
export async function writeKubelet(page: MetricsPage, options: KubeletPageOptions): Promise<void> {
  const { metrics, backend, cgroupVersion } = options;
  gauge(page, "kubelet_node_name", "The node's name", 1, { node: backend.nodeName });
  gauge(page, "kubelet_cgroup_version", "Version of the control groups", cgroupVersion);
  gauge(page, "kubelet_metrics_provider", "Where statistics of containers come from", 1, { provider: "cadvisor" });
  build(page, options);
  for (const [name, type, help] of zeros) {
    page.family(name, type, help);
    page.sample(name, {}, 0);
  }
  for (const [name, help] of emptyHistograms) new Histogram({ name, help }).begin().writeTo(page);
  pods(page, options);
  metrics.security.refresh();
  for (const each of Object.values(metrics)) {
    if (each instanceof MetricSet) each.writeTo(page);
    if (!(each instanceof Numbers || each instanceof Histogram)) continue;
    if (each !== metrics.probes && each !== metrics.probeSeconds && each !== metrics.healthChecks) each.writeTo(page);
  }
  for (const source of metrics.more) source.writeTo(page);
  await options.used?.(page);
  health(page, options);
  await writeProcess(page, { host: backend.host, ...options.process });
  const stability = { deprecated_version: "", stability_level: "ALPHA" };
  page.family("registered_metrics_total", "counter", "Metrics that are known");
  page.sample("registered_metrics_total", stability, page.declared().size);
}

/** What was built, and what is switched on in it. */
function build(page: MetricsPage, { version, gates, arch = "amd64" }: KubeletPageOptions): void {
  const [, major = "", minor = ""] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  gauge(page, "kubernetes_build_info", "[BETA] What was built; always 1", 1, {
    build_date: "",
    compiler: "",
    git_commit: "",
    git_tree_state: "",
    git_version: version,
    go_version: "",
    major,
    minor,
    platform: `linux/${arch}`,
  });
  for (const [name, on, stage] of gates?.() ?? []) {
    const help = "[BETA] 1 when the feature gate is on, else 0";
    gauge(page, "kubernetes_feature_enabled", help, on ? 1 : 0, { name, stage: stage === "GA" ? "" : stage });
  }
}

function pods(page: MetricsPage, { backend, leaving, mirrors }: KubeletPageOptions): void {
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
  for (const fixed of [false, true]) {
    const label = { static: fixed ? "true" : "" };
    const own = wanted.filter(({ pod }) => isStatic(pod) === fixed);
    const active = own.filter(({ status }) => !["Succeeded", "Failed"].includes(status?.phase ?? ""));
    gauge(page, "kubelet_desired_pods", "Pods that are wanted", own.length, label);
    gauge(page, "kubelet_active_pods", "Pods that are wanted and have not ended", active.length, label);
    const working = (lifecycle: string, config: string, count: number) =>
      gauge(page, "kubelet_working_pods", "Pods that are looked after", count, { config, lifecycle, ...label });
    working("sync", "desired", active.length);
    working("terminated", "desired", own.length - active.length);
    working("terminating", "orphan", (leaving?.() ?? []).filter(({ pod }) => isStatic(pod) === fixed).length);
  }
  const ephemeral = wanted.reduce((sum, { pod }) => sum + (pod.spec.ephemeralContainers?.length ?? 0), 0);
  gauge(page, "kubelet_managed_ephemeral_containers", "Ephemeral containers", ephemeral);
  gauge(page, "kubelet_mirror_pods", "Mirror pods", mirrors?.() ?? 0);
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
  startTime(page, options);
  return page.text();
}

/** The page /metrics/probes (metrics.md section 7). */
export function probesPage(options: KubeletPageOptions): string {
  const { metrics } = options;
  const page = new MetricsPage();
  metrics.forgetProbes();
  metrics.probes.writeTo(page);
  metrics.probeSeconds.writeTo(page);
  startTime(page, options);
  return page.text();
}

function startTime(page: MetricsPage, { backend: { host } }: KubeletPageOptions): void {
  const started = startOf(host);
  if (started !== undefined) gauge(page, "process_start_time_seconds", startHelp, started);
}
