import type {
  CertificateSigningRequest,
  ConfigMap,
  CSIDriver,
  CSINode,
  Event,
  Lease,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  RuntimeClass,
  Secret,
  Service,
  ServiceAccount,
  SubjectAccessReview,
  TokenReview,
  VolumeAttachment,
} from "../types.ts";
import type { KubeObject, ResourceType } from "./types.ts";

function resource<T extends KubeObject>(
  groupVersion: string,
  plural: string,
  kind: string,
  namespaced: boolean,
): ResourceType<T> {
  const [version, group = ""] = groupVersion.split("/").reverse();
  return { group, version: version ?? "v1", plural, kind, namespaced };
}

/** The kinds that the agent reads or writes. */
export const resources = {
  pods: resource<Pod>("v1", "pods", "Pod", true),
  nodes: resource<Node>("v1", "nodes", "Node", false),
  services: resource<Service>("v1", "services", "Service", true),
  secrets: resource<Secret>("v1", "secrets", "Secret", true),
  configMaps: resource<ConfigMap>("v1", "configmaps", "ConfigMap", true),
  events: resource<Event>("v1", "events", "Event", true),
  namespaces: resource<Namespace>("v1", "namespaces", "Namespace", false),
  serviceAccounts: resource<ServiceAccount>("v1", "serviceaccounts", "ServiceAccount", true),
  persistentVolumeClaims: resource<PersistentVolumeClaim>(
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    true,
  ),
  persistentVolumes: resource<PersistentVolume>("v1", "persistentvolumes", "PersistentVolume", false),
  leases: resource<Lease>("coordination.k8s.io/v1", "leases", "Lease", true),
  csiNodes: resource<CSINode>("storage.k8s.io/v1", "csinodes", "CSINode", false),
  csiDrivers: resource<CSIDriver>("storage.k8s.io/v1", "csidrivers", "CSIDriver", false),
  volumeAttachments: resource<VolumeAttachment>("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", false),
  runtimeClasses: resource<RuntimeClass>("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", false),
  certificateSigningRequests: resource<CertificateSigningRequest>(
    "certificates.k8s.io/v1",
    "certificatesigningrequests",
    "CertificateSigningRequest",
    false,
  ),
  /** Created only: the answer is in the status of what `create` returns. */
  tokenReviews: resource<TokenReview>("authentication.k8s.io/v1", "tokenreviews", "TokenReview", false),
  /** Created only: the answer is in the status of what `create` returns. */
  subjectAccessReviews: resource<SubjectAccessReview>(
    "authorization.k8s.io/v1",
    "subjectaccessreviews",
    "SubjectAccessReview",
    false,
  ),
} as const;

/** The `apiVersion` of a kind's objects. */
export function apiVersionOf({ group, version }: ResourceType): string {
  return group === "" ? version : `${group}/${version}`;
}
