import { isIP } from "node:net";
import type { NodeAddress } from "../../mod/kube/types.ts";
import { type InterfaceAddress, nodeAddresses } from "./addresses.ts";

export interface AddressInput {
  /** Of --node-ip, in its order. */
  readonly nodeIPs: readonly string[];
  /** --hostname-override, or the machine's name. */
  readonly hostname: string;
  /** --cloud-provider=external. */
  readonly externalCloud: boolean;
  readonly interfaces: readonly InterfaceAddress[];
  /** /proc/net/route. */
  readonly routes: string;
  /** What the resolver tells for the node's name; empty when it knows none. */
  readonly resolved: readonly string[];
}

/** The addresses, or why there are none. */
export type AddressResult = { readonly addresses: NodeAddress[] } | { readonly error: string };

/** True when the resolver's answer matters at all. */
export function needsResolver(input: Pick<AddressInput, "nodeIPs" | "hostname" | "externalCloud">): boolean {
  const [first] = input.nodeIPs;
  if (first === undefined && input.externalCloud) return false;
  return (first === undefined || isUnspecified(first)) && isIP(input.hostname) === 0;
}

/**
 * The addresses of the node's status (runtime-contract.md section 19): two of --node-ip; else the one of it, the
 * node's name when that is an address, what the resolver tells for it, or an address of the default route's
 * interface; and the name as Hostname. With an external cloud provider and no --node-ip the name alone: the provider
 * brings the rest. Addresses of --node-ip must be the machine's own.
 */
export function statusAddresses(input: AddressInput): AddressResult {
  const { nodeIPs, hostname, interfaces } = input;
  const given = nodeIPs.filter((ip) => !isUnspecified(ip));
  for (const [index, ip] of given.entries()) {
    const bad = badNodeAddress(ip, interfaces);
    if (bad) return { error: `failed to validate ${index === 0 ? "nodeIP" : "secondaryNodeIP"}: ${bad}` };
  }
  const host = { type: "Hostname", address: hostname };
  if (input.externalCloud && nodeIPs.length === 0) return { addresses: [host] };
  if (given.length > 1) return { addresses: [...given.map(internal), host] };
  const found = given[0] ?? foundAddress(input);
  if (found === undefined) {
    return {
      error: `can't get ip address of node ${hostname}: neither the resolver nor a default route tells one; ` +
        "give it by --node-ip",
    };
  }
  return { addresses: [internal(found), host] };
}

function internal(address: string): NodeAddress {
  return { type: "InternalIP", address: canonical(address) };
}

function foundAddress({ nodeIPs, hostname, interfaces, routes, resolved }: AddressInput): string | undefined {
  if (isIP(hostname) !== 0) return hostname;
  const v6 = nodeIPs[0] === "::";
  const own = resolved.filter((ip) => badNodeAddress(ip, interfaces) === undefined);
  const named = own.find((ip) => ip.includes(":") === v6) ?? own[0];
  if (named !== undefined) return named;
  for (const nodeIp of v6 ? ["::", "0.0.0.0"] : ["0.0.0.0", "::"]) {
    const [address] = nodeAddresses({ nodeIp, interfaces, routes });
    if (address !== undefined) return address;
  }
  return undefined;
}

function isUnspecified(ip: string): boolean {
  return canonical(ip) === "0.0.0.0" || canonical(ip) === "::";
}

/** One text for one address; what is none stays as it is. */
export function canonical(ip: string): string {
  if (isIP(ip) !== 6) return ip;
  const bare = ip.replace(/%.*$/, "");
  return URL.canParse(`http://[${bare}]/`) ? new URL(`http://[${bare}]/`).hostname.slice(1, -1) : ip;
}

/** Why an address cannot be the node's; undefined when it can. */
export function badNodeAddress(ip: string, interfaces: readonly InterfaceAddress[]): string | undefined {
  const text = canonical(ip);
  const family = isIP(ip);
  if (family === 0) return "nodeIP must be a valid IP address";
  const v6 = family === 6;
  if (v6 ? text === "::1" : /^127\./.test(text)) return "nodeIP can't be loopback address";
  if (v6 ? /^ff/i.test(text) : /^(22[4-9]|23\d)\./.test(text)) return "nodeIP can't be a multicast address";
  if (v6 ? /^fe[89ab]/i.test(text) : /^169\.254\./.test(text)) return "nodeIP can't be a link-local unicast address";
  if (isUnspecified(ip)) return "nodeIP can't be an all zeros address";
  if (interfaces.some(({ address }) => canonical(address) === text)) return undefined;
  return `node IP: "${ip}" not found in the host's network interfaces`;
}

/** The addresses of a node's status as pods show their host's: the primary first, and one of the other family. */
export function hostIPs(addresses: readonly NodeAddress[]): string[] {
  const all = ["InternalIP", "ExternalIP"].flatMap((type) =>
    addresses.filter((address) => address.type === type && isIP(address.address) !== 0).map(({ address }) => address)
  );
  const [first] = all;
  if (first === undefined) return [];
  const other = all.find((ip) => ip.includes(":") !== first.includes(":"));
  return other === undefined ? [first] : [first, other];
}
