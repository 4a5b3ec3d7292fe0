import { posix } from "node:path";
import { type ProviderConfig, readProviderConfigs } from "../../managers/images/credentials/provider_config.ts";
import { KubeletError } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { KubeletFlags } from "./config/flags.ts";

/** The node's credential provider plugins. */
export interface CredentialProviders {
  readonly configs: readonly ProviderConfig[];
  /** Directory of their programs. */
  readonly binDir: string;
  /** Digest of the configuration. */
  readonly hash: string;
}

type Flags = Pick<KubeletFlags, "imageCredentialProviderConfig" | "imageCredentialProviderBinDir">;

/** Reads the plugins that the flags name; undefined without flags. Throws BadConfig for what cannot work. */
export async function readCredentialProviders(
  host: Pick<Host, "stat" | "readDir" | "readBytes">,
  { imageCredentialProviderConfig: config, imageCredentialProviderBinDir: directory }: Flags,
  gates: { enabled(name: string): boolean },
): Promise<CredentialProviders | undefined> {
  if (config === "" && directory === "") return undefined;
  const missing = config === "" ? "config" : "bin-dir";
  if (config === "" || directory === "") {
    throw new KubeletError(
      "BadConfig",
      `--image-credential-provider-${missing} is empty: --image-credential-provider-config and ` +
        "--image-credential-provider-bin-dir are needed together",
    );
  }
  // The run-time knows programs that may be run by their full path.
  const binDir = directory.startsWith("/") ? posix.normalize(directory) : posix.resolve(Deno.cwd(), directory);
  if (!await host.stat(binDir)) throw new KubeletError("BadConfig", `plugin binary directory ${binDir} did not exist`);
  const { providers: configs, hash } = await readProviderConfigs(host, config);
  const gate = "KubeletServiceAccountTokenForCredentialProviders";
  for (const { name, token } of configs) {
    const program = posix.join(binDir, name);
    const info = await host.stat(program);
    if (!info) throw new KubeletError("BadConfig", `plugin binary executable ${program} did not exist`);
    if (info.kind !== "file" || (info.mode & 0o111) === 0) {
      throw new KubeletError("BadConfig", `plugin binary executable ${program} is no program; make it executable`);
    }
    if (token && !gates.enabled(gate)) {
      throw new KubeletError("BadConfig", `credential provider ${name}: tokenAttributes needs feature gate ${gate}`);
    }
  }
  return { configs, binDir, hash };
}
