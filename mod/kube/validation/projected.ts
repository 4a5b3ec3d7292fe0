import type { DownwardAPIVolumeFile, ProjectedVolumeSource, VolumeProjection } from "../types.ts";
import { checkFieldRef, checkResourceRef, volumeFields } from "./field_refs.ts";
import { checkKeyPaths, checkLocalFile, checkMode } from "./paths.ts";
import type { Problems } from "./problem.ts";

/** Checks the files of a downward API volume. */
export function checkDownwardFiles(
  p: Problems,
  path: string,
  files: readonly DownwardAPIVolumeFile[] | undefined,
): void {
  files?.forEach((file, i) => {
    const at = `${path}[${i}]`;
    checkLocalFile(p, `${at}.path`, file.path);
    checkMode(p, `${at}.mode`, file.mode);
    if (file.fieldRef) checkFieldRef(p, `${at}.fieldRef`, file.fieldRef, volumeFields);
    if (file.resourceFieldRef) checkResourceRef(p, `${at}.resourceFieldRef`, file.resourceFieldRef, true);
    if ((file.fieldRef === undefined) === (file.resourceFieldRef === undefined)) {
      p.add(at, undefined, "needs one thing to show", "use exactly one of fieldRef, resourceFieldRef");
    }
  });
}

/** Checks a projected volume: one kind a source, and no file written twice. */
export function checkProjected(p: Problems, path: string, volume: ProjectedVolumeSource): void {
  checkMode(p, `${path}.defaultMode`, volume.defaultMode);
  const files = new Set<string>();
  volume.sources.forEach((source, i) => {
    const at = `${path}.sources[${i}]`;
    const kinds = Object.values(source).filter((value) => value !== undefined).length;
    if (kinds > 1) p.add(at, undefined, `has ${kinds} kinds of source`, "give each kind its own entry");
    checkSource(p, at, source);
    for (const file of filesOf(source)) {
      if (files.has(file)) p.add(at, file, "is written twice in the volume", "use another path");
      files.add(file);
    }
  });
}

function checkSource(p: Problems, at: string, source: VolumeProjection): void {
  for (const kind of ["secret", "configMap"] as const) {
    const object = source[kind];
    if (!object) continue;
    if (!object.name) p.required(`${at}.${kind}.name`, "name the object");
    checkKeyPaths(p, `${at}.${kind}.items`, object.items);
  }
  checkDownwardFiles(p, `${at}.downwardAPI.items`, source.downwardAPI?.items);
  const token = source.serviceAccountToken;
  if (token) {
    p.range(`${at}.serviceAccountToken.expirationSeconds`, token.expirationSeconds, 600, 2 ** 32);
    checkLocalFile(p, `${at}.serviceAccountToken.path`, token.path);
  }
  const bundle = source.clusterTrustBundle;
  if (bundle) {
    checkLocalFile(p, `${at}.clusterTrustBundle.path`, bundle.path);
    if ((bundle.name === undefined) === (bundle.signerName === undefined)) {
      p.add(`${at}.clusterTrustBundle`, undefined, "needs one bundle", "use exactly one of name, signerName");
    }
  }
  const certificate = source.podCertificate;
  if (certificate) {
    const keyTypes = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    p.oneOf(`${at}.podCertificate.keyType`, certificate.keyType, keyTypes);
    const given = filesOf(source);
    if (given.length === 0) {
      p.required(`${at}.podCertificate`, "set credentialBundlePath, keyPath or certificateChainPath");
    }
    for (const file of given) checkLocalFile(p, `${at}.podCertificate`, file);
  }
}

function filesOf(source: VolumeProjection): string[] {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = source;
  return [
    ...[secret, configMap, downwardAPI].flatMap((from) => from?.items?.map(({ path }) => path) ?? []),
    serviceAccountToken?.path,
    clusterTrustBundle?.path,
    podCertificate?.credentialBundlePath,
    podCertificate?.keyPath,
    podCertificate?.certificateChainPath,
  ].filter((path): path is string => path !== undefined && path !== "");
}
