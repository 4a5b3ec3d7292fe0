import type { ImageService, RuntimeService } from "../../cri/api.ts";
import type { Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import { groupPath, parseRoot, podPart, qosName } from "../../managers/cgroups/names.ts";
import { createStats, type StatsOptions, type StatsSource } from "../../managers/stats/collector.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { Scope } from "../base/scope.ts";
import type { BoundPod } from "../kube/types.ts";
import { qosClass } from "../pod/resources.ts";
import type { MachineFacts } from "../server/metrics/cadvisor.ts";
import type { ServerBackend } from "../server/types.ts";
import type { LoadedConfig } from "./config/load.ts";

/** What statistics of the node are taken from. */
export interface NodePagesOptions {
  loaded: Pick<LoadedConfig, "config" | "flags">;
  view: Pick<ServerBackend, "allObserved" | "podByUid">;
  nodeName: string;
  runtime: Pick<RuntimeService, "listContainerStats">;
  images: Pick<ImageService, "imageFsInfo">;
  hierarchies: Hierarchies;
  cgroupDriver: "cgroupfs" | "systemd";
  host: Host;
  clock: Clock;
  log: Logger;
  /** Owns the work that goes on behind an answer. */
  scope: Scope;
  /** Told how long it took to measure a directory. */
  onMeasured?: NonNullable<StatsOptions["onMeasured"]>;
}

/** The node's statistics, with the groups where this configuration puts them. */
export function makeStats(options: NodePagesOptions): StatsSource {
  const { loaded: { config, flags }, view, cgroupDriver: driver } = options;
  const kubepods = [...parseRoot(config.cgroupRoot || "/"), "kubepods"];
  const podGroups = (uid: string, pod: BoundPod | undefined): string[] => {
    if (!config.cgroupsPerQOS) return [];
    // A pod that nobody wants any more may have been of any class.
    const classes = pod ? [qosClass(pod)] : (["Guaranteed", "Burstable", "BestEffort"] as const);
    return classes.map((qos) => groupPath([...qosName(kubepods, qos), podPart(uid)], driver));
  };
  const named = [
    { name: "kubelet", group: config.kubeletCgroups },
    { name: "runtime", group: flags.runtimeCgroups },
    { name: "misc", group: config.systemCgroups },
    { name: "pods", group: config.cgroupsPerQOS ? groupPath(kubepods, driver) : "" },
  ] as const satisfies StatsOptions["systemGroups"];
  return createStats({
    ...options,
    rootDir: flags.rootDir,
    podLogsDir: config.podLogsDir,
    observed: () => view.allObserved(),
    podByUid: (uid) => view.podByUid(uid),
    podGroups,
    ...(config.volumeStatsAggPeriodMs > 0 ? { keepMs: config.volumeStatsAggPeriodMs } : {}),
    systemGroups: named.filter(({ group }) => group !== "").map(({ name, group }) => ({
      name,
      group: group.startsWith("/") ? group : `/${group}`,
    })),
  });
}

/** What tells this machine from others. What cannot be read is empty, as it is in a container. */
export async function machineFacts(host: Pick<Host, "readText" | "procRoot">): Promise<MachineFacts> {
  const text = async (path: string) => (await host.readText(path).catch(() => "")).trim();
  const [machineId, systemUuid, bootId, kernelVersion, os, cpus] = await Promise.all([
    text("/etc/machine-id"),
    text("/sys/class/dmi/id/product_uuid"),
    text(`${host.procRoot}/sys/kernel/random/boot_id`),
    text(`${host.procRoot}/sys/kernel/osrelease`),
    text("/etc/os-release"),
    text(`${host.procRoot}/cpuinfo`),
  ]);
  const packages = new Set<string>(), cores = new Set<string>();
  for (const cpu of cpus.split("\n\n")) {
    const id = /^physical id\s*:\s*(\d+)$/m.exec(cpu)?.[1], core = /^core id\s*:\s*(\d+)$/m.exec(cpu)?.[1];
    if (id === undefined || core === undefined) continue;
    packages.add(id);
    cores.add(`${id}:${core}`);
  }
  return {
    machineId,
    systemUuid,
    bootId,
    kernelVersion,
    osVersion: /^PRETTY_NAME="?(.*?)"?$/m.exec(os)?.[1] ?? "",
    ...(cores.size > 0 ? { physicalCores: cores.size, sockets: packages.size } : {}),
  };
}
