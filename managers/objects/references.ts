import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";

/** Names of objects in the pod's namespace; true for those whose changes the running pod shows (volumes). */
export type References = ReadonlyMap<string, boolean>;

/** Volume kinds that name a Secret which the node needs for mounting, and where. */
const withSecretRef = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"] as const;

/** The Secrets and ConfigMaps that a pod names; those behind its claims are not among them. */
export function podReferences(pod: BoundPod): { readonly secrets: References; readonly configMaps: References } {
  const secrets = new Map<string, boolean>();
  const configMaps = new Map<string, boolean>();
  const add = (to: Map<string, boolean>, name: string | undefined, live = false) => {
    if (name) to.set(name, live || to.get(name) === true);
  };
  for (const { name } of pod.spec.imagePullSecrets ?? []) add(secrets, name);
  for (const { spec } of podContainers(pod)) {
    for (const { secretRef, configMapRef } of spec.envFrom ?? []) {
      add(secrets, secretRef?.name);
      add(configMaps, configMapRef?.name);
    }
    for (const { valueFrom } of spec.env ?? []) {
      add(secrets, valueFrom?.secretKeyRef?.name);
      add(configMaps, valueFrom?.configMapKeyRef?.name);
    }
  }
  for (const volume of pod.spec.volumes ?? []) {
    add(secrets, volume.secret?.secretName, true);
    add(configMaps, volume.configMap?.name, true);
    for (const source of volume.projected?.sources ?? []) {
      add(secrets, source.secret?.name, true);
      add(configMaps, source.configMap?.name, true);
    }
    for (const name of mountSecrets(volume)) add(secrets, name);
  }
  return { secrets, configMaps };
}

function mountSecrets(volume: Volume): (string | undefined)[] {
  return [
    volume.azureFile?.secretName,
    volume.csi?.nodePublishSecretRef?.name,
    ...withSecretRef.map((kind) => volume[kind]?.secretRef?.name),
  ];
}
