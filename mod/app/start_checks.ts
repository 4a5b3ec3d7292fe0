import type { Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import { applyTunables } from "../../managers/node/tunables.ts";
import { KubeletError, messageOf } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { EventSink } from "../kube/events.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";

/** The swap devices of a /proc/swaps table, without its heading. */
export function swapDevices(table: string): string[] {
  return table.split("\n").slice(1).map((line) => line.trim().split(/\s+/)[0] ?? "").filter((name) => name !== "");
}

/** Throws a KubeletError (Host) unless the process is root's: nobody else may mount, or make control groups. */
export function requireRoot(uid: number): void {
  if (uid === 0) return;
  throw new KubeletError(
    "Host",
    `the agent must run as root, and this is user ${uid}; start it as root (sudo kubelet …)`,
  );
}

/**
 * Looks whether the machine is one that the configuration accepts (features.md A14, A15, A16, A17). Rejects with BadConfig
 * that names the setting; what only weakens the node is logged. That cgroup v1 is allowed at all, validation has seen.
 */
export async function checkMachine(options: {
  config: Pick<KubeletConfig, "failSwapOn" | "oomScoreAdj" | "protectKernelDefaults">;
  host: Pick<Host, "readText" | "writeControl" | "procRoot">;
  hierarchies: Pick<Hierarchies, "version">;
  events: EventSink;
  log: Logger;
}): Promise<void> {
  const { config, host, hierarchies, events, log } = options;
  if (hierarchies.version === 1) {
    const message = "cgroup v1 is used; move the node to cgroup v2";
    events.node({ type: "Warning", reason: "CgroupV1", message });
  }
  if (config.failSwapOn) {
    const devices = swapDevices(await host.readText(`${host.procRoot}/swaps`));
    if (devices.length > 0) {
      throw new KubeletError(
        "BadConfig",
        `swap is on (${
          devices.join(", ")
        }), and failSwapOn is true (the default); turn swap off, or set failSwapOn: false`,
      );
    }
  }
  await applyTunables({ host, protect: config.protectKernelDefaults, log });
  try {
    await host.writeControl(`${host.procRoot}/self/oom_score_adj`, String(config.oomScoreAdj));
  } catch (thrown) {
    // Lowering it takes CAP_SYS_RESOURCE; without it the agent works, but is killed sooner when memory runs out.
    log.warn("the agent's own OOM score cannot be set; it runs on with the one it has", {
      oomScoreAdj: config.oomScoreAdj,
      error: messageOf(thrown),
    });
  }
}
