import type { Clock } from "../../base/clock.ts";
import { KubeletError } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Scope } from "../../base/scope.ts";
import { type Kubeconfig, readKubeconfig } from "../../kube/api/kubeconfig.ts";
import type { RequestObserver } from "../../kube/api/request_observer.ts";
import type { EventSink } from "../../kube/events.ts";
import type { LoadedConfig } from "../config/load.ts";
import { createClients } from "./clients.ts";
import { clusterEvents } from "./events.ts";
import { NodeIdentity, type OwnPair, ownPair, shownBy, showsCertificateOnly } from "./identity.ts";
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
  /** Where the node is known by a certificate. */
  readonly ownPair?: OwnPair;
}

/**
 * Makes the clients of the API server that --kubeconfig names; undefined without one (standalone). Nothing is asked of
 * the server yet: one that is away stops no pod. A node that has no credentials yet, or whose certificate expires, asks
 * for one with --bootstrap-kubeconfig beside all else. Rejects with BadConfig when a file cannot be used (A25).
 */
export async function joinCluster(options: JoinOptions): Promise<Joined | undefined> {
  const { loaded: { config, flags }, host, clock, log, scope, observer, nodeName, random } = options;
  if (flags.kubeconfig === "") return undefined;
  const kubeconfig = await withOwnPair(await startingKubeconfig(options), options);
  const shared = { host, clock, log, config, ...(observer ? { observer } : {}) };
  const clients = createClients({ ...shared, kubeconfig });
  const close = () => clients[Symbol.dispose]();
  if (scope.signal.aborted) close();
  else scope.signal.addEventListener("abort", close, { once: true });
  const identity = showsCertificateOnly(kubeconfig.user)
    ? new NodeIdentity({ ...options, kubeconfig, credentials: clients.credentials })
    : undefined;
  if (identity) scope.spawn("client certificate's end", (signal) => identity.run(signal));
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
  return { clients, events, server: kubeconfig.cluster.server, ...(identity ? { ownPair: identity } : {}) };
}

/**
 * The kubeconfig to begin with: the one that is there when it will do, else what the one will say that bootstrapping
 * writes (runtime-contract.md section 22). The bootstrap kubeconfig must be good when it is needed at the start.
 */
async function startingKubeconfig({ loaded: { flags }, host, clock, log }: JoinOptions): Promise<Kubeconfig> {
  const { kubeconfig: path, bootstrapKubeconfig, certDir } = flags;
  const there = await host.stat(path) !== undefined;
  if (bootstrapKubeconfig === "") {
    if (there) return await readKubeconfig(host, path);
    throw new KubeletError(
      "BadConfig",
      `kubeconfig ${path}: there is no such file; check --kubeconfig, or give --bootstrap-kubeconfig`,
    );
  }
  if (there) {
    const kubeconfig = await readKubeconfig(host, path);
    if (!showsCertificateOnly(kubeconfig.user)) return kubeconfig;
    const { notAfter = -Infinity } = await shownBy(kubeconfig, host);
    if (notAfter > clock.now()) return kubeconfig;
    log.warn("the node's certificate has expired or cannot be used", { kubeconfig: path });
  }
  const { cluster } = await readKubeconfig(host, bootstrapKubeconfig);
  // Until the certificate is there every request fails, and is tried again as if the server were away.
  return { path, cluster, user: ownPair(certDir) };
}

/**
 * A kubeconfig with another certificate than the agent's own pair: with rotateCertificates the pair goes before it once
 * there is one (as the reference's store has it), for nobody renews the kubeconfig's.
 */
async function withOwnPair(kubeconfig: Kubeconfig, options: JoinOptions): Promise<Kubeconfig> {
  const { loaded: { config, flags }, host, clock } = options;
  if (!config.rotateCertificates || !showsCertificateOnly(kubeconfig.user)) return kubeconfig;
  const user = ownPair(flags.certDir);
  const { notAfter = -Infinity } = await shownBy({ ...kubeconfig, user }, host);
  return notAfter > clock.now() ? { ...kubeconfig, user } : kubeconfig;
}
