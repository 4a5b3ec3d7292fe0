/** The /etc/hosts file of a pod (runtime-contract.md section 12). */
import type { HostAlias } from "../../kube/types.ts";

const fixed = [
  "127.0.0.1\tlocalhost",
  "::1\tlocalhost ip6-localhost ip6-loopback",
  "fe00::0\tip6-localnet",
  "fe00::0\tip6-mcastprefix",
  "fe00::1\tip6-allnodes",
  "fe00::2\tip6-allrouters",
];

function aliasLines(aliases: readonly HostAlias[]): string {
  if (aliases.length === 0) return "";
  const lines = aliases.map(({ ip, hostnames }) => `${ip}\t${(hostnames ?? []).join("\t")}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join("")}`;
}

/** The file of a pod that has its own network. */
export function managedHosts(input: {
  readonly podIPs: readonly string[];
  readonly hostname: string;
  /** The pod's DNS domain; empty when it has none. */
  readonly domain: string;
  readonly aliases?: readonly HostAlias[];
}): string {
  const { hostname, domain } = input;
  const names = domain === "" ? hostname : `${hostname}.${domain}\t${hostname}`;
  const lines = ["# Kubernetes-managed hosts file.", ...fixed, ...input.podIPs.map((ip) => `${ip}\t${names}`)];
  return `${lines.join("\n")}\n${aliasLines(input.aliases ?? [])}`;
}

/** The file of a pod in the node's network: the node's own file with the pod's aliases. */
export function hostNetworkHosts(nodeHosts: string, aliases: readonly HostAlias[] = []): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeHosts}${aliasLines(aliases)}`;
}
