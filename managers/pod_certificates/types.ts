import type { KubeObject, ResourceType } from "../../mod/kube/api/types.ts";
import type { Condition } from "../../mod/kube/types.ts";

/** A request for a pod's certificate. */
export interface PodCertificateRequest extends KubeObject {
  spec?: {
    signerName: string;
    podName: string;
    podUID: string;
    serviceAccountName: string;
    serviceAccountUID: string;
    nodeName: string;
    nodeUID: string;
    maxExpirationSeconds?: number;
    /** PKCS#10 without name, base64. */
    stubPKCS10Request: string;
    unverifiedUserAnnotations?: Record<string, string>;
  };
  status?: {
    conditions?: Condition[];
    certificateChain?: string;
    beginRefreshAt?: string;
    notAfter?: string;
  };
}

export const podCertificateRequests: ResourceType<PodCertificateRequest> = {
  group: "certificates.k8s.io",
  version: "v1beta1",
  plural: "podcertificaterequests",
  kind: "PodCertificateRequest",
  namespaced: true,
};

/** A private key and its certificates, as PEM. */
export interface CredentialBundle {
  readonly key: string;
  readonly chain: string;
}
