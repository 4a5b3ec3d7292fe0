import { systemRandom } from "../../base/random.ts";
import type { RequestObserver } from "../../kube/api/request_observer.ts";
import type { ClientMetrics } from "../../server/metrics/client_metrics.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { createNodeApi } from "../node_api.ts";
import { servingPairFile } from "./certificates.ts";
import type { ClusterClients } from "./types.ts";

/** What the node's own API takes of a cluster: whom it asks about callers, and the certificate that is signed there. */
export function apiAccess(
  clients: ClusterClients,
  { config, flags }: Pick<LoadedConfig, "config" | "flags">,
): NonNullable<Parameters<typeof createNodeApi>[0]["cluster"]> {
  const signed = config.serverTLSBootstrap && config.tlsCertFile === "";
  return {
    reviews: clients.main,
    random: systemRandom,
    ...(signed ? { signedPair: servingPairFile(flags.certDir) } : {}),
  };
}

/** Tells the metrics of requests to the API server. */
export function apiObserver(metrics: ClientMetrics): RequestObserver {
  return {
    request: ({ verb, host, code, seconds, requestBytes }) =>
      metrics.request({
        verb,
        method: verb,
        host,
        code: code === "<error>" ? code : Number(code),
        seconds,
        sentBytes: requestBytes,
      }),
    received: ({ verb, host, bytes }) => metrics.responseBytes.observe({ host, verb }, bytes),
    waited: ({ verb, host, seconds }) => metrics.limited({ verb, host }, seconds),
    transports: (open) => metrics.openTransports = open,
    pluginCall: (outcome, code) => metrics.pluginCall(outcome, code),
    pluginCertificate: (told) => metrics.pluginCertificate(told),
    retried: ({ verb, host, code }) => metrics.retried({ verb, host, code: Number(code) }),
  };
}
