import type { ImageService, RuntimeService } from "../../cri/api.ts";
import { type ContainerGC, createContainerGC, type GcLogs } from "../../managers/gc/collector.ts";
import { ImageGC } from "../../managers/gc/image_gc.ts";
import type { PullRecords } from "../../managers/images/credentials/pull_records.ts";
import { LogRotation } from "../../managers/logs/rotation.ts";
import { OomWatcher } from "../../managers/oom/watcher.ts";
import { canMountImages } from "../../managers/runtime/image_volumes.ts";
import type { StatusManager } from "../../managers/status/status_manager.ts";
import type { Scope } from "../base/scope.ts";
import type { ObservedPod } from "../pod/observed.ts";
import type { PodWorkers } from "../sync/pod_workers.ts";
import { wasEvicted } from "./agent_eviction.ts";
import type { AgentOptions } from "./agent_types.ts";

/** Removes what dead containers leave. @param parts.runtime the journaled one */
export function makeContainerGC(o: AgentOptions, parts: {
  runtime: RuntimeService;
  logs: GcLogs;
  sourcesReady: () => boolean;
  workers: () => PodWorkers;
  statuses: Pick<StatusManager, "get">;
}): ContainerGC {
  const { flags, clock, log, events } = o;
  const { runtime, logs, sourcesReady, workers, statuses } = parts;
  return createContainerGC({
    runtime,
    logs,
    clock,
    log,
    events,
    policy: {
      minAgeMs: flags.minimumContainerTTLMs,
      maxPerContainer: flags.maximumDeadContainersPerContainer,
      maxContainers: flags.maximumDeadContainers,
    },
    pods: {
      sourcesReady,
      contentMayGo: (uid) => {
        const worker = workers().get(uid);
        return worker ? !worker.mayRun && wasEvicted(statuses.get(uid)) : !workers().has(uid);
      },
      runtimeMayGo: (uid) => !(workers().get(uid)?.mayRun ?? false),
    },
  });
}

/** Rotates the logs of this agent's pods. @param runtime the journaled one */
export function makeLogRotation(
  o: AgentOptions,
  runtime: RuntimeService,
  scope: Scope,
  pods: () => Iterable<ObservedPod>,
): LogRotation {
  const { config, host, clock, log } = o;
  return new LogRotation({
    host,
    runtime,
    clock,
    log,
    scope,
    pods,
    podLogsDir: config.podLogsDir,
    maxSizeBytes: config.containerLogMaxSizeBytes,
    maxFiles: config.containerLogMaxFiles,
    maxWorkers: config.containerLogMaxWorkers,
    intervalMs: config.containerLogMonitorIntervalMs,
    ...(o.flags.denoletLogBudgetBytes > 0 ? { budgetBytes: o.flags.denoletLogBudgetBytes } : {}),
  });
}

/** Removes images that nothing uses. @param images the journaled service */
export function makeImageGC(
  o: AgentOptions,
  runtime: RuntimeService,
  images: ImageService,
  records: Pick<PullRecords, "prune"> | undefined,
): ImageGC {
  const { config, host, clock, log, events } = o;
  return new ImageGC({
    runtime,
    images,
    host,
    clock,
    log,
    events,
    onRemoved: (why) => o.meter?.work.imageRemoved(why),
    ...(records ? { onImages: (ids: ReadonlySet<string>, askedAt: number) => records.prune(ids, askedAt) } : {}),
    // A runtime of which that is not known is asked.
    imageVolumes: canMountImages(o.runtimeName, o.runtimeVersion) ?? true,
    policy: {
      highPercent: config.imageGCHighThresholdPercent,
      lowPercent: config.imageGCLowThresholdPercent,
      minAgeMs: config.imageMinimumGCAgeMs,
      maxAgeMs: config.imageMaximumGCAgeMs,
    },
  });
}

/** Tells what the kernel's out-of-memory killer does to the node and to this agent's pods. */
export function makeOomWatcher(o: AgentOptions, pods: () => Iterable<ObservedPod>): OomWatcher {
  const { host, log, events, journal } = o;
  return new OomWatcher({ host, log, events, journal, pods });
}
