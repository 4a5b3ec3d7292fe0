import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, ClusterTrustBundleProjection, PodCertificateProjection } from "../../mod/kube/types.ts";
import type { ObjectReader } from "../objects/types.ts";
import type { CredentialBundle } from "../pod_certificates/types.ts";
import type { TokenManager } from "../tokens/types.ts";
import type { Payload } from "./atomic_writer.ts";
import { readConfigMap, readSecret } from "./api_volumes.ts";
import { VolumeSpecError } from "./plugin.ts";
import type { ProjectionSource } from "./projected.ts";

/** Mode of a token's file when the pod has an owner for it (features.md section 11, projected token). */
const ownedTokenMode = 0o600;

/** The one user that all init and regular containers of a pod run as; undefined when they don't say, or differ. */
export function fileOwner(pod: BoundPod): number | undefined {
  const users = podContainers(pod).filter((c) => c.kind !== "ephemeral")
    .map((c) => c.spec.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser);
  return new Set(users).size === 1 ? users[0] : undefined;
}

/** Files for the pod's user or group alone, where it says who that is. */
function ownFiles(pod: BoundPod, files: Readonly<Record<string, string>>, defaultMode: number): Payload {
  const uid = fileOwner(pod);
  const owned = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
  const how = { mode: owned ? ownedTokenMode : defaultMode, ...(uid === undefined ? {} : { uid }) };
  return new Map(Object.entries(files).map(([path, data]) => [path, { data, ...how }]));
}

/** What a part of a projected volume says whose feature gate is off. */
function gateOff(what: string, gate: string): never {
  throw new VolumeSpecError(`${what} projection is not supported: feature gate ${gate} is off`);
}

/** The parts of projected volumes that are read from the API server (features.md H9 to H12, H33). */
export function apiProjections(from: {
  readonly objects: ObjectReader;
  readonly tokens: TokenManager;
  /** Certificates of ClusterTrustBundles as PEM; undefined when the feature gate is off. */
  readonly trust: ((projection: ClusterTrustBundleProjection, pod: BoundPod) => string) | undefined;
  /** Key and certificates of a part of a pod's volume; undefined when the feature gate is off. */
  readonly certificates:
    | ((pod: BoundPod, volume: string, source: PodCertificateProjection) => CredentialBundle)
    | undefined;
}): ProjectionSource[] {
  const { objects, tokens, trust, certificates } = from;
  return [
    {
      kind: "secret",
      payload: ({ secret = {} }, context, defaultMode) =>
        readSecret(objects, context, secret.name ?? "", { ...secret, defaultMode }),
    },
    {
      kind: "configMap",
      payload: ({ configMap = {} }, context, defaultMode) =>
        readConfigMap(objects, context, configMap.name ?? "", { ...configMap, defaultMode }),
    },
    {
      kind: "serviceAccountToken",
      async payload({ serviceAccountToken: source }, { pod, signal }, defaultMode) {
        if (!source) return new Map();
        const { name, namespace, uid } = pod.metadata;
        const { token } = await tokens.token({
          namespace,
          serviceAccount: pod.spec.serviceAccountName ?? "",
          audiences: source.audience ? [source.audience] : [],
          expirationSeconds: source.expirationSeconds,
          pod: { name, uid },
        }, signal);
        return ownFiles(pod, { [source.path]: token }, defaultMode);
      },
    },
    {
      kind: "clusterTrustBundle",
      payload({ clusterTrustBundle: source }, { pod }, defaultMode) {
        if (!source) return Promise.resolve(new Map());
        if (!trust) gateOff("ClusterTrustBundle", "ClusterTrustBundleProjection");
        return Promise.resolve(ownFiles(pod, { [source.path]: trust(source, pod) }, defaultMode));
      },
    },
    {
      kind: "podCertificate",
      payload({ podCertificate: source }, { pod, volume }, defaultMode) {
        if (!source) return Promise.resolve(new Map());
        if (!certificates) gateOff("podCertificate", "PodCertificateRequest");
        const { key, chain } = certificates(pod, volume.name, source);
        const { credentialBundlePath: both, keyPath, certificateChainPath } = source;
        const files = {
          ...(both ? { [both]: key + chain } : {}),
          ...(keyPath ? { [keyPath]: key } : {}),
          ...(certificateChainPath ? { [certificateChainPath]: chain } : {}),
        };
        return Promise.resolve(ownFiles(pod, files, defaultMode));
      },
    },
  ];
}
