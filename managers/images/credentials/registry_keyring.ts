import { credentialHash, type RegistryUsers } from "./docker_config.ts";
import { registryMatches } from "./registry_match.ts";
import type { CredentialSource, PullCredential } from "./types.ts";

/** The registry of images whose name has none, and the name under which its users are kept. */
const defaultRegistry = "docker.io";
const defaultRegistryKey = "index.docker.io";

/** Credentials by registry address; the more specific address comes first. */
export class RegistryKeyring {
  readonly #byAddress = new Map<string, PullCredential[]>();

  /** Takes in users, in their order; several for one address are all tried. */
  add(users: RegistryUsers, source?: CredentialSource): void {
    for (const [location, user] of users) {
      const address = addressOf(location);
      const { username, password } = user;
      const credential = { username, password, hash: credentialHash(user), ...(source ? { source } : {}) };
      const there = this.#byAddress.get(address);
      if (there) there.push(credential);
      else this.#byAddress.set(address, [credential]);
    }
  }

  /** Credentials for a repository (full name, no tag), the most specific address first. */
  lookup(repository: string): readonly PullCredential[] {
    const addresses = [...this.#byAddress.keys()].sort().reverse();
    const found = addresses.filter((address) => registryMatches(address, repository))
      .flatMap((address) => this.#byAddress.get(address) ?? []);
    if (found.length > 0) return found;
    const isDefault = repository.startsWith(`${defaultRegistry}/`);
    return isDefault ? this.#byAddress.get(defaultRegistryKey) ?? [] : [];
  }
}

/** The address that a configuration means: no scheme, no API version, no bare slash. */
function addressOf(location: string): string {
  const bare = location.replace(/^https?:\/\//, "").replace(/[?#].*$/s, "");
  const slash = bare.indexOf("/");
  if (slash < 0) return bare;
  const path = bare.slice(slash).replace(/^\/v[12](?=\/)/, "");
  return path === "/" ? bare.slice(0, slash) : bare.slice(0, slash) + path;
}
