import type { PodResourcesCall } from "../../../managers/podresources/server.ts";
import { counter, MetricSet } from "./metric_set.ts";
import { Histogram } from "./registry.ts";
import type { MetricsPage } from "./text.ts";

const endpoint = (name: string, help: string) => counter(`kubelet_pod_resources_endpoint_${name}`, help, { vec: true });

/** Sockets of plugins: those that are there, and those whose plugin is in use. */
export interface PluginSockets {
  readonly sockets: readonly string[];
  readonly registered: readonly string[];
}

/** Plugins of the node, and who asks what pods have of them (metrics.md sections 2 and 3). */
export class PluginMetrics extends MetricSet {
  readonly registrations = counter(
    "kubelet_device_plugin_registration_total",
    "Device plugins that wanted to be used, by resource",
    { vec: true },
  );
  readonly allocationSeconds = new Histogram({
    name: "kubelet_device_plugin_alloc_duration_seconds",
    help: "How long device plugins took to give devices, seconds",
  });
  readonly calls = endpoint("requests_total", "Calls about pods' resources");
  readonly methods = {
    list: endpoint("requests_list", "Calls about the resources of all pods"),
    get_allocatable: endpoint("requests_get_allocatable", "Calls about what pods may have"),
    get: endpoint("requests_get", "Calls about the resources of one pod"),
  };
  readonly errors = {
    list: endpoint("errors_list", "Calls about the resources of all pods that failed"),
    get_allocatable: endpoint("errors_get_allocatable", "Calls about what pods may have that failed"),
    get: endpoint("errors_get", "Calls about the resources of one pod that failed"),
  };
  /** Asked when a page is made; set once plugins are looked for. */
  sockets: (() => PluginSockets) | undefined;

  override writeTo(page: MetricsPage): void {
    super.writeTo(page);
    for (const counters of [this.methods, this.errors]) {
      for (const each of Object.values(counters)) each.writeTo(page);
    }
    const name = "plugin_manager_total_plugins";
    page.family(name, "gauge", "Plugins by socket: those that are there, and those that are in use");
    const { sockets = [], registered = [] } = this.sockets?.() ?? {};
    for (const path of registered) page.sample(name, { socket_path: path, state: "actual_state_of_world" }, 1);
    for (const path of sockets) page.sample(name, { socket_path: path, state: "desired_state_of_world" }, 1);
  }

  /** A device plugin wants to be used, whether or not it can be. */
  registered(resource: string): void {
    this.registrations.add({ resource_name: resource });
  }

  /** A device plugin has given devices, or failed to. */
  allocated(resource: string, ms: number): void {
    this.allocationSeconds.observe({ resource_name: resource }, ms / 1000);
  }

  podResources({ version, method, failed }: PodResourcesCall): void {
    const labels = { server_api_version: version };
    this.calls.add(labels);
    // the alpha version has one method, and counts in the sum only
    if (version !== "v1") return;
    this.methods[method].add(labels);
    if (failed) this.errors[method].add(labels);
  }
}
