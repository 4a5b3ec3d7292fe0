import { bootstrap, type ClusterAddress } from "../../../managers/certificates/bootstrap.ts";
import { endOf } from "../../../managers/certificates/pair.ts";
import { renewExpired, type ShownCertificate } from "../../../managers/certificates/renewal.ts";
import { CertificateStore } from "../../../managers/certificates/store.ts";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import { isMissing } from "../../base/host_error.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Credentials } from "../../kube/api/credentials.ts";
import {
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigUser,
  readKubeconfig,
} from "../../kube/api/kubeconfig.ts";
import type { LoadedConfig } from "../config/load.ts";
import { clientPairFile } from "./certificates.ts";
import { createClients } from "./clients.ts";

export interface NodeIdentityOptions {
  readonly loaded: Pick<LoadedConfig, "config" | "flags">;
  /** What the clients began with. */
  readonly kubeconfig: Kubeconfig;
  /** What they show now. */
  readonly credentials: Pick<Credentials, "refusedSince" | "useCertificate">;
  readonly nodeName: string;
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Makes clients with the bootstrap identity; real ones when not given. */
  readonly clientsOf?: (kubeconfig: Kubeconfig) => Pick<ReturnType<typeof createClients>, "main"> & Disposable;
}

/** The pair that the agent itself keeps and renews, as far as it bears on who the clients are. */
export interface OwnPair {
  /** The pair that the kubeconfig names instead, to begin with. */
  readonly initial?: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** There is one: it is shown from now on. */
  use(): void;
}

/** The certificate as which the node is known to the API server, and what comes in its place when it expires (I16). */
export class NodeIdentity implements OwnPair {
  readonly #o: NodeIdentityOptions;
  #shown: Kubeconfig;

  constructor(options: NodeIdentityOptions) {
    this.#o = options;
    this.#shown = options.kubeconfig;
  }

  get initial(): { certFile: string; keyFile: string } | undefined {
    const { certificate, key } = this.#o.kubeconfig.user;
    return certificate && key && "path" in certificate && "path" in key
      ? { certFile: certificate.path, keyFile: key.path }
      : undefined;
  }

  use(): void {
    const { loaded: { flags }, credentials, log } = this.#o;
    const user = ownPair(flags.certDir);
    if (showsPair(this.#shown.user, flags.certDir)) return credentials.useCertificate(user);
    this.#shown = { ...this.#shown, user };
    credentials.useCertificate(user);
    log.info("the certificate that the agent renews is in use, in place of the kubeconfig's own", {
      path: clientPairFile(flags.certDir),
    });
  }

  /** Watches over the certificate until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { loaded: { flags }, host, clock, random, log, credentials } = this.#o;
    await renewExpired({
      shown: () => shownBy(this.#shown, host),
      refusedSince: () => credentials.refusedSince,
      ...(flags.bootstrapKubeconfig === "" ? {} : { bootstrap: (each) => this.#bootstrap(each) }),
      clock,
      random,
      log,
    }, signal);
  }

  async #bootstrap(signal: AbortSignal): Promise<void> {
    const { loaded: { config, flags }, nodeName, host, clock, log } = this.#o;
    // Read each time: tokens for it live for a day, and another one is put there when a node needs it.
    const kubeconfig = await readKubeconfig(host, flags.bootstrapKubeconfig);
    const { clientsOf = () => createClients({ kubeconfig, config, host, clock, log }) } = this.#o;
    using clients = clientsOf(kubeconfig);
    const store = new CertificateStore({ dir: flags.certDir, prefix: "kubelet-client", host, log });
    const cluster = addressOf(kubeconfig.cluster);
    const target = { cluster, store, nodeName, kubeconfig: flags.kubeconfig };
    await bootstrap({ client: clients.main, ...target, host, clock, log, signal });
    this.use();
  }
}

/** The user whose certificate and key are the pair that the agent itself keeps. */
export function ownPair(certDir: string): Required<Pick<KubeconfigUser, "certificate" | "key">> {
  const pair = { path: clientPairFile(certDir) };
  return { certificate: pair, key: pair };
}

/** Whether a user's certificate is the agent's own pair. */
export function showsPair({ certificate }: KubeconfigUser, certDir: string): boolean {
  return certificate !== undefined && "path" in certificate && certificate.path === clientPairFile(certDir);
}

/** Whether a user is known by its certificate and by nothing else. */
export function showsCertificateOnly({ certificate, token, tokenFile, username, exec }: KubeconfigUser): boolean {
  return certificate !== undefined && [token, tokenFile, username, exec].every((one) => one === undefined);
}

/** The certificate of a kubeconfig's user as its file is now. */
export async function shownBy({ path, user }: Kubeconfig, host: Pick<Host, "readText">): Promise<ShownCertificate> {
  const { certificate } = user;
  if (certificate === undefined) return { path, notAfter: undefined };
  if ("text" in certificate) return { path, notAfter: endOf(certificate.text) };
  try {
    return { path: certificate.path, notAfter: endOf(await host.readText(certificate.path)) };
  } catch (thrown) {
    const problem = isMissing(thrown) ? "there is no such file" : messageOf(thrown);
    return { path: certificate.path, notAfter: undefined, problem };
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
