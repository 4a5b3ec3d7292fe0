import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { ObjectReader } from "../objects/types.ts";
import type { TokenManager } from "../tokens/types.ts";
import { readConfigMap, readSecret } from "./api_volumes.ts";
import type { ProjectionSource } from "./projected.ts";

/** Mode of a token's file when the pod has an owner for it (features.md section 11, projected token). */
const ownedTokenMode = 0o600;

/** The one user that all init and regular containers of a pod run as; undefined when they don't say, or differ. */
export function fileOwner(pod: BoundPod): number | undefined {
  const users = podContainers(pod).filter((c) => c.kind !== "ephemeral")
    .map((c) => c.spec.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser);
  return new Set(users).size === 1 ? users[0] : undefined;
}

/** The parts of projected volumes that are read from the API server (features.md H9, H10, H33). */
export function apiProjections(from: {
  readonly objects: ObjectReader;
  readonly tokens: TokenManager;
}): ProjectionSource[] {
  const { objects, tokens } = from;
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
        const owner = fileOwner(pod);
        const owned = owner !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
        const mode = owned ? ownedTokenMode : defaultMode;
        return new Map([[source.path, { data: token, mode, ...(owner === undefined ? {} : { uid: owner }) }]]);
      },
    },
  ];
}
