import type { ServerConfig } from "../config.ts";
import type { HealthCheck } from "../healthz.ts";
import type { RouteGroup, ServerBackend } from "../types.ts";
import { checkpointGroup } from "./checkpoint.ts";
import { debugFlagsGroup, pprofGroup } from "./debug.ts";
import { healthGroup } from "./health.ts";
import { logsGroup } from "./logs.ts";
import { configzGroup, podsGroup, runningPodsGroup } from "./pods.ts";
import { zpagesGroup } from "./zpages.ts";

/** The groups that the server has by itself; streaming, container logs and statistics are registered. */
export function ownGroups(options: {
  config: ServerConfig;
  flags: { readonly rootDir: string };
  backend: ServerBackend;
  healthChecks: () => readonly HealthCheck[];
  version: string;
  logDir?: string;
  paths: () => readonly string[];
}): RouteGroup[] {
  const { config, flags, backend, healthChecks, version, logDir = "/var/log", paths } = options;
  return [
    healthGroup(healthChecks),
    podsGroup(backend),
    runningPodsGroup(backend),
    configzGroup(backend),
    checkpointGroup({ backend, rootDir: flags.rootDir, timeoutMs: config.runtimeRequestTimeoutMs }),
    logsGroup({ config, root: logDir }),
    pprofGroup(config.enableProfilingHandler, () => ["kubelet", ...Deno.args]),
    debugFlagsGroup(config.enableDebugFlagsHandler, backend),
    zpagesGroup({ backend, version, platform: `deno ${Deno.version.deno}`, paths }),
  ];
}
