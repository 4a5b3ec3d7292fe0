import type { PodSpec, Volume } from "../types.ts";
import { tryParseQuantity } from "../quantity.ts";
import { checkLabel, checkSubdomain, isSubdomain } from "./names.ts";
import { checkDescending, checkKeyPaths, checkMode, checkNoBacksteps } from "./paths.ts";
import type { Problems } from "./problem.ts";
import { checkDownwardFiles, checkProjected } from "./projected.ts";

const hostPathTypes = [
  "",
  "DirectoryOrCreate",
  "Directory",
  "FileOrCreate",
  "File",
  "Socket",
  "CharDevice",
  "BlockDevice",
];
export const pullPolicies = ["Always", "IfNotPresent", "Never"];

/** Checks the volumes: names, exactly one source each, and what a node needs of each source. */
export function checkVolumes(p: Problems, spec: PodSpec, podName: string): void {
  const names = new Set<string>();
  spec.volumes?.forEach((volume, i) => {
    const at = `spec.volumes[${i}]`;
    checkLabel(p, `${at}.name`, volume.name);
    if (names.has(volume.name)) p.add(`${at}.name`, volume.name, "is used twice", "give each volume its own name");
    names.add(volume.name);
    const sources = Object.entries(volume).filter(([field, value]) => field !== "name" && value !== undefined);
    if (sources.length !== 1) {
      const given = sources.length === 0
        ? "no source"
        : `${sources.length} sources (${sources.map(([s]) => s).join(", ")})`;
      p.add(at, undefined, `has ${given}`, "give it exactly one, such as emptyDir or hostPath");
    }
    checkSource(p, at, volume);
    if (volume.ephemeral) checkEphemeral(p, at, volume, podName);
  });
}

function checkSource(p: Problems, at: string, volume: Volume): void {
  const { emptyDir, hostPath, secret, configMap, downwardAPI, projected, image, nfs, csi, persistentVolumeClaim } =
    volume;
  if (emptyDir?.sizeLimit !== undefined) {
    const size = tryParseQuantity(emptyDir.sizeLimit);
    if (!size || size.nano < 0n) p.add(`${at}.emptyDir.sizeLimit`, emptyDir.sizeLimit, "is no size", "use 0 or more");
  }
  if (hostPath) {
    if (!hostPath.path) p.required(`${at}.hostPath.path`, "name a path of the host");
    else checkNoBacksteps(p, `${at}.hostPath.path`, hostPath.path);
    p.oneOf(`${at}.hostPath.type`, hostPath.type ?? "", hostPathTypes);
  }
  if (secret) {
    if (!secret.secretName) p.required(`${at}.secret.secretName`, "name the Secret");
    checkMode(p, `${at}.secret.defaultMode`, secret.defaultMode);
    checkKeyPaths(p, `${at}.secret.items`, secret.items);
  }
  if (configMap) {
    if (!configMap.name) p.required(`${at}.configMap.name`, "name the ConfigMap");
    checkMode(p, `${at}.configMap.defaultMode`, configMap.defaultMode);
    checkKeyPaths(p, `${at}.configMap.items`, configMap.items);
  }
  if (downwardAPI) {
    checkMode(p, `${at}.downwardAPI.defaultMode`, downwardAPI.defaultMode);
    checkDownwardFiles(p, `${at}.downwardAPI.items`, downwardAPI.items);
  }
  if (projected) checkProjected(p, `${at}.projected`, projected);
  if (image) {
    if (!image.reference) p.required(`${at}.image.reference`, "name the image");
    p.oneOf(`${at}.image.pullPolicy`, image.pullPolicy, pullPolicies);
  }
  if (nfs) {
    if (!nfs.server) p.required(`${at}.nfs.server`, "name the server");
    if (!nfs.path.startsWith("/")) p.add(`${at}.nfs.path`, nfs.path, "is not absolute", "begin it with '/'");
  }
  if (csi) {
    if (!csi.driver) p.required(`${at}.csi.driver`, "name the driver");
    else if (csi.driver.length > 63 || !isSubdomain(csi.driver.toLowerCase())) {
      p.add(`${at}.csi.driver`, csi.driver, "is no driver name", "use a DNS subdomain of at most 63 characters");
    }
    if (csi.nodePublishSecretRef) {
      checkSubdomain(p, `${at}.csi.nodePublishSecretRef.name`, csi.nodePublishSecretRef.name);
    }
  }
  if (persistentVolumeClaim && !persistentVolumeClaim.claimName) {
    p.required(`${at}.persistentVolumeClaim.claimName`, "name the claim");
  }
  if (volume.gitRepo) {
    if (!volume.gitRepo.repository) p.required(`${at}.gitRepo.repository`, "name the repository");
    checkDescending(p, `${at}.gitRepo.directory`, volume.gitRepo.directory ?? "");
  }
}

function checkEphemeral(p: Problems, at: string, volume: Volume, podName: string): void {
  if (!volume.ephemeral?.volumeClaimTemplate) p.required(`${at}.ephemeral.volumeClaimTemplate`, "describe the claim");
  const claim = `${podName}-${volume.name}`;
  if (!isSubdomain(claim)) p.add(`${at}.name`, volume.name, `makes the claim name ${claim}`, "shorten the name");
}
