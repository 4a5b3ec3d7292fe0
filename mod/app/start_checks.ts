import type { Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import { KubeletError, messageOf } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { EventSink } from "../kube/events.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";

/** The swap devices of a /proc/swaps table, without its heading. */
export function swapDevices(table: string): string[] {
  return table.split("\n").slice(1).map((line) => line.trim().split(/\s+/)[0] ?? "").filter((name) => name !== "");
}

/**
 * Looks whether the machine is one that the configuration accepts (features.md A14, A16, A17). Rejects with BadConfig
 * that names the setting; what only weakens the node is logged.
 */
export async function checkMachine(options: {
  config: Pick<KubeletConfig, "failCgroupV1" | "failSwapOn" | "oomScoreAdj">;
  host: Pick<Host, "readText" | "writeControl" | "procRoot">;
  hierarchies: Pick<Hierarchies, "version">;
  events: EventSink;
  log: Logger;
}): Promise<void> {
  const { config, host, hierarchies, events, log } = options;
  if (hierarchies.version === 1) {
    if (config.failCgroupV1) {
      throw new KubeletError(
        "BadConfig",
        "this machine runs cgroup v1, and failCgroupV1 is true (the default); boot it with cgroup v2, or set " +
          "failCgroupV1: false",
      );
    }
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
