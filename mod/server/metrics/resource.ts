import type { RatedSample, StatsSnapshot } from "../../../managers/stats/types.ts";
import { type Labels, MetricsPage, type MetricType } from "./text.ts";

type Family = readonly [MetricType, string];

const families: Readonly<Record<string, Family>> = {
  node_cpu_usage_seconds_total: ["counter", "[STABLE] CPU time that the node has used, core-seconds"],
  node_memory_working_set_bytes: ["gauge", "[STABLE] Working set of the node, bytes"],
  node_swap_usage_bytes: ["gauge", "[ALPHA] Swap in use on the node, bytes"],
  container_cpu_usage_seconds_total: ["counter", "[STABLE] CPU time that the container has used, core-seconds"],
  container_memory_working_set_bytes: ["gauge", "[STABLE] Working set of the container, bytes"],
  container_start_time_seconds: ["gauge", "[STABLE] When the container was made, seconds since the epoch"],
  container_swap_usage_bytes: ["gauge", "[ALPHA] Swap that the container uses, bytes"],
  container_swap_limit_bytes: ["gauge", "[ALPHA] Swap that the container may use, bytes"],
  pod_cpu_usage_seconds_total: ["counter", "[STABLE] CPU time that the pod has used, core-seconds"],
  pod_memory_working_set_bytes: ["gauge", "[STABLE] Working set of the pod, bytes"],
  pod_swap_usage_bytes: ["gauge", "[ALPHA] Swap that the pod uses, bytes"],
  resource_scrape_error: ["gauge", "[STABLE] 1 when the statistics could not be collected, else 0"],
};

/** Every family that the page can have, with its type. */
export const resourceFamilies: ReadonlyMap<string, MetricType> = new Map(
  Object.entries(families).map(([name, [type]]) => [name, type]),
);

/** The page /metrics/resource (metrics.md section 6). @param snapshot undefined when the collection failed */
export function resourcePage(snapshot: StatsSnapshot | undefined): string {
  const page = new MetricsPage();
  for (const [name, [type, help]] of Object.entries(families)) page.family(name, type, help);
  page.sample("resource_scrape_error", {}, snapshot ? 0 : 1);
  if (!snapshot) return page.text();
  usage(page, "node", {}, snapshot.node.sample);
  for (const { name: pod, namespace, sample, containers } of snapshot.pods) {
    if (sample) usage(page, "pod", { namespace, pod }, sample);
    for (const { name: container, startedAt, sample: own } of containers) {
      const labels = { container, namespace, pod };
      if (startedAt > 0) page.sample("container_start_time_seconds", labels, startedAt / 1000);
      if (!own) continue;
      usage(page, "container", labels, own);
      page.sample("container_swap_limit_bytes", labels, own.swap?.limit, own.at);
    }
  }
  return page.text();
}

function usage(page: MetricsPage, what: "node" | "pod" | "container", labels: Labels, sample: RatedSample): void {
  const { cpuNs, memory, swap, at } = sample;
  if (cpuNs !== undefined) page.sample(`${what}_cpu_usage_seconds_total`, labels, cpuNs / 1e9, at);
  page.sample(`${what}_memory_working_set_bytes`, labels, memory?.workingSet, at);
  page.sample(`${what}_swap_usage_bytes`, labels, swap?.usage, at);
}
