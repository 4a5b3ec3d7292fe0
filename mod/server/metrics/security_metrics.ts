import type { CheckResult, RecordCounts } from "../../../managers/images/credentials/pull_records.ts";
import type { PodCertificateState } from "../../../managers/pod_certificates/manager.ts";
import { counter, gauge, MetricSet } from "./metric_set.ts";
import { Histogram } from "./registry.ts";
import type { MetricsPage } from "./text.ts";

/** From minutes to years, seconds. */
const rotations = [60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000];

/** Certificates of the agent, and credentials of images (metrics.md section 2). */
export class SecurityMetrics extends MetricSet {
  readonly clientTtl = gauge(
    "kubelet_certificate_manager_client_ttl_seconds",
    "Time until the client certificate ends, seconds; +Inf without one",
  );
  readonly serverTtl = gauge(
    "kubelet_certificate_manager_server_ttl_seconds",
    "Time until the serving certificate ends, seconds; +Inf without one that was signed",
  );
  readonly clientRenewErrors = counter(
    "kubelet_certificate_manager_client_expiration_renew_errors",
    "Client certificates that could not be renewed",
  );
  readonly serverRenewErrors = counter(
    "kubelet_server_expiration_renew_errors",
    "Serving certificates that could not be renewed",
  );
  readonly serverRotation = new Histogram({
    name: "kubelet_certificate_manager_server_rotation_seconds",
    help: "Age of serving certificates when they were replaced, seconds",
    buckets: rotations,
  }).begin();
  readonly mustPull = counter(
    "kubelet_imagemanager_image_mustpull_checks_total",
    "Looks at whether a present image must be pulled with the pod's own credentials",
    { vec: true },
  );
  readonly intentsOnDisk = gauge("kubelet_imagemanager_ondisk_pullintents", "Pulls that were begun, on disk");
  readonly recordsOnDisk = gauge("kubelet_imagemanager_ondisk_pulledrecords", "Images that were pulled, on disk");
  readonly intentsUsage = gauge(
    "kubelet_imagemanager_inmemory_pullintents_usage_percent",
    "Use of the memory for pulls, percent",
  );
  readonly recordsUsage = gauge(
    "kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
    "Use of the memory for images, percent",
  );
  readonly pluginSeconds = new Histogram({
    name: "kubelet_credential_provider_plugin_duration",
    help: "How long credential plugins took, seconds",
  });
  readonly pluginErrors = counter("kubelet_credential_provider_plugin_errors_total", "Credential plugins that failed", {
    vec: true,
  });
  readonly pluginConfig = gauge("kubelet_credential_provider_config_info", "Configuration of plugins in force", {
    vec: true,
  });

  /** Asked when a page is made: how long certificates still hold, milliseconds; Infinity without one. */
  readonly #ttls = { client: () => Infinity, serving: () => Infinity };
  /** Asked when a page is made how many certificates of pods are in which state. */
  podCertificates: (() => readonly PodCertificateState[]) | undefined;

  constructor() {
    super();
    this.refresh();
  }

  /** Brings the times that are left up to date. */
  refresh(): void {
    this.clientTtl.set({}, this.#ttls.client() / 1000);
    this.serverTtl.set({}, this.#ttls.serving() / 1000);
  }

  override writeTo(page: MetricsPage): void {
    super.writeTo(page);
    const name = "kubelet_podcertificate_states";
    page.family(name, "gauge", "Certificates in volumes of pods, by signer and state");
    for (const { signer, state, count } of this.podCertificates?.() ?? []) {
      page.sample(name, { signer_name: signer, state }, count);
    }
  }

  /** How long a certificate of the agent's still holds. */
  certificateTtl(what: "client" | "serving", ms: () => number): void {
    this.#ttls[what] = ms;
  }

  /** A certificate of the agent's could not be had. */
  renewFailed(what: "client" | "serving"): void {
    (what === "client" ? this.clientRenewErrors : this.serverRenewErrors).add();
  }

  /** A certificate of the agent's was replaced. @param usedMs its age */
  rotated(what: "client" | "serving", usedMs: number): void {
    if (what === "serving") this.serverRotation.observe({}, usedMs / 1000);
  }

  /** It was looked at whether a pod may use an image that is here. */
  checkedImage(result: CheckResult): void {
    this.mustPull.add({ result });
  }

  /** How many records of pulls there are. */
  pullRecords({ intents, records, capacity }: RecordCounts): void {
    const percent = (count: number, most: number) => most > 0 ? Math.min(100, Math.floor(100 * count / most)) : 0;
    this.intentsOnDisk.set({}, intents);
    this.recordsOnDisk.set({}, records);
    this.intentsUsage.set({}, percent(intents, capacity.intents));
    this.recordsUsage.set({}, percent(records, capacity.records));
  }

  /** A credential plugin has answered, or failed. */
  plugin(name: string, seconds: number, failed: boolean): void {
    this.pluginSeconds.observe({ plugin_name: name }, seconds);
    if (failed) this.pluginErrors.add({ plugin_name: name });
  }

  /** The configuration of credential plugins that is in force. @param hash of its content */
  pluginConfiguration(hash: string): void {
    this.pluginConfig.removeIf(() => true);
    this.pluginConfig.set({ hash }, 1);
  }
}
