import type { ImageService, RuntimeService } from "../../cri/api.ts";
import { EvictionManager } from "../../managers/eviction/manager.ts";
import { psiThresholds } from "../../managers/eviction/thresholds.ts";
import type { DiskLayout, EvictionPods, EvictionPolicy } from "../../managers/eviction/types.ts";
import type { ContainerGC } from "../../managers/gc/collector.ts";
import type { ImageGC } from "../../managers/gc/image_gc.ts";
import type { StatsSource } from "../../managers/stats/collector.ts";
import { mountOf } from "../../managers/stats/node_files.ts";
import { parsePsi } from "../../managers/stats/parse.ts";
import type { StatsSnapshot } from "../../managers/stats/types.ts";
import type { Host } from "../base/host.ts";
import type { Scope } from "../base/scope.ts";
import type { PodStatus } from "../kube/types.ts";
import type { PodWorkers } from "../sync/pod_workers.ts";
import type { AgentOptions, ServedAgent } from "./agent_types.ts";
import type { KubeletFlags } from "./config/flags.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";
import { makeStats } from "./node_pages.ts";

/** Why a pod was evicted, as its status and the journal have it. */
export const evictedReason = "Evicted";

/** True for a pod that was evicted (not merely turned away): of such a one nothing is kept. */
export function wasEvicted(status: PodStatus | undefined): boolean {
  return status?.phase === "Failed" && status.reason === evictedReason;
}

/** The statistics of this node, one source for all that ask. */
export function makeAgentStats(
  o: AgentOptions,
  parts: { view: ServedAgent["view"]; runtime: RuntimeService; images: ImageService; scope: Scope },
): StatsSource {
  const { config, flags, facts, hierarchies, cgroupDriver, host, clock, log, meter } = o;
  return makeStats({
    loaded: { config, flags },
    nodeName: facts.name,
    hierarchies,
    cgroupDriver,
    host,
    clock,
    log,
    ...(meter ? { onMeasured: (path, seconds) => meter.measured(path, seconds) } : {}),
    ...parts,
  });
}

/** What the configuration and the flags say of eviction. */
export function evictionPolicy(config: KubeletConfig, flags: KubeletFlags): EvictionPolicy {
  return {
    thresholds: [...config.evictionThresholds, ...psiThresholds(flags.denoletEvictionPsi)],
    allocatableEnforced: config.enforceNodeAllocatable.includes("pods"),
    transitionMs: config.evictionPressureTransitionPeriodMs,
    maxPodGraceSeconds: config.evictionMaxPodGracePeriod,
    storageLimits: config.localStorageCapacityIsolation,
    ignorePageCache: flags.denoletEvictionIgnorePageCache,
    dryRun: flags.denoletEvictionDryRun,
    staticPods: flags.denoletEvictionStaticPods,
  };
}

/** Keeps the node alive when something runs short; start its `run`. */
export function makeEviction(o: AgentOptions, parts: {
  stats: StatsSource;
  workers: PodWorkers;
  containers: Pick<ContainerGC, "collect">;
  imageGC: Pick<ImageGC, "collect">;
  images: Pick<ImageService, "imageFsInfo">;
}): EvictionManager {
  const { config, flags, clock, log, events, journal, meter, host } = o;
  const { stats, workers, containers, imageGC, images } = parts;
  return new EvictionManager({
    policy: evictionPolicy(config, flags),
    stats: { collect: async (detail) => withPressure(host, await stats.collect(detail)) },
    pods: evictionPods(workers),
    reclaim: {
      containers: (signal) => containers.collect(signal, { unused: true }),
      images: (signal) => imageGC.collect(signal, { unused: true }),
    },
    layout: (signal) => diskLayout({ images, host, rootDir: flags.rootDir, signal }),
    clock,
    log,
    events,
    journal,
    ...(meter ? { meter } : {}),
  });
}

/** Adds the machine's lost time where groups do not tell of any, as on cgroup v1; a kernel without PSI tells nothing. */
export function withPressure(host: Pick<Host, "readTextNow" | "procRoot">, snapshot: StatsSnapshot): StatsSnapshot {
  const { sample } = snapshot.node;
  if (sample.psi?.memory) return snapshot;
  let text: string | undefined;
  try {
    text = host.readTextNow(`${host.procRoot}/pressure/memory`);
  } catch {
    return snapshot; // Compiled in but switched off: who asked for it is told that the signal cannot be read.
  }
  const memory = parsePsi(text);
  if (!memory) return snapshot;
  return { ...snapshot, node: { ...snapshot.node, sample: { ...sample, psi: { ...sample.psi, memory } } } };
}

function evictionPods(workers: PodWorkers): EvictionPods {
  return {
    active: () => [...workers.all()].filter((worker) => worker.mayRun && !worker.removed).map(({ pod }) => pod),
    evict: ({ pod, graceSeconds, message, disruption }) =>
      workers.get(pod.metadata.uid)?.kill({
        why: { reason: evictedReason, message },
        graceSeconds,
        failed: { reason: evictedReason, message, ...(disruption === undefined ? {} : { disruption }) },
      }),
    cleaned: (uid) => {
      const state = workers.get(uid)?.state;
      return state === undefined || state === "finished" || state === "gone";
    },
  };
}

/**
 * Whether images have a disk of their own. By CRI the writable layers lie with the images, so that a split of the two is
 * never found (metrics.md section 9). Rejects when the runtime does not tell where its images are.
 */
export async function diskLayout(options: {
  images: Pick<ImageService, "imageFsInfo">;
  host: Pick<Host, "mounts">;
  rootDir: string;
  signal: AbortSignal;
}): Promise<DiskLayout> {
  const { images, host, rootDir, signal } = options;
  const { imageFilesystems: [first] } = await images.imageFsInfo({ signal });
  const path = first?.fsId?.mountpoint ?? "";
  const table = await host.mounts();
  const ofImages = path === "" ? undefined : mountOf(table, path), own = mountOf(table, rootDir);
  if (!ofImages || !own) throw new Error("the runtime does not tell where it keeps its images (ImageFsInfo)");
  // Bound a second time elsewhere, a disk is still one.
  const sameDisk = ofImages.source === own.source && own.source.startsWith("/");
  return ofImages.id === own.id || sameDisk ? "single" : "imagefs";
}
