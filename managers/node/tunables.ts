import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";

/** What a node's kernel is set to (runtime-contract.md section 6); names as the reference writes them. */
export const kernelTunables: readonly (readonly [name: string, value: number])[] = [
  ["vm/overcommit_memory", 1],
  ["vm/panic_on_oom", 0],
  ["kernel/panic", 10],
  ["kernel/panic_on_oops", 1],
  ["kernel/keys/root_maxkeys", 1_000_000],
  ["kernel/keys/root_maxbytes", 25_000_000],
];

export interface TunablesOptions {
  readonly host: Pick<Host, "readText" | "writeControl" | "procRoot">;
  /** protectKernelDefaults: nothing is set; what differs ends the start. */
  readonly protect: boolean;
  readonly log: Logger;
}

/**
 * Sets the kernel's tunables that a node needs, or checks them (features.md A15). What the kernel does not let be set
 * is told, and the agent runs on.
 * @throws KubeletError BadConfig when one differs and may not be changed
 */
export async function applyTunables({ host, protect, log }: TunablesOptions): Promise<void> {
  const wrong: string[] = [], failed: string[] = [];
  for (const [name, expected] of kernelTunables) {
    const path = `${host.procRoot}/sys/${name}`;
    try {
      const actual = (await host.readText(path)).trim();
      if (actual === String(expected)) continue;
      wrong.push(`invalid kernel flag: ${name}, expected value: ${expected}, actual value: ${actual.slice(0, 20)}`);
      if (!protect) await host.writeControl(path, String(expected));
    } catch (thrown) {
      failed.push(`${name}: ${messageOf(thrown)}`);
    }
  }
  if (protect && wrong.length + failed.length > 0) {
    throw new KubeletError(
      "BadConfig",
      `[${
        [...wrong, ...failed].join(", ")
      }]: set them (sysctl -w), or let the agent do it: protectKernelDefaults: false`,
    );
  }
  if (failed.length > 0) {
    log.warn("kernel tunables that a node should have cannot be set; it runs with those it has", { failed });
  }
}
