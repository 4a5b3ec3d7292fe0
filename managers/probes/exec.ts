import type { RuntimeService } from "../../cri/api.ts";
import { formatDuration } from "../../mod/base/duration.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import type { EnvVar } from "../../mod/kube/types.ts";
import { expand, lookupIn } from "../../mod/pod/config/expand.ts";
import type { ProbeOutcome } from "./outcome.ts";

/** Bytes of a command's output that are kept. */
const outputLimit = 10 * 1024;

/**
 * Replaces `$(NAME)` by the literal value of an environment variable; `$$` stands for one `$`, an unknown name stays
 * as written. A variable whose value comes from elsewhere counts as empty (runtime-contract.md section 18, exec).
 */
export function expandLiterals(command: readonly string[], env: readonly EnvVar[] = []): string[] {
  const lookup = lookupIn(new Map(env.map((v) => [v.name, v.value ?? ""])));
  return command.map((word) => expand(word, lookup));
}

function head(parts: readonly Uint8Array[]): string {
  const bytes = new Uint8Array(Math.min(outputLimit, parts.reduce((sum, p) => sum + p.length, 0)));
  let at = 0;
  for (const part of parts) {
    const fits = part.subarray(0, bytes.length - at);
    bytes.set(fits, at);
    at += fits.length;
  }
  return new TextDecoder().decode(bytes);
}

/** Runs a probe's command in the container: exit code 0 is success; another one, or the time limit, is failure. */
export async function execProbe(options: {
  runtime: Pick<RuntimeService, "execSync">;
  containerId: string;
  command: readonly string[];
  env: readonly EnvVar[];
  timeoutMs: number;
  signal: AbortSignal;
}): Promise<ProbeOutcome> {
  const command = expandLiterals(options.command, options.env);
  try {
    const { exitCode, stdout, stderr } = await options.runtime.execSync(
      options.containerId,
      command,
      Math.max(1, Math.ceil(options.timeoutMs / 1000)),
      { signal: options.signal },
    );
    return { result: exitCode === 0 ? "success" : "failure", output: head([stdout, stderr]) };
  } catch (thrown) {
    if (!(thrown instanceof KubeletError && thrown.code === "Timeout")) throw thrown;
    const words = JSON.stringify(command.join(" ").slice(0, 1024));
    return {
      result: "failure",
      output: `command timed out: ${words} timed out after ${formatDuration(options.timeoutMs)}`,
    };
  }
}
