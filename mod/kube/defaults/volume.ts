import type { DownwardAPIVolumeFile, Volume } from "../types.ts";
import { defaultPullPolicy } from "./image_tag.ts";
import { roundResources } from "./resources.ts";

/** Mode of files made from objects: rw-r--r--. */
const fileMode = 0o644;

/** True for a volume that names no source. */
function hasNoSource(volume: Volume): boolean {
  return Object.entries(volume).every(([field, value]) => field === "name" || value === undefined);
}

/** Sets the defaults of a volume, in place; one without a source is an emptyDir (pkg/apis/core/v1/defaults.go). */
export function defaultVolume(volume: Volume): void {
  if (hasNoSource(volume)) volume.emptyDir = {};
  const { hostPath, secret, configMap, downwardAPI, projected, image, iscsi, rbd, azureDisk, scaleIO } = volume;
  if (hostPath) hostPath.type ??= "";
  if (secret) secret.defaultMode ??= fileMode;
  if (configMap) configMap.defaultMode ??= fileMode;
  if (downwardAPI) {
    downwardAPI.defaultMode ??= fileMode;
    defaultFiles(downwardAPI.items);
  }
  if (projected) {
    projected.defaultMode ??= fileMode;
    for (const source of projected.sources) {
      defaultFiles(source.downwardAPI?.items);
      if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600;
    }
  }
  if (image) image.pullPolicy ||= defaultPullPolicy(image.reference ?? "");
  if (iscsi) iscsi.iscsiInterface ||= "default";
  if (rbd) {
    rbd.pool ||= "rbd";
    rbd.user ||= "admin";
    rbd.keyring ||= "/etc/ceph/keyring";
  }
  if (azureDisk) {
    azureDisk.cachingMode ??= "ReadWrite";
    azureDisk.fsType ??= "ext4";
    azureDisk.readOnly ??= false;
    azureDisk.kind ??= "Shared";
  }
  if (scaleIO) {
    scaleIO.storageMode ||= "ThinProvisioned";
    scaleIO.fsType ||= "xfs";
  }
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (claim) {
    claim.volumeMode ??= "Filesystem";
    roundResources(claim.resources);
  }
}

function defaultFiles(files: readonly DownwardAPIVolumeFile[] | undefined): void {
  for (const file of files ?? []) {
    if (file.fieldRef) file.fieldRef.apiVersion ||= "v1";
  }
}
