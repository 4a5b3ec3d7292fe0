/** A pod's host name and domain (runtime-contract.md section 4). */
import { KubeletError } from "../../base/errors.ts";
import type { BoundPod } from "../../kube/types.ts";
import { describePod } from "./errors.ts";

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
/** A host name has at most so many bytes; with the closing zero byte the kernel's field is full. */
const longestHostname = 63;
/** The kernel's node name holds so many bytes. */
const longestFqdn = 64;
const longestSubdomain = 253;

const isLabel = (text: string) => text.length <= longestHostname && label.test(text);
const isSubdomain = (text: string) =>
  text.length <= longestSubdomain && text.split(".").every((part) => label.test(part));

function refuse(pod: BoundPod, field: string, value: string, what: string): never {
  throw new KubeletError(
    "BadPod",
    `pod ${describePod(pod)}: ${field} ${JSON.stringify(value.slice(0, 80))} is not a valid DNS ${what}; ` +
      "use lower-case letters, digits and '-', starting and ending with a letter or digit",
  );
}

function cut(pod: BoundPod, hostname: string): string {
  if (hostname.length <= longestHostname) return hostname;
  const short = hostname.slice(0, longestHostname).replace(/[-.]+$/, "");
  if (short === "") throw new KubeletError("BadPod", `hostname for pod ${describePod(pod)} has no usable characters`);
  return short;
}

/** The pod's short host name and its DNS domain (empty when it has none). Throws BadPod on a name that is no DNS name. */
export function hostnameAndDomain(pod: BoundPod, clusterDomain: string): { hostname: string; domain: string } {
  const { hostnameOverride, hostname, subdomain } = pod.spec;
  if (hostnameOverride !== undefined) {
    if (!isSubdomain(hostnameOverride)) refuse(pod, "spec.hostnameOverride", hostnameOverride, "subdomain");
    return { hostname: cut(pod, hostnameOverride), domain: "" };
  }
  if (hostname && !isLabel(hostname)) refuse(pod, "spec.hostname", hostname, "label");
  if (subdomain && !isLabel(subdomain)) refuse(pod, "spec.subdomain", subdomain, "label");
  return {
    hostname: cut(pod, hostname || pod.metadata.name),
    domain: subdomain ? `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}` : "",
  };
}

/** The node name that the kernel shows in the sandbox: the FQDN if the pod asks for it. Throws BadPod when too long. */
export function kernelHostname(pod: BoundPod, clusterDomain: string): string {
  const { hostname, domain } = hostnameAndDomain(pod, clusterDomain);
  if (pod.spec.setHostnameAsFQDN !== true || domain === "") return hostname;
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > longestFqdn) {
    throw new KubeletError(
      "BadPod",
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long ` +
        `(${longestFqdn} characters is the max, ${fqdn.length} characters requested)`,
    );
  }
  return fqdn;
}
