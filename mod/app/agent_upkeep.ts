import type { RuntimeService } from "../../cri/api.ts";
import { LogRotation } from "../../managers/logs/rotation.ts";
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
