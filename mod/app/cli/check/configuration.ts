import { messageOf } from "../../../base/errors.ts";
import type { Host } from "../../../base/host.ts";
import { RecordingLogger } from "../../../base/log.ts";
import { describeUnused } from "../../config/explain.ts";
import type { KubeletConfig } from "../../config/kubelet_config.ts";
import { loadConfig } from "../../config/load.ts";

/** The configuration as `kubelet check` finds it. */
export interface CheckedConfig {
  /** Undefined when it cannot be used. */
  readonly config: KubeletConfig | undefined;
  /** Why it cannot be used. */
  readonly configProblem?: string;
  /** What the agent's start says of it, such as unknown fields (contract config.md section 1); also when it can't be used. */
  readonly configWarnings: readonly string[];
  /** Fields that it sets without effect, in words. */
  readonly configUnused: readonly string[];
}

/** Loads the configuration as the agent's start does, and keeps what that says of it. Never rejects. */
export async function checkConfig(argv: readonly string[], host: Host, cwd: string): Promise<CheckedConfig> {
  const log = new RecordingLogger();
  const said = () => log.lines.flatMap(({ level, message }) => level === "warn" || level === "error" ? [message] : []);
  try {
    const loaded = await loadConfig({ argv, host, log, cwd });
    return { config: loaded.config, configWarnings: said(), configUnused: describeUnused(loaded) };
  } catch (thrown) {
    return { config: undefined, configProblem: messageOf(thrown), configWarnings: said(), configUnused: [] };
  }
}
