import { nodeSubject } from "../../../managers/certificates/bootstrap.ts";
import { CertificateManager, type CertificateManagerOptions } from "../../../managers/certificates/manager.ts";
import type { CertificateTemplate } from "../../../managers/certificates/request.ts";
import { clientSigner, servingSigner } from "../../../managers/certificates/signing.ts";
import { CertificateStore } from "../../../managers/certificates/store.ts";
import type { Node } from "../../kube/types.ts";
import type { ClusterContext, ClusterPart } from "./types.ts";

/** Where the serving certificate that the API server signs is kept (runtime-contract.md section 22). */
export function servingPairFile(certDir: string): string {
  return `${certDir}/kubelet-server-current.pem`;
}

/** Where the client certificate is kept. */
export function clientPairFile(certDir: string): string {
  return `${certDir}/kubelet-client-current.pem`;
}

/** Keeps the node's certificates fresh: the client's with rotateCertificates, the serving one with serverTLSBootstrap. */
export function certificatesPart(context: ClusterContext): ClusterPart {
  const { config, clients, nodeName, clock, random, log, scope } = context;
  const keep = (
    options: Pick<CertificateManagerOptions, "store" | "signer" | "template" | "onIssued">,
    what: CertificateUse,
  ) => {
    const manager = new CertificateManager({
      ...options,
      what,
      client: clients.main,
      clock,
      random,
      log,
      onFailure: () => context.certificates?.renewFailed(what),
      onRotated: (usedMs) => context.certificates?.rotated(what, usedMs),
    });
    context.certificates?.certificateTtl(what, () => manager.ttlMs);
    scope.spawn(`${what} certificate`, (signal) => manager.run(signal));
  };
  return {
    start(_agent, cluster): void {
      if (config.rotateCertificates) {
        const template = () => nodeSubject(nodeName);
        const { ownPair } = context;
        const kept = store(context, "kubelet-client", ownPair?.initial);
        keep({ store: kept, signer: clientSigner, template, onIssued: () => ownPair?.use() }, "client");
      }
      if (config.serverTLSBootstrap && config.tlsCertFile === "") {
        const template = () => servingTemplate(nodeName, cluster.node?.());
        keep({ store: store(context, "kubelet-server"), signer: servingSigner, template }, "serving");
      }
    },
  };
}

type CertificateUse = "client" | "serving";

function store(
  { flags, host, log }: ClusterContext,
  prefix: string,
  initial?: { readonly certFile: string; readonly keyFile: string },
): CertificateStore {
  return new CertificateStore({ dir: flags.certDir, prefix, host, log, ...(initial ? { initial } : {}) });
}

/** What the serving certificate says: every address of the node. None is asked for before the node has an IP address. */
export function servingTemplate(nodeName: string, node: Node | undefined): CertificateTemplate | undefined {
  const addresses = node?.status?.addresses ?? [];
  const of = (types: readonly string[]) =>
    [...new Set(addresses.filter(({ type }) => types.includes(type)).map(({ address }) => address))].sort();
  const ipAddresses = of(["InternalIP", "ExternalIP"]);
  const dnsNames = of(["Hostname", "InternalDNS", "ExternalDNS"]);
  // A cloud may give an address as the host's name.
  const isAddress = (name: string) => /^[\d.]+$/.test(name) || name.includes(":");
  if (ipAddresses.length === 0) return undefined;
  return {
    ...nodeSubject(nodeName),
    dnsNames: dnsNames.filter((name) => !isAddress(name)),
    ipAddresses: [...new Set([...ipAddresses, ...dnsNames.filter(isAddress)])].sort(),
  };
}
