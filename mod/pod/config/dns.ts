/** DNS settings of a pod (runtime-contract.md section 12). */
import { KubeletError } from "../../base/errors.ts";
import type { BoundPod, PodDNSConfig, PodDNSConfigOption } from "../../kube/types.ts";
import { describePod } from "./errors.ts";

/** What a resolv.conf file says; also what the runtime is given. */
export interface DnsSettings {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}
export type ParsedResolvConf = DnsSettings;

/** An event that the caller sends; `node` ones are about the node itself. */
export interface DnsEvent {
  readonly about: "pod" | "node";
  readonly type: "Warning";
  readonly reason: "MissingClusterDNS" | "DNSConfigForming" | "CheckLimitsForResolvConf";
  readonly message: string;
}

const maxServers = 3;
const maxSearches = 32;
const maxSearchChars = 2048;
const maxSearchPath = 253;
/** Bytes of a resolv.conf that are read, as text length. */
const maxFile = 10 << 20;

const unique = (list: readonly string[]) => [...new Set(list)];

/**
 * Reads a resolv.conf: nameservers add up, the last search line wins, options are kept by name, the last one winning.
 * Throws BadConfig on a nameserver line without an address.
 */
export function parseResolvConf(text: string): ParsedResolvConf {
  if (text.length > maxFile) throw new KubeletError("BadConfig", `resolv.conf is larger than ${maxFile} bytes`);
  const servers: string[] = [];
  let searches: string[] = [];
  const options = new Map<string, string>();
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const [keyword, ...values] = trimmed.split(/\s+/);
    if (keyword === "nameserver") {
      const server = values[0];
      if (server === undefined) {
        throw new KubeletError("BadConfig", `resolv.conf line ${index + 1}: nameserver list is empty; give an address`);
      }
      servers.push(server);
    } else if (keyword === "search") {
      searches = values.filter((s) => s !== ".").map((s) => s.endsWith(".") ? s.slice(0, -1) : s);
    } else if (keyword === "options") {
      for (const option of values) options.set(option.split(":")[0] ?? option, option);
    }
  }
  return { servers, searches, options: [...options.values()] };
}

/** Problems of the node's resolv.conf that pods will feel; undefined when there are none. */
export function checkResolvConf(
  parsed: ParsedResolvConf,
  path: string,
  clusterDomain: string,
): DnsEvent | undefined {
  const warn = (message: string): DnsEvent => ({
    about: "node",
    type: "Warning",
    reason: "CheckLimitsForResolvConf",
    message: `Resolv.conf file '${path}' contains ${message}`,
  });
  // A pod's own three cluster searches come before the node's.
  const most = maxSearches - (clusterDomain === "" ? 0 : 3);
  if (parsed.searches.length > most) return warn(`search line consisting of more than ${most} domains!`);
  if (parsed.searches.some((s) => s.length > maxSearchPath)) {
    return warn(`a search path which length is more than allowed ${maxSearchPath} chars!`);
  }
  if (parsed.searches.join(" ").length > maxSearchChars) {
    return warn(`search line which length is more than allowed ${maxSearchChars} chars!`);
  }
  return undefined;
}

export interface PodDnsInput {
  readonly pod: BoundPod;
  /** The node's settings, or undefined when resolvConf is the empty string (no DNS from the node). */
  readonly resolvConf: ParsedResolvConf | undefined;
  readonly clusterDNS: readonly string[];
  readonly clusterDomain: string;
  readonly nodeIPs: readonly string[];
}

/** The pod's DNS settings, and the events that making them gave rise to. */
export function podDns(input: PodDnsInput): { config: DnsSettings; events: DnsEvent[] } {
  const { pod, clusterDNS } = input;
  const events: DnsEvent[] = [];
  const kind = policyOf(pod);
  let settings: DnsSettings;
  if (kind === "none") settings = { servers: [], searches: [], options: [] };
  else if (kind === "cluster" && clusterDNS.length > 0) settings = clusterSettings(input);
  else {
    if (kind === "cluster") events.push(...missingClusterDns(pod));
    settings = nodeSettings(input);
  }
  if (pod.spec.dnsConfig !== undefined) settings = merge(settings, pod.spec.dnsConfig);
  return { config: fit(settings, events), events };
}

function policyOf(pod: BoundPod): "none" | "cluster" | "node" {
  switch (pod.spec.dnsPolicy) {
    case "None":
      return "none";
    case "Default":
      return "node";
    case "ClusterFirst":
      return pod.spec.hostNetwork === true ? "node" : "cluster";
    default:
      // ClusterFirstWithHostNet, and what no policy is called: the safest guess is the cluster's own.
      return "cluster";
  }
}

function clusterSettings({ pod, clusterDNS, clusterDomain, resolvConf }: PodDnsInput): DnsSettings {
  const own = clusterDomain === ""
    ? []
    : [`${pod.metadata.namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain];
  const nodeSearches = resolvConf?.searches ?? [];
  return {
    servers: [...clusterDNS],
    searches: own.length > 0 ? unique([...own, ...nodeSearches]) : nodeSearches,
    options: ["ndots:5"],
  };
}

function nodeSettings({ resolvConf, nodeIPs }: PodDnsInput): DnsSettings {
  if (resolvConf !== undefined) return resolvConf;
  // An empty list would make the runtime use the node's file after all: name a local server that isn't there.
  const servers = nodeIPs.map((ip) => ip.includes(":") ? "::1" : "127.0.0.1");
  return { servers: servers.length > 0 ? servers : ["127.0.0.1"], searches: ["."], options: [] };
}

function missingClusterDns(pod: BoundPod): DnsEvent[] {
  const text = 'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
    'Falling back to "Default" policy.';
  const event = { type: "Warning", reason: "MissingClusterDNS" } as const;
  return [
    { ...event, about: "node", message: text },
    { ...event, about: "pod", message: `pod: "${describePod(pod)}". ${text}` },
  ];
}

function mergeOptions(old: readonly string[], added: readonly PodDNSConfigOption[]): string[] {
  const values = new Map<string, string>();
  for (const option of old) {
    const colon = option.indexOf(":");
    if (colon < 0) values.set(option, "");
    else values.set(option.slice(0, colon), option.slice(colon + 1));
  }
  for (const { name, value } of added) values.set(name ?? "", value ?? "");
  return [...values].map(([name, value]) => value === "" ? name : `${name}:${value}`);
}

function merge(base: DnsSettings, added: PodDNSConfig): DnsSettings {
  return {
    servers: unique([...base.servers, ...added.nameservers ?? []]),
    searches: unique([...base.searches, ...added.searches ?? []]),
    options: mergeOptions(base.options, added.options ?? []),
  };
}

/** Cuts the settings to what resolvers can take, with an event for each kind of cut. */
function fit(settings: DnsSettings, events: DnsEvent[]): DnsSettings {
  const warn = (message: string) => events.push({ about: "pod", type: "Warning", reason: "DNSConfigForming", message });
  const servers = settings.servers.slice(0, maxServers);
  if (servers.length < settings.servers.length) {
    warn(
      "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " +
        servers.join(" "),
    );
  }
  const searches = settings.searches.slice(0, maxSearches).filter((s) => s.length <= maxSearchPath);
  let chars = searches.join(" ").length;
  while (chars > maxSearchChars) chars -= (searches.pop() ?? "").length + 1;
  if (searches.length < settings.searches.length) {
    warn(
      "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
        searches.join(" "),
    );
  }
  return { servers, searches, options: settings.options };
}
