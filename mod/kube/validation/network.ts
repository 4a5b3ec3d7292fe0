import type { PodSpec } from "../types.ts";
import { checkLabel, checkSubdomain, isIp, isSearchDomain } from "./names.ts";
import type { Problems } from "./problem.ts";

/** What the resolver of the C library can take. */
const maxNameservers = 3;
const maxSearches = 32;
const maxSearchCharacters = 2048;
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/** Checks DNS settings, host aliases and host names. */
export function checkNetwork(p: Problems, spec: PodSpec): void {
  p.oneOf("spec.dnsPolicy", spec.dnsPolicy, dnsPolicies);
  checkDns(p, spec);
  spec.hostAliases?.forEach(({ ip, hostnames }, i) => {
    const at = `spec.hostAliases[${i}]`;
    if (!isIp(ip)) p.add(`${at}.ip`, ip, "is no IP address", "use an IPv4 or IPv6 address");
    hostnames?.forEach((name, j) => checkSubdomain(p, `${at}.hostnames[${j}]`, name));
  });
  if (spec.hostname) checkLabel(p, "spec.hostname", spec.hostname);
  if (spec.subdomain) checkLabel(p, "spec.subdomain", spec.subdomain);
  if (spec.hostnameOverride === undefined) return;
  const at = "spec.hostnameOverride";
  if (spec.setHostnameAsFQDN) p.forbidden(at, "when setHostnameAsFQDN is true");
  if (spec.hostNetwork) p.forbidden(at, "when hostNetwork is true");
  if (spec.hostnameOverride.length > 64) p.add(at, spec.hostnameOverride, "is too long", "use at most 64 characters");
  checkSubdomain(p, at, spec.hostnameOverride);
}

function checkDns(p: Problems, spec: PodSpec): void {
  const at = "spec.dnsConfig";
  const { nameservers = [], searches = [], options = [] } = spec.dnsConfig ?? {};
  if (spec.dnsPolicy === "None" && nameservers.length === 0) {
    p.required(`${at}.nameservers`, "dnsPolicy None needs at least one name server");
  }
  if (nameservers.length > maxNameservers) {
    p.add(`${at}.nameservers`, nameservers.length, "are too many", `use at most ${maxNameservers}`);
  }
  nameservers.forEach((server, i) => {
    if (!isIp(server)) p.add(`${at}.nameservers[${i}]`, server, "is no IP address", "use an IPv4 or IPv6 address");
  });
  if (searches.length > maxSearches) {
    p.add(`${at}.searches`, searches.length, "are too many", `use at most ${maxSearches}`);
  }
  const characters = searches.join(" ").length;
  if (characters > maxSearchCharacters) {
    p.add(`${at}.searches`, characters, "characters are too many", `use at most ${maxSearchCharacters} in all`);
  }
  searches.forEach((search, i) => {
    if (search === "." || isSearchDomain(search.replace(/\.$/, ""))) return;
    p.add(`${at}.searches[${i}]`, search, "is no domain", "use lower-case letters, digits, '-', '_' and '.'");
  });
  options.forEach(({ name }, i) => {
    if (!name) p.required(`${at}.options[${i}].name`, "name the resolver option");
  });
}
