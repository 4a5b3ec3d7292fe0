import { bootstrap, type ClusterAddress } from "../../../managers/certificates/bootstrap.ts";
import { CertificateStore } from "../../../managers/certificates/store.ts";
import type { Clock } from "../../base/clock.ts";
import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Scope } from "../../base/scope.ts";
import { type Kubeconfig, type KubeconfigCluster, readKubeconfig } from "../../kube/api/kubeconfig.ts";
import type { RequestObserver } from "../../kube/api/request_observer.ts";
import type { EventSink } from "../../kube/events.ts";
import type { LoadedConfig } from "../config/load.ts";
import { clientPairFile } from "./certificates.ts";
import { createClients } from "./clients.ts";
import { clusterEvents } from "./events.ts";
import type { ClusterClients } from "./types.ts";

export interface JoinOptions {
  readonly loaded: Pick<LoadedConfig, "config" | "flags">;
  readonly nodeName: string;
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Where events are told besides the API server. */
  readonly logEvents: EventSink;
  readonly scope: Scope;
  readonly observer?: RequestObserver;
}

/** The way to the API server. */
export interface Joined {
  readonly clients: ClusterClients;
  readonly events: EventSink;
  /** The API server's URL, for messages. */
  readonly server: string;
}

/** How long to wait before the bootstrap identity is tried again, in milliseconds. */
const bootstrapAgainMs = 10_000;

/**
 * Makes the clients of the API server that --kubeconfig names; undefined without one (standalone). Nothing is asked of
 * the server yet: one that is away stops no pod. A node that has no credentials yet, or only expired ones, asks for
 * them with --bootstrap-kubeconfig beside all else. Rejects with BadConfig when a file cannot be used (A25).
 */
export async function joinCluster(options: JoinOptions): Promise<Joined | undefined> {
  const { loaded: { config, flags }, host, clock, log, scope, observer, nodeName, random } = options;
  if (flags.kubeconfig === "") return undefined;
  const kubeconfig = await credentialsOf(options);
  const shared = { host, clock, log, config, ...(observer ? { observer } : {}) };
  const clients = createClients({ ...shared, kubeconfig });
  const close = () => clients[Symbol.dispose]();
  if (scope.signal.aborted) close();
  else scope.signal.addEventListener("abort", close, { once: true });
  const events = clusterEvents({
    client: clients.events,
    nodeName,
    log: options.logEvents,
    logger: log,
    clock,
    random,
    scope,
  });
  log.info("joining the cluster", { server: kubeconfig.cluster.server, node: nodeName });
  return { clients, events, server: kubeconfig.cluster.server };
}

/** The kubeconfig to use; where it has to be written first, what it will say. */
async function credentialsOf(options: JoinOptions): Promise<Kubeconfig> {
  const { loaded: { flags }, host, clock, log, scope } = options;
  const there = await host.stat(flags.kubeconfig) !== undefined;
  if (flags.bootstrapKubeconfig === "") {
    if (!there) {
      throw new KubeletError(
        "BadConfig",
        `kubeconfig ${flags.kubeconfig}: there is no such file; check --kubeconfig, or give --bootstrap-kubeconfig`,
      );
    }
    return await readKubeconfig(host, flags.kubeconfig);
  }
  const store = new CertificateStore({ dir: flags.certDir, prefix: "kubelet-client", host, log });
  if (there) {
    const kubeconfig = await readKubeconfig(host, flags.kubeconfig);
    const ours = kubeconfig.user.certificate && "path" in kubeconfig.user.certificate &&
      kubeconfig.user.certificate.path === store.currentPath;
    const pair = ours ? await store.load() : undefined;
    if (!ours || (pair && pair.notAfter > clock.now())) return kubeconfig;
    log.warn("the node's certificate has expired or cannot be used: a new one is asked for", {
      kubeconfig: flags.kubeconfig,
    });
  }
  const first = await readKubeconfig(host, flags.bootstrapKubeconfig);
  scope.spawn("bootstrap", (signal) => bootstrapUntilDone(options, first, store, signal));
  const pair = { path: clientPairFile(flags.certDir) };
  // Until the certificate is there every request fails, and is tried again as if the server were away.
  return { path: flags.kubeconfig, cluster: first.cluster, user: { certificate: pair, key: pair } };
}

async function bootstrapUntilDone(
  options: JoinOptions,
  kubeconfig: Kubeconfig,
  store: CertificateStore,
  signal: AbortSignal,
): Promise<void> {
  const { loaded: { config, flags }, host, clock, log, nodeName } = options;
  using clients = createClients({ kubeconfig, config, host, clock, log });
  const cluster = addressOf(kubeconfig.cluster);
  const asked = { client: clients.main, cluster, store, nodeName, host, clock, log, signal };
  for (;;) {
    try {
      return await bootstrap({ ...asked, kubeconfig: flags.kubeconfig });
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.error("the node got no client certificate; it is asked for again", {
        server: cluster.server,
        error: messageOf(thrown),
      });
      await clock.sleep(bootstrapAgainMs, signal);
    }
  }
}

function addressOf(cluster: KubeconfigCluster): ClusterAddress {
  const { server, certificateAuthority: ca, tlsServerName, proxyUrl, insecureSkipTlsVerify } = cluster;
  return {
    server,
    insecureSkipTlsVerify,
    ...(ca === undefined
      ? {}
      : "path" in ca
      ? { certificateAuthority: ca.path }
      : { certificateAuthorityData: new TextEncoder().encode(ca.text).toBase64() }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
  };
}
