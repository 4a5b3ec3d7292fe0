import type { PodSpec, Volume } from "../kube/types.ts";

/** A field of a static pod that would need the API server. */
export interface ApiReference {
  readonly path: string;
  /** What it refers to, in the reference's words. */
  readonly resource: string;
}

/** Volume sources that refer to API objects, and to which. */
const volumeResources: readonly (readonly [keyof Volume, string])[] = [
  ["configMap", "configmaps (via configmap volumes)"],
  ["secret", "secrets (via secret volumes)"],
  ["csi", "csidrivers (via CSI volumes)"],
  ["glusterfs", "endpoints (via glusterFS volumes)"],
  ["persistentVolumeClaim", "persistentvolumeclaims"],
  ["ephemeral", "persistentvolumeclaims (via ephemeral volumes)"],
  ["azureFile", "secrets (via azureFile volumes)"],
];

const projectedResources = [
  ["configMap", "configmaps (via projected volumes)"],
  ["secret", "secrets (via projected volumes)"],
  ["serviceAccountToken", "serviceaccounts (via projected volumes)"],
  ["clusterTrustBundle", "clustertrustbundles"],
  ["podCertificate", "podcertificates"],
] as const;

/** Volume sources that work without the API but may name a Secret. */
const withSecretRef = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"] as const;

/**
 * Every reference of a pod to an API object. A static pod may have none (gate PreventStaticPodAPIReferences;
 * pkg/api/pod/util.go, used by pkg/kubelet/config/common.go).
 */
export function apiReferences(spec: PodSpec): ApiReference[] {
  const found: ApiReference[] = [];
  const add = (path: string, resource: string) => found.push({ path, resource });
  if (spec.serviceAccountName) add("spec.serviceAccountName", "serviceaccounts");
  spec.imagePullSecrets?.forEach(({ name }, i) => name && add(`spec.imagePullSecrets[${i}]`, "secrets"));
  for (const list of ["initContainers", "containers", "ephemeralContainers"] as const) {
    spec[list]?.forEach((container, c) => {
      const at = `spec.${list}[${c}]`;
      container.envFrom?.forEach((from, i) => {
        if (from.secretRef?.name) add(`${at}.envFrom[${i}].secretRef`, "secrets");
        if (from.configMapRef?.name) add(`${at}.envFrom[${i}].configMapRef`, "configmaps");
      });
      container.env?.forEach(({ valueFrom }, i) => {
        if (valueFrom?.secretKeyRef?.name) add(`${at}.env[${i}].valueFrom.secretKeyRef`, "secrets");
        if (valueFrom?.configMapKeyRef?.name) add(`${at}.env[${i}].valueFrom.configMapKeyRef`, "configmaps");
      });
    });
  }
  if (spec.resourceClaims?.length) add("spec.resourceClaims", "resourceclaims");
  spec.volumes?.forEach((volume, i) => volumeReferences(volume, `spec.volumes[${i}]`, add));
  return found;
}

function volumeReferences(volume: Volume, at: string, add: (path: string, resource: string) => void): void {
  for (const [field, resource] of volumeResources) {
    if (volume[field] !== undefined) add(`${at}.${field}`, resource);
  }
  for (const field of withSecretRef) {
    if (volume[field]?.secretRef?.name) add(`${at}.${field}.secretRef`, "secrets");
  }
  volume.projected?.sources.forEach((source, s) => {
    for (const [field, resource] of projectedResources) {
      if (source[field] !== undefined) add(`${at}.projected.sources[${s}].${field}`, resource);
    }
    if (Object.keys(source).length === 0) add(`${at}.projected.sources[${s}]`, "an unknown kind of source");
  });
}
