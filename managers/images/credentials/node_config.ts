import type { Clock } from "../../../mod/base/clock.ts";
import { messageOf } from "../../../mod/base/errors.ts";
import type { Host } from "../../../mod/base/host.ts";
import { isMissing } from "../../../mod/base/host_error.ts";
import type { Logger } from "../../../mod/base/log.ts";
import { readDockercfg, readDockerConfigJson, type RegistryUsers } from "./docker_config.ts";
import { RegistryKeyring } from "./registry_keyring.ts";
import type { Keyring } from "./types.ts";

/** How long what was read counts, in milliseconds. */
const keptMs = 300_000;
const longestFile = 10 << 20;

/** Files of pull credentials for every pod of the node, the first that can be used first. */
export function nodeConfigFiles(rootDir: string): { readonly path: string; readonly legacy: boolean }[] {
  return [
    ...[rootDir, "/root/.docker", "/.docker"].map((dir) => ({ path: `${dir}/config.json`, legacy: false })),
    ...[rootDir, "/root", ""].map((dir) => ({ path: `${dir}/.dockercfg`, legacy: true })),
  ];
}

/** Credentials that the node has for every pod (features.md section 13, keyring order). A file that is broken is passed over. */
export function nodeConfigKeyring(options: {
  readonly host: Pick<Host, "readBytes">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Logger;
  readonly rootDir: string;
}): Keyring {
  const { host, clock, log, rootDir } = options;
  let kept: { users: RegistryUsers; until: number } | undefined;
  const read = async (): Promise<RegistryUsers> => {
    for (const { path, legacy } of nodeConfigFiles(rootDir)) {
      try {
        const text = new TextDecoder().decode(await host.readBytes(path, longestFile));
        return legacy ? readDockercfg(text, path) : readDockerConfigJson(text, path);
      } catch (thrown) {
        if (!isMissing(thrown)) log.detail(4, "no pull credentials here", { path, error: messageOf(thrown) });
      }
    }
    return new Map();
  };
  return {
    async lookup({ repository }) {
      if (!kept || clock.now() >= kept.until) kept = { users: await read(), until: clock.now() + keptMs };
      const keyring = new RegistryKeyring();
      keyring.add(kept.users);
      return keyring.lookup(repository);
    },
  };
}
