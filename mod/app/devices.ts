import { DeviceManager } from "../../managers/devices/manager.ts";
import { devicePluginHandler, DeviceRegistration } from "../../managers/devices/registration.ts";
import type { Devices } from "../../managers/devices/types.ts";
import { PluginWatcher } from "../../managers/plugins/watcher.ts";
import type { PluginHandler, PluginType } from "../../managers/plugins/types.ts";
import { type PodResourcesCall, servePodResources } from "../../managers/podresources/server.ts";
import type { Clock } from "../base/clock.ts";
import { connectGrpc } from "../base/grpc_client.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { Scope } from "../base/scope.ts";
import { rootPaths } from "../pod/config/paths.ts";
import type { HealthCheck } from "../server/healthz.ts";
import type { ServedAgent } from "./agent_types.ts";

export interface DevicesOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: Scope;
  readonly rootDir: string;
  /** The gate ResourceHealthStatus. */
  readonly showHealth: boolean;
  readonly meter?: PluginMeter;
}

/** Told of what plugins do, for the metrics. */
export interface PluginMeter {
  /** A device plugin asks to be used. */
  registered(resource: string): void;
  /** A device plugin has given devices, or failed to. */
  allocated(resource: string, ms: number): void;
  podResources(call: PodResourcesCall): void;
  /** Asked for the sockets of plugins when a page is made. */
  sockets: (() => { readonly sockets: readonly string[]; readonly registered: readonly string[] }) | undefined;
}

/** The node's plugins, as the process runs them. */
export interface NodePlugins {
  readonly devices: Devices;
  /** Who takes plugins of which type. CSI and DRA drivers are taken once a handler for them is put here. */
  readonly handlers: Map<PluginType, PluginHandler>;
  readonly healthChecks: readonly HealthCheck[];
  /** Lets plugins in, and tells others what pods have. */
  start(agent: Pick<ServedAgent, "activePods" | "view">): void;
}

/** Device plugins, the watcher for plugins of every type, and the API of pods' resources. */
export async function createDevices(options: DevicesOptions): Promise<NodePlugins> {
  const { host, clock, log, scope, rootDir, showHealth, meter } = options;
  const connect = connectGrpc;
  const dir = rootPaths.devicePlugins(rootDir);
  const devices = new DeviceManager({
    host,
    dir,
    connect,
    clock,
    log,
    scope,
    showHealth,
    onAllocated: (resource, ms) => meter?.allocated(resource, ms),
  });
  await devices.load();
  const registration = new DeviceRegistration({
    dir,
    host,
    plugins: devices,
    log,
    onRequest: (resource) => meter?.registered(resource),
  });
  const handlers = new Map<PluginType, PluginHandler>([["DevicePlugin", devicePluginHandler(devices)]]);
  return {
    devices,
    handlers,
    healthChecks: [{ name: "device-plugin", check: () => registration.fault }],
    start(agent): void {
      scope.spawn("device plugins", (signal) => registration.run(signal));
      const registry = rootPaths.pluginRegistration(rootDir);
      const watcher = new PluginWatcher({ dir: registry, host, connect, handlers, clock, log });
      if (meter) meter.sockets = () => watcher;
      scope.spawn("plugins", (signal) => watcher.run(signal));
      scope.spawn("pod resources", (signal) =>
        servePodResources({
          dir: rootPaths.podResources(rootDir),
          host,
          devices,
          pods: () => agent.activePods,
          podByName: (namespace, name) => agent.view.podByName(namespace, name),
          clock,
          log,
          onCall: (call) => meter?.podResources(call),
        }, signal));
    },
  };
}
