/** Which registry addresses a repository belongs to (features.md section 13, keyring order). */

interface Address {
  readonly host: readonly string[];
  readonly port: string;
  /** With its leading slash; may be empty. */
  readonly path: string;
}

function addressOf(text: string): Address {
  const slash = text.indexOf("/");
  const authority = slash < 0 ? text : text.slice(0, slash);
  const path = slash < 0 ? "" : text.slice(slash);
  const ipv6 = /^\[([^\]]*)\](?::(\d*))?$/.exec(authority);
  const colon = ipv6 ? -1 : authority.indexOf(":");
  const host = ipv6?.[1] ?? (colon < 0 ? authority : authority.slice(0, colon));
  return { host: host.split("."), port: ipv6 ? ipv6[2] ?? "" : colon < 0 ? "" : authority.slice(colon + 1), path };
}

/** Matches one part of a host name, `*` standing for any characters. Linear: no pattern can make it slow. */
function partMatches(glob: string, part: string): boolean {
  const [first = "", ...rest] = glob.split("*");
  if (rest.length === 0) return glob === part;
  const last = rest.pop() ?? "";
  if (!part.startsWith(first) || part.length < first.length + last.length || !part.endsWith(last)) return false;
  let at = first.length;
  const end = part.length - last.length;
  for (const middle of rest) {
    const found = part.indexOf(middle, at);
    if (found < 0 || found + middle.length > end) return false;
    at = found + middle.length;
  }
  return true;
}

/** True when a repository lies below an address: same port, as many parts of the host, each matching; path a prefix. */
export function registryMatches(pattern: string, repository: string): boolean {
  const [glob, target] = [addressOf(pattern), addressOf(repository)];
  return glob.port === target.port && glob.host.length === target.host.length && target.path.startsWith(glob.path) &&
    glob.host.every((part, i) => partMatches(part, target.host[i] ?? ""));
}
