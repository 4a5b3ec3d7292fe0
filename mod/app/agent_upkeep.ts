import type { ImageService, RuntimeService } from "../../cri/api.ts";
import { ImageGC } from "../../managers/gc/image_gc.ts";
import { LogRotation } from "../../managers/logs/rotation.ts";
import { canMountImages } from "../../managers/runtime/image_volumes.ts";
import type { Scope } from "../base/scope.ts";
import type { ObservedPod } from "../pod/observed.ts";
import type { AgentOptions } from "./agent_types.ts";

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
  });
}

/** Removes images that nothing uses. @param images the journaled service */
export function makeImageGC(o: AgentOptions, runtime: RuntimeService, images: ImageService): ImageGC {
  const { config, host, clock, log, events } = o;
  return new ImageGC({
    runtime,
    images,
    host,
    clock,
    log,
    events,
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
