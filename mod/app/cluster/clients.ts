import type { Clock } from "../../base/clock.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import { HttpApiClient } from "../../kube/api/client.ts";
import { Connections } from "../../kube/api/connections.ts";
import { Credentials } from "../../kube/api/credentials.ts";
import { ExecPlugin } from "../../kube/api/exec_plugin.ts";
import { FetchTransport } from "../../kube/api/fetch_transport.ts";
import type { Kubeconfig } from "../../kube/api/kubeconfig.ts";
import { NodeTransport } from "../../kube/api/node_transport.ts";
import { RateLimiter } from "../../kube/api/rate_limiter.ts";
import type { RequestObserver } from "../../kube/api/request_observer.ts";
import type { TlsMaterial, Transport } from "../../kube/api/transport.ts";
import type { KubeletConfig } from "../config/kubelet_config.ts";
import { userAgent } from "../version.ts";
import type { ClusterClients } from "./types.ts";

export interface ClientsOptions {
  readonly kubeconfig: Kubeconfig;
  readonly config: Pick<
    KubeletConfig,
    | "kubeAPIQPS"
    | "kubeAPIBurst"
    | "eventRecordQPS"
    | "eventBurst"
    | "nodeStatusUpdateFrequencyMs"
    | "nodeLeaseDurationSeconds"
  >;
  readonly host: Pick<Host, "readText" | "stat" | "run">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer?: RequestObserver;
  /** Opens connections; what the kubeconfig asks for when not given. */
  readonly open?: (tls: TlsMaterial) => Transport;
}

/** How long a call of the main and of the event client may take when it does not say, in milliseconds. */
const usualTimeoutMs = 30_000;
/** What 0 stands for in kubeAPIQPS and kubeAPIBurst (as client-go). */
const usualQps = 5;
const usualBurst = 10;

/**
 * The three clients of the API server (features.md A8). They have the same credentials and connections of their own. A
 * heartbeat without an answer in time means that the server is not reached: the connections of all are then given up,
 * watches included, so that none waits on one that is dead (A26).
 */
export function createClients(
  options: ClientsOptions,
): ClusterClients & { readonly credentials: Credentials } & Disposable {
  const { kubeconfig, config, host, clock, log, observer } = options;
  const { cluster, user } = kubeconfig;
  const plugin = user.exec && new ExecPlugin({
    exec: user.exec,
    cluster,
    host,
    clock,
    onCall: (outcome, code) => observer?.pluginCall?.(outcome, code),
    onCertificate: (told) => observer?.pluginCertificate?.(told),
  });
  const credentials = new Credentials({ kubeconfig, host, clock, log, ...(plugin ? { plugin } : {}) });
  const all: Connections[] = [];
  const make = (settings: { qps: number; burst: number; timeoutMs: number; onSilence?: () => void }): HttpApiClient => {
    const connections = new Connections({ credentials, open: options.open ?? transportTo(kubeconfig) });
    all.push(connections);
    const { qps, burst, timeoutMs, onSilence } = settings;
    return new HttpApiClient({
      server: cluster.server,
      connections,
      clock,
      userAgent,
      timeoutMs,
      ...(qps > 0 ? { limiter: new RateLimiter({ clock, qps, burst }) } : {}),
      ...(observer ? { observer } : {}),
      ...(onSilence ? { onSilence } : {}),
    });
  };
  observer?.transports?.(() => all.filter(({ open }) => open).length);
  return {
    credentials,
    main: make({
      qps: config.kubeAPIQPS || usualQps,
      burst: config.kubeAPIBurst || usualBurst,
      timeoutMs: usualTimeoutMs,
    }),
    heartbeat: make({
      qps: 0,
      burst: 0,
      timeoutMs: Math.min(config.nodeStatusUpdateFrequencyMs, config.nodeLeaseDurationSeconds * 1000),
      onSilence: () => {
        log.warn("the API server did not answer a heartbeat in time; connections to it are made anew", {
          server: cluster.server,
        });
        for (const connections of all) connections.renew();
      },
    }),
    events: make({ qps: config.eventRecordQPS, burst: config.eventBurst, timeoutMs: usualTimeoutMs }),
    [Symbol.dispose](): void {
      for (const connections of all) connections[Symbol.dispose]();
    },
  };
}

/** Connections to the kubeconfig's server, by fetch unless its certificate is to be checked in another way. */
export function transportTo({ cluster }: Kubeconfig): (tls: TlsMaterial) => Transport {
  const { insecureSkipTlsVerify: insecure, tlsServerName, proxyUrl } = cluster;
  return (tls) => {
    const options = {
      tls,
      insecure,
      ...(tlsServerName === undefined ? {} : { serverName: tlsServerName }),
      ...(proxyUrl === undefined ? {} : { proxyUrl }),
    };
    return insecure || tlsServerName !== undefined ? new NodeTransport(options) : new FetchTransport(options);
  };
}
