import type { PluginCertificate } from "../../kube/api/exec_plugin.ts";
import { counter, MetricSet } from "./metric_set.ts";
import { Histogram } from "./registry.ts";
import type { MetricsPage } from "./text.ts";

/** A request of the agent's own to the API server that has ended. */
export interface ClientRequest {
  readonly verb: string;
  /** Host and port of the server. */
  readonly host: string;
  /** The status, or `<error>` when there was no answer. */
  readonly code: number | "<error>";
  readonly method: string;
  readonly seconds: number;
  readonly sentBytes?: number;
  readonly receivedBytes?: number;
}

const seconds = [.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60];
const bytes = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
const certificateAges = [
  600,
  1800,
  3600,
  14_400,
  86_400,
  604_800,
  2_592_000,
  7_776_000,
  15_552_000,
  31_104_000,
  124_416_000,
];

/** The agent as a client of the API server (metrics.md section 4). Its vectors are empty until there is such a client. */
export class ClientMetrics extends MetricSet {
  readonly requests = counter("rest_client_requests_total", "Requests to the API server", { vec: true });
  readonly retries = counter("rest_client_request_retries_total", "Requests that were tried again", { vec: true });
  readonly requestSeconds = new Histogram({
    name: "rest_client_request_duration_seconds",
    help: "How long answers of the API server took, seconds",
    buckets: seconds,
  });
  readonly requestBytes = new Histogram({
    name: "rest_client_request_size_bytes",
    help: "Bytes of requests",
    buckets: bytes,
  });
  readonly responseBytes = new Histogram({
    name: "rest_client_response_size_bytes",
    help: "Bytes of answers",
    buckets: bytes,
  });
  readonly limiterSeconds = new Histogram({
    name: "rest_client_rate_limiter_duration_seconds",
    help: "How long requests waited for the client's own rate limit, seconds",
    buckets: seconds,
  });
  readonly pluginCalls = counter("rest_client_exec_plugin_call_total", "Runs of the credential plugin, by their ends", {
    vec: true,
  });
  readonly pluginCertificateAge = new Histogram({
    name: "rest_client_exec_plugin_certificate_rotation_age",
    help: "Age of certificates of credential plugins when they were replaced, seconds",
    buckets: certificateAges,
  }).begin();
  /** Asked when a page is made how many transports are open. */
  openTransports: () => number = () => 0;
  /** When the certificate of the credential plugin ends, milliseconds since the epoch. */
  #pluginCertificateEnds = Infinity;
  readonly #now: () => number;

  /** @param now milliseconds since the epoch */
  constructor(now: () => number) {
    super();
    this.#now = now;
  }

  override writeTo(page: MetricsPage): void {
    super.writeTo(page);
    const put = (name: string, help: string, value: number) => {
      page.family(name, "gauge", help);
      page.sample(name, {}, value);
    };
    put("rest_client_transport_cache_entries", "Transports that are kept", this.openTransports());
    put(
      "rest_client_exec_plugin_ttl_seconds",
      "Time until a certificate of a credential plugin ends, seconds; +Inf without any",
      (this.#pluginCertificateEnds - this.#now()) / 1000,
    );
  }

  /** The credential plugin was run. */
  pluginCall(outcome: string, code: number): void {
    this.pluginCalls.add({ call_status: outcome, code: String(code) });
  }

  /** The credential plugin gave another certificate. */
  pluginCertificate({ notAfter, replacedAgeMs }: PluginCertificate): void {
    this.#pluginCertificateEnds = notAfter;
    if (replacedAgeMs !== undefined) this.pluginCertificateAge.observe({}, replacedAgeMs / 1000);
  }

  request({ verb, host, code, method, seconds, sentBytes, receivedBytes }: ClientRequest): void {
    this.requests.add({ code: String(code), host, method });
    this.requestSeconds.observe({ host, verb }, seconds);
    if (sentBytes !== undefined) this.requestBytes.observe({ host, verb }, sentBytes);
    if (receivedBytes !== undefined) this.responseBytes.observe({ host, verb }, receivedBytes);
  }

  retried(request: Pick<ClientRequest, "verb" | "host" | "code">): void {
    this.retries.add({ code: String(request.code), host: request.host, verb: request.verb });
  }

  /** A request that was held up by the client's own limit. */
  limited(request: Pick<ClientRequest, "verb" | "host">, waitedSeconds: number): void {
    this.limiterSeconds.observe({ host: request.host, verb: request.verb }, waitedSeconds);
  }
}
