import type { MetricType } from "./text.ts";

/** What this agent has none of, and so counts as 0: nothing is pinned, nothing shuts down. */
export const zeros: readonly (readonly [name: string, type: MetricType, help: string])[] = [
  ["kubelet_cpu_manager_pinning_requests_total", "counter", "Containers that asked for CPUs of their own"],
  ["kubelet_cpu_manager_pinning_errors_total", "counter", "Containers that got no CPUs of their own"],
  ["kubelet_cpu_manager_exclusive_cpu_allocation_count", "gauge", "CPUs that belong to one container"],
  ["kubelet_memory_manager_pinning_requests_total", "counter", "Containers that asked for memory of one node"],
  ["kubelet_memory_manager_pinning_errors_total", "counter", "Containers that got no memory of one node"],
  ["kubelet_topology_manager_admission_requests_total", "counter", "Pods whose topology was looked at"],
  ["kubelet_topology_manager_admission_errors_total", "counter", "Pods whose topology did not fit"],
  ["kubelet_graceful_shutdown_start_time_seconds", "gauge", "When the node's last shutdown began"],
  ["kubelet_graceful_shutdown_end_time_seconds", "gauge", "When the node's last shutdown ended"],
  ["kubelet_pod_watch_events_dropped_total", "counter", "Events of watches on pods that were lost"],
  ["kubelet_cpu_manager_shared_pool_size_millicores", "gauge", "CPU that containers without CPUs of their own share"],
  ["kubelet_pleg_discard_events", "counter", "Events of pods that were lost; none ever is"],
  // Of libraries that the reference is built with, and that do nothing in a node agent.
  ["aggregator_discovery_aggregation_count_total", "counter", "Always 0: of an API server"],
  ["aggregator_discovery_nopeer_requests_total", "counter", "Always 0: of an API server"],
  ["aggregator_discovery_peer_aggregated_cache_hits_total", "counter", "Always 0: of an API server"],
  ["aggregator_discovery_peer_aggregated_cache_misses_total", "counter", "Always 0: of an API server"],
  ["apiserver_audit_event_total", "counter", "Always 0: the node's API is not audited"],
  ["apiserver_audit_requests_rejected_total", "counter", "Always 0: the node's API is not audited"],
  ["apiserver_envelope_encryption_dek_cache_fill_percent", "gauge", "Always 0: of an API server"],
  ["apiserver_storage_data_key_generation_failures_total", "counter", "Always 0: of an API server"],
  ["apiserver_storage_envelope_transformation_cache_misses_total", "counter", "Always 0: of an API server"],
  ["apiserver_validation_declarative_validation_mismatch_total", "counter", "Always 0: of an API server"],
  ["apiserver_validation_declarative_validation_panic_total", "counter", "Always 0: of an API server"],
  ["apiserver_validation_duplicate_validation_error_total", "counter", "Always 0: of an API server"],
  ["apiserver_webhooks_x509_insecure_sha1_total", "counter", "Always 0: no webhook is called"],
  ["apiserver_webhooks_x509_missing_san_total", "counter", "Always 0: no webhook is called"],
  ["cardinality_enforcement_unexpected_categorizations_total", "counter", "Always 0: no label is limited by a list"],
  ["disabled_metrics_total", "counter", "Metrics that were switched off"],
  ["hidden_metrics_total", "counter", "Metrics that are hidden"],
];

/** Histograms without labels of which nothing is ever observed; the reference tells them from its start on. */
export const emptyHistograms: readonly (readonly [name: string, help: string])[] = [
  ["kubelet_topology_manager_admission_duration_ms", "How long it took to look at pods' topology"],
  ["apiserver_storage_data_key_generation_duration_seconds", "Always empty: of an API server"],
];
