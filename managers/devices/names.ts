const prefix = "requests.";
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const name = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/**
 * True for a name that a device plugin's resource may have: `<domain>/<name>`, not of kubernetes.io, not a quota's, and
 * short enough that a quota for it has a name too.
 */
export function isExtendedResourceName(resource: string): boolean {
  const [domain, own, ...more] = resource.split("/");
  if (domain === undefined || own === undefined || more.length > 0) return false;
  if (resource.includes("kubernetes.io/") || resource.startsWith(prefix)) return false;
  const quota = prefix + domain;
  return quota.length <= 253 && quota.split(".").every((part) => part.length <= 63 && label.test(part)) &&
    own.length <= 63 && name.test(own);
}
