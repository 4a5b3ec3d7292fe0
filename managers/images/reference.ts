/** An image name as a pod spec gives it, taken apart. */
export interface ImageReference {
  /** The name as written, with `:latest` appended when it had neither tag nor digest. */
  readonly image: string;
  /** The full name without tag and digest, registry included. */
  readonly repository: string;
  /** The name as written without tag and digest. */
  readonly bareName: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** Where images come from whose name has no registry. */
const defaultRegistry = "docker.io";

const component = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const host = `(?:${component}(?:\\.${component})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const domain = new RegExp(`^${host}$`);
const part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const tagPattern = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
const digestPattern = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
const rest = new RegExp(`^(${part}(?:/${part})*)(?::(${tagPattern}))?(?:@(${digestPattern}))?$`);
/** Hex digits of the digest algorithms that exist. */
const digestLengths = new Map([["sha256", 64], ["sha384", 96], ["sha512", 128]]);
const longestPath = 255;
/** No valid reference is longer than host name, path, tag and digest at their longest. */
const longestReference = 1024;

/** A bare name stands for one of the default registry's own repositories, whose path has a prefix. */
function pathOf(name: string, elsewhere: boolean): string {
  return elsewhere || name.includes("/") ? name : `library/${name}`;
}

function digestFault(digest: string): string | undefined {
  const colon = digest.indexOf(":");
  const length = digestLengths.get(digest.slice(0, colon));
  if (length === undefined) return "unsupported digest algorithm";
  const hex = digest.slice(colon + 1);
  if (hex.length !== length) return "invalid checksum digest length";
  return /^[0-9a-f]+$/.test(hex) ? undefined : "invalid checksum digest format";
}

/**
 * Reads an image name by the grammar of image references. A first part with a dot or a colon, `localhost`, or one
 * with capitals is a registry; the rest must be lower case. Throws an Error that says what is wrong with the name.
 */
export function parseReference(text: string): ImageReference {
  if (text.length > longestReference) throw new Error("invalid reference format: the name is too long");
  if (/^[a-f0-9]{64}$/.test(text)) {
    throw new Error(`invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`);
  }
  const slash = text.indexOf("/");
  const first = slash < 0 ? "" : text.slice(0, slash);
  const hasHost = slash >= 0 && (/[.:]/.test(first) || first === "localhost" || first.toLowerCase() !== first);
  const remainder = hasHost ? text.slice(slash + 1) : text;
  const path = remainder.split(":")[0] ?? "";
  if (path.toLowerCase() !== path) {
    throw new Error(`invalid reference format: repository name (${pathOf(path, hasHost)}) must be lowercase`);
  }
  const match = hasHost && !domain.test(first) ? null : rest.exec(remainder);
  if (!match) throw new Error("invalid reference format");
  const [, name = "", tag, digest] = match;
  const registry = !hasHost || first === "index.docker.io" ? defaultRegistry : first;
  const full = pathOf(name, registry !== defaultRegistry);
  if (full.length > longestPath) {
    throw new Error(`repository name must not be more than ${longestPath} characters`);
  }
  const fault = digest === undefined ? undefined : digestFault(digest);
  if (fault) throw new Error(fault);
  const bare = tag === undefined && digest === undefined;
  return {
    image: bare ? `${text}:latest` : text,
    repository: `${registry}/${full}`,
    bareName: hasHost ? `${first}/${name}` : name,
    tag: bare ? "latest" : tag,
    digest,
  };
}
