import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, ClusterTrustBundleProjection } from "../../mod/kube/types.ts";
import type { ObjectReader } from "../objects/types.ts";
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

/** A file for the pod's user or group alone, where it says who that is. */
function ownFile(pod: BoundPod, path: string, data: string, defaultMode: number): Payload {
  const uid = fileOwner(pod);
  const owned = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
  return new Map([[path, { data, mode: owned ? ownedTokenMode : defaultMode, ...(uid === undefined ? {} : { uid }) }]]);
}

/** The parts of projected volumes that are read from the API server (features.md H9, H10, H11, H33). */
export function apiProjections(from: {
  readonly objects: ObjectReader;
  readonly tokens: TokenManager;
  /** Certificates of ClusterTrustBundles as PEM; undefined when the feature gate is off. */
  readonly trust: ((projection: ClusterTrustBundleProjection, pod: BoundPod) => string) | undefined;
}): ProjectionSource[] {
  const { objects, tokens, trust } = from;
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
        return ownFile(pod, source.path, token, defaultMode);
      },
    },
    {
      kind: "clusterTrustBundle",
      payload({ clusterTrustBundle: source }, { pod }, defaultMode) {
        if (!source) return Promise.resolve(new Map());
        if (!trust) {
          throw new VolumeSpecError(
            "ClusterTrustBundle projection is not supported: feature gate ClusterTrustBundleProjection is off",
          );
        }
        return Promise.resolve(ownFile(pod, source.path, trust(source, pod), defaultMode));
      },
    },
  ];
}
