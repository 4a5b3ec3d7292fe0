import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { CertificatePair } from "./pair.ts";
import { makeKey, makeRequest, requestName } from "./request.ts";
import { clientSigner, sign, type SignOptions } from "./signing.ts";
import type { CertificateStore } from "./store.ts";

/** How long the API server is waited for, and how long the certificate (runtime-contract.md section 22), milliseconds. */
const serverWithinMs = 60_000;
const signWithinMs = 3_600_000;
const retryMs = 2_000;

/** The cluster that a kubeconfig names. */
export interface ClusterAddress {
  readonly server: string;
  /** One of the two, or none where the machine's own authorities are to be trusted. */
  readonly certificateAuthority?: string;
  readonly certificateAuthorityData?: string;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  readonly insecureSkipTlsVerify?: boolean;
}

export interface BootstrapOptions {
  /** With the identity of the bootstrap kubeconfig. */
  readonly client: SignOptions["client"];
  readonly cluster: ClusterAddress;
  /** The kubeconfig to write. */
  readonly kubeconfig: string;
  readonly store: Pick<CertificateStore, "pendingKey" | "forgetPendingKey" | "save" | "currentPath">;
  readonly nodeName: string;
  readonly host: Pick<Host, "mkdir" | "write">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** The subject of a node's certificates. */
export function nodeSubject(nodeName: string): { commonName: string; organizations: readonly string[] } {
  return { commonName: `system:node:${nodeName}`, organizations: ["system:nodes"] };
}

/**
 * Gets the node a client certificate with the bootstrap identity, its first or one in place of an expired one, and writes the kubeconfig that uses it
 * (runtime-contract.md section 22, features.md I16). The same key is used again after a restart, so that a request that
 * waits for approval goes on waiting. Rejects when the server cannot be reached, or refuses, or nobody signs.
 */
export async function bootstrap(o: BootstrapOptions): Promise<void> {
  const { log, store, clock, nodeName, kubeconfig } = o;
  log.detail(2, "asking for a client certificate with the bootstrap identity", {
    server: o.cluster.server,
    node: nodeName,
  });
  const key = await store.pendingKey(makeKey);
  const template = nodeSubject(nodeName);
  const request = await makeRequest(key, template);
  const { signerName, usages } = clientSigner;
  const asked = { ...o, signer: clientSigner, request, name: requestName(key, signerName, usages, template) };
  let cert: string;
  try {
    cert = await reached(o, () => sign({ ...asked, withinMs: signWithinMs }));
  } catch (thrown) {
    // A refused request would be found again under its name: the next one has a key of its own.
    if (thrown instanceof KubeletError && thrown.code === "Api") await store.forgetPendingKey();
    throw thrown;
  }
  let pair: CertificatePair;
  try {
    pair = await store.save(cert, key, clock.now());
  } catch (thrown) {
    if (thrown instanceof KubeletError && thrown.code === "BadConfig") await store.forgetPendingKey();
    throw thrown;
  }
  if (pair.notAfter <= clock.now()) {
    // The answer to a request of long ago: found again for as long as its key is kept.
    await store.forgetPendingKey();
    throw new KubeletError(
      "Api",
      `the certificate that was issued ended at ${
        new Date(pair.notAfter).toISOString()
      } already: look at the clocks of ` +
        "this node and of the controller that signs",
    );
  }
  await o.host.mkdir(kubeconfig.slice(0, kubeconfig.lastIndexOf("/")) || "/", { mode: 0o755 });
  await o.host.write(kubeconfig, kubeconfigText(o.cluster, store.currentPath), { mode: 0o600, atomic: true });
  await store.forgetPendingKey();
  log.info("the node has its client certificate", { kubeconfig, until: new Date(pair.notAfter).toISOString() });
}

/** Tries again for a while when the server cannot be reached at all. */
async function reached<T>(o: BootstrapOptions, ask: () => Promise<T>): Promise<T> {
  const deadline = o.clock.now() + serverWithinMs;
  for (;;) {
    try {
      return await ask();
    } catch (thrown) {
      const away = thrown instanceof KubeletError && thrown.code === "Network" && !isAborted(thrown);
      if (!away || o.clock.now() >= deadline) throw thrown;
      o.log.detail(2, "waiting for the API server", { server: o.cluster.server, error: messageOf(thrown) });
      await o.clock.sleep(retryMs, o.signal);
    }
  }
}

/** The kubeconfig of a node whose certificate and key are in one file. JSON, which is YAML too. */
export function kubeconfigText(cluster: ClusterAddress, pairFile: string): string {
  const { server, certificateAuthority, certificateAuthorityData, tlsServerName, proxyUrl } = cluster;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{
      name: "default-cluster",
      cluster: {
        server,
        ...(certificateAuthority ? { "certificate-authority": certificateAuthority } : {}),
        ...(certificateAuthorityData ? { "certificate-authority-data": certificateAuthorityData } : {}),
        ...(tlsServerName ? { "tls-server-name": tlsServerName } : {}),
        ...(proxyUrl ? { "proxy-url": proxyUrl } : {}),
        ...(cluster.insecureSkipTlsVerify ? { "insecure-skip-tls-verify": true } : {}),
      },
    }],
    users: [{ name: "default-auth", user: { "client-certificate": pairFile, "client-key": pairFile } }],
    contexts: [{
      name: "default-context",
      context: { cluster: "default-cluster", namespace: "default", user: "default-auth" },
    }],
    "current-context": "default-context",
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
