import type { CgroupManager } from "../../managers/cgroups/types.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Scope } from "../base/scope.ts";
import type { EventSink } from "../kube/events.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";

/** How often limits that could not be set are tried again, in milliseconds (runtime-contract.md section 6). */
const retryMs = 60_000;

/**
 * Makes the node's control groups and sets their limits. Limits that do not fit yet, because pods use more than they
 * allow, are told and tried again each minute; a root that is missing is a fault of the configuration, and rejects.
 */
export async function setUpNodeGroups(options: {
  cgroups: Pick<CgroupManager, "setUpNode">;
  config: Pick<
    KubeletConfig,
    "cgroupsPerQOS" | "enforceNodeAllocatable" | "systemReservedCgroup" | "kubeReservedCgroup"
  >;
  scope: Scope;
  clock: Clock;
  log: Logger;
  events: EventSink;
}): Promise<void> {
  const { cgroups, config, scope, clock, log, events } = options;
  if (!config.cgroupsPerQOS) return;
  const enforced = () => {
    for (const message of enforcedLimits(config)) {
      events.node({ type: "Normal", reason: "NodeAllocatableEnforced", message });
    }
  };
  try {
    await cgroups.setUpNode(scope.signal);
    enforced();
  } catch (thrown) {
    const message = messageOf(thrown);
    if (!message.startsWith("Failed to update Node Allocatable Limits")) throw thrown;
    log.error("node allocatable limits are not enforced yet", { error: message });
    events.node({ type: "Warning", reason: "FailedNodeAllocatableEnforcement", message });
    scope.spawn("node allocatable", async (signal) => {
      for (let done = false; !done;) {
        await clock.sleep(retryMs, signal);
        try {
          await cgroups.setUpNode(signal);
          done = true;
          enforced();
        } catch (again) {
          log.warn("node allocatable limits are still not enforced", { error: messageOf(again) });
        }
      }
    });
  }
}

/** What is told when the limits are set, in the reference's words. */
function enforcedLimits(config: Parameters<typeof setUpNodeGroups>[0]["config"]): string[] {
  return config.enforceNodeAllocatable.flatMap((what) => {
    if (what === "pods") return ["Updated Node Allocatable limit across pods"];
    if (what.startsWith("system-reserved")) {
      return [`Updated limits on system reserved cgroup ${config.systemReservedCgroup}`];
    }
    if (what.startsWith("kube-reserved")) {
      return [`Updated limits on kube reserved cgroup ${config.kubeReservedCgroup}`];
    }
    return [];
  });
}
