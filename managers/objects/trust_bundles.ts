import { KubeletError } from "../../mod/base/errors.ts";
import { ApiError, type Change, type Informer, type KubeObject, type ResourceType } from "../../mod/kube/api/types.ts";
import type { BoundPod, LabelSelector } from "../../mod/kube/types.ts";
import { labelsFit } from "./label_selector.ts";

/** Certificates that a cluster's pods may trust. */
export interface ClusterTrustBundle extends KubeObject {
  spec?: { signerName?: string; trustBundle?: string };
}

export const clusterTrustBundles: ResourceType<ClusterTrustBundle> = {
  group: "certificates.k8s.io",
  version: "v1beta1",
  plural: "clustertrustbundles",
  kind: "ClusterTrustBundle",
  namespaced: false,
};

/** Which bundles: one by its name, or those of a signer that fit a selector. */
export interface TrustSelection {
  readonly name?: string | undefined;
  readonly signerName?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
  /** No such bundle is no error. */
  readonly optional?: boolean | undefined;
}

export interface TrustBundlesOptions {
  /** Makes the watch of all bundles, and runs it; called once, when somebody needs it. */
  readonly watch: (onChange: (change: Change<ClusterTrustBundle>) => void) => Informer<ClusterTrustBundle>;
  /** A bundle has changed that the pod may show. */
  readonly onChange: (podUid: string) => void;
}

/** Gives the certificates of ClusterTrustBundles (features.md H11); bundles are watched from their first use on. */
export class TrustBundles {
  readonly #o: TrustBundlesOptions;
  readonly #users = new Set<string>();
  #informer: Informer<ClusterTrustBundle> | undefined;

  constructor(options: TrustBundlesOptions) {
    this.#o = options;
  }

  /** The certificates as PEM, each once. Throws, code Volume or Api, when the selection names none. */
  anchors({ name, signerName, labelSelector, optional }: TrustSelection, pod: BoundPod): string {
    this.#users.add(pod.metadata.uid);
    const informer = this.#informer ??= this.#o.watch(() => {
      for (const uid of this.#users) this.#o.onChange(uid);
    });
    if (!informer.synced) throw new KubeletError("Timeout", "ClusterTrustBundle informer has not yet synced");
    if (name !== undefined) {
      const bundle = informer.get({ name });
      if (bundle) return certificatesOf([bundle]);
      if (optional) return "";
      const message = `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "${name}" not found`;
      throw new ApiError(message, { status: 404, reason: "NotFound" });
    }
    if (signerName === undefined) {
      throw new KubeletError("Volume", "ClusterTrustBundle projection requires either name or signerName to be set");
    }
    const found = informer.all().filter(({ metadata, spec }) =>
      spec?.signerName === signerName && labelsFit(labelSelector, metadata?.labels)
    );
    if (found.length > 0 || optional) return certificatesOf(found);
    throw new KubeletError("Volume", "combination of signerName and labelSelector matched zero ClusterTrustBundles");
  }

  /** The pod has gone. */
  forget(podUid: string): void {
    this.#users.delete(podUid);
  }
}

/** Every certificate once, in an order that means nothing; what stands between them is left out. */
function certificatesOf(bundles: readonly ClusterTrustBundle[]): string {
  const bodies = new Set<string>();
  for (const { spec } of bundles) {
    for (const [, body = ""] of (spec?.trustBundle ?? "").matchAll(/-----BEGIN CERTIFICATE-----([^-]*)-----END/g)) {
      bodies.add(body.replace(/\s/g, ""));
    }
  }
  return [...bodies].sort().map((body) => {
    const lines = body.match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
  }).join("");
}
