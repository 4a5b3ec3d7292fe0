import { parseDuration } from "../../base/duration.ts";
import { messageOf } from "../../base/errors.ts";
import { parseQuantity, type Quantity, quantityOf, value } from "../../kube/quantity.ts";
import type { KubeletConfiguration } from "../../kube/types.ts";
import { parseCpuList } from "./cpu_list.ts";
import { type EvictionThreshold, readThresholds } from "./eviction.ts";
import { fieldName } from "./fields.ts";
import { setKey } from "./json.ts";
import type { KubeletConfig, LoggingConfig } from "./kubelet_config.ts";

/** The typed configuration, with what could not be read. */
export interface Converted {
  readonly config: KubeletConfig;
  readonly problems: readonly string[];
}

const reservable = ["cpu", "memory", "ephemeral-storage", "pid"];

/** Collects problems while reading texts. */
class Reader {
  readonly problems: string[] = [];

  report = (path: string, problem: string): void => {
    this.problems.push(`${fieldName(path)}: ${problem}`);
  };

  attempt<T>(path: string, fallback: T, read: () => T): T {
    try {
      return read();
    } catch (thrown) {
      this.report(path, messageOf(thrown));
      return fallback;
    }
  }

  ms(path: string, text: string | undefined): number {
    return text === undefined || text === "" ? 0 : this.attempt(path, 0, () => parseDuration(text));
  }

  reserved(path: string, map: Readonly<Record<string, string>> | undefined): Record<string, Quantity> {
    const found: Record<string, Quantity> = {};
    for (const [name, text] of Object.entries(map ?? {})) {
      if (!reservable.includes(name)) {
        this.report(path, `cannot reserve ${JSON.stringify(name.slice(0, 80))}; use ${reservable.join(", ")}`);
        continue;
      }
      const quantity = this.attempt(path, undefined, () => parseQuantity(text, { what: name }));
      if (quantity === undefined) continue;
      if (quantity.nano < 0n) this.report(path, `${name}=${text} must not be negative`);
      else setKey(found, name, quantity);
    }
    return found;
  }

  percentages(path: string, map: Readonly<Record<string, string>> | undefined): Record<string, number> {
    const found: Record<string, number> = {};
    for (const [name, text] of Object.entries(map ?? {})) {
      const percent = /^\d{1,3}%$/.test(text) ? Number(text.slice(0, -1)) : NaN;
      if (name !== "memory") {
        this.report(path, `cannot reserve ${JSON.stringify(name.slice(0, 80))}; only memory can be reserved`);
      } else if (!(percent <= 100)) this.report(path, `memory=${text.slice(0, 80)} must be from 0% to 100%`);
      else found.memory = percent;
    }
    return found;
  }
}

function logging(reader: Reader, config: KubeletConfiguration["logging"]): LoggingConfig {
  const flush = config?.flushFrequency ?? 0;
  const format = config?.format === "json" ? "json" : "text";
  const routing = config?.options?.[format];
  const path = `logging.options.${format}.infoBufferSize`;
  return {
    format,
    flushFrequencyMs: typeof flush === "number" ? flush / 1e6 : reader.ms("logging.flushFrequency", flush),
    verbosity: config?.verbosity ?? 0,
    vmodule: config?.vmodule ?? [],
    splitStream: routing?.splitStream ?? false,
    infoBufferBytes: reader.attempt(path, 0, () => value(parseQuantity(routing?.infoBufferSize ?? "0"))),
  };
}

/** What is not in the file but belongs to the configuration in use. */
export interface ConversionOptions {
  /** --seccomp-default. */
  readonly seccompDefault: boolean;
}

/** Types a defaulted v1beta1 configuration; problems name the field. */
export function toInternal(c: KubeletConfiguration, options: ConversionOptions): Converted {
  const reader = new Reader();
  const ms = (path: string, text: string | undefined) => reader.ms(path, text);
  const systemReserved = reader.reserved("systemReserved", c.systemReserved);
  const kubeReserved = reader.reserved("kubeReserved", c.kubeReserved);
  const reservedSystemCPUs = reader.attempt<number[]>(
    "reservedSystemCPUs",
    [],
    () => parseCpuList(c.reservedSystemCPUs ?? ""),
  );
  if (reservedSystemCPUs.length > 0) {
    delete kubeReserved.cpu;
    systemReserved.cpu = quantityOf(reservedSystemCPUs.length);
  }
  const evictionThresholds: EvictionThreshold[] = readThresholds({
    evictionHard: c.evictionHard ?? {},
    evictionSoft: c.evictionSoft ?? {},
    evictionSoftGracePeriod: c.evictionSoftGracePeriod ?? {},
    evictionMinimumReclaim: c.evictionMinimumReclaim ?? {},
  }, reader.report);
  const auth = c.authentication ?? {};
  const authz = c.authorization ?? {};
  const config: KubeletConfig = {
    enableServer: c.enableServer ?? true,
    staticPodPath: c.staticPodPath ?? "",
    podLogsDir: c.podLogsDir ?? "",
    syncFrequencyMs: ms("syncFrequency", c.syncFrequency),
    fileCheckFrequencyMs: ms("fileCheckFrequency", c.fileCheckFrequency),
    httpCheckFrequencyMs: ms("httpCheckFrequency", c.httpCheckFrequency),
    staticPodURL: c.staticPodURL ?? "",
    staticPodURLHeader: c.staticPodURLHeader ?? {},
    address: c.address ?? "",
    port: c.port ?? 0,
    readOnlyPort: c.readOnlyPort ?? 0,
    tlsCertFile: c.tlsCertFile ?? "",
    tlsPrivateKeyFile: c.tlsPrivateKeyFile ?? "",
    tlsCipherSuites: c.tlsCipherSuites ?? [],
    tlsCurvePreferences: c.tlsCurvePreferences ?? [],
    tlsMinVersion: c.tlsMinVersion ?? "",
    rotateCertificates: c.rotateCertificates ?? false,
    serverTLSBootstrap: c.serverTLSBootstrap ?? false,
    authentication: {
      x509: { clientCAFile: auth.x509?.clientCAFile ?? "" },
      webhook: {
        enabled: auth.webhook?.enabled ?? false,
        cacheTTLMs: ms("authentication.webhook.cacheTTL", auth.webhook?.cacheTTL),
      },
      anonymous: { enabled: auth.anonymous?.enabled ?? false },
    },
    authorization: {
      mode: authz.mode ?? "",
      webhook: {
        cacheAuthorizedTTLMs: ms("authorization.webhook.cacheAuthorizedTTL", authz.webhook?.cacheAuthorizedTTL),
        cacheUnauthorizedTTLMs: ms("authorization.webhook.cacheUnauthorizedTTL", authz.webhook?.cacheUnauthorizedTTL),
      },
    },
    registryPullQPS: c.registryPullQPS ?? 0,
    registryBurst: c.registryBurst ?? 0,
    imagePullCredentialsVerificationPolicy: c.imagePullCredentialsVerificationPolicy ?? "",
    preloadedImagesVerificationAllowlist: c.preloadedImagesVerificationAllowlist ?? [],
    eventRecordQPS: c.eventRecordQPS ?? 0,
    eventBurst: c.eventBurst ?? 0,
    enableDebuggingHandlers: c.enableDebuggingHandlers ?? true,
    enableContentionProfiling: c.enableContentionProfiling ?? false,
    healthzPort: c.healthzPort ?? 0,
    healthzBindAddress: c.healthzBindAddress ?? "",
    oomScoreAdj: c.oomScoreAdj ?? 0,
    clusterDomain: c.clusterDomain ?? "",
    clusterDNS: c.clusterDNS ?? [],
    streamingConnectionIdleTimeoutMs: ms("streamingConnectionIdleTimeout", c.streamingConnectionIdleTimeout),
    nodeStatusUpdateFrequencyMs: ms("nodeStatusUpdateFrequency", c.nodeStatusUpdateFrequency),
    nodeStatusReportFrequencyMs: ms("nodeStatusReportFrequency", c.nodeStatusReportFrequency),
    nodeLeaseDurationSeconds: c.nodeLeaseDurationSeconds ?? 0,
    imageMinimumGCAgeMs: ms("imageMinimumGCAge", c.imageMinimumGCAge),
    imageMaximumGCAgeMs: ms("imageMaximumGCAge", c.imageMaximumGCAge),
    imageGCHighThresholdPercent: c.imageGCHighThresholdPercent ?? 0,
    imageGCLowThresholdPercent: c.imageGCLowThresholdPercent ?? 0,
    volumeStatsAggPeriodMs: ms("volumeStatsAggPeriod", c.volumeStatsAggPeriod),
    kubeletCgroups: c.kubeletCgroups ?? "",
    systemCgroups: c.systemCgroups ?? "",
    cgroupRoot: c.cgroupRoot || (c.cgroupsPerQOS === true ? "/" : ""),
    cgroupsPerQOS: c.cgroupsPerQOS ?? true,
    cgroupDriver: c.cgroupDriver === "systemd" ? "systemd" : "cgroupfs",
    cpuManagerPolicy: c.cpuManagerPolicy ?? "",
    singleProcessOOMKill: c.singleProcessOOMKill,
    cpuManagerPolicyOptions: c.cpuManagerPolicyOptions ?? {},
    cpuManagerReconcilePeriodMs: ms("cpuManagerReconcilePeriod", c.cpuManagerReconcilePeriod),
    memoryManagerPolicy: c.memoryManagerPolicy ?? "",
    topologyManagerPolicy: c.topologyManagerPolicy ?? "",
    topologyManagerScope: c.topologyManagerScope ?? "",
    topologyManagerPolicyOptions: c.topologyManagerPolicyOptions ?? {},
    qosReserved: reader.percentages("qosReserved", c.qosReserved),
    runtimeRequestTimeoutMs: ms("runtimeRequestTimeout", c.runtimeRequestTimeout),
    hairpinMode: c.hairpinMode ?? "",
    maxPods: c.maxPods ?? 0,
    podCIDR: c.podCIDR ?? "",
    podPidsLimit: Math.max(c.podPidsLimit ?? -1, -1),
    resolvConf: c.resolvConf ?? "",
    runOnce: c.runOnce ?? false,
    cpuCFSQuota: c.cpuCFSQuota ?? true,
    cpuCFSQuotaPeriodMs: ms("cpuCFSQuotaPeriod", c.cpuCFSQuotaPeriod),
    nodeStatusMaxImages: c.nodeStatusMaxImages ?? 0,
    maxOpenFiles: c.maxOpenFiles ?? 0,
    contentType: c.contentType ?? "",
    kubeAPIQPS: c.kubeAPIQPS ?? 0,
    kubeAPIBurst: c.kubeAPIBurst ?? 0,
    serializeImagePulls: c.serializeImagePulls ?? true,
    maxParallelImagePulls: c.maxParallelImagePulls,
    evictionThresholds,
    evictionPressureTransitionPeriodMs: ms("evictionPressureTransitionPeriod", c.evictionPressureTransitionPeriod),
    evictionMaxPodGracePeriod: c.evictionMaxPodGracePeriod ?? 0,
    podsPerCore: c.podsPerCore ?? 0,
    enableControllerAttachDetach: c.enableControllerAttachDetach ?? true,
    protectKernelDefaults: c.protectKernelDefaults ?? false,
    makeIPTablesUtilChains: c.makeIPTablesUtilChains ?? true,
    failSwapOn: c.failSwapOn ?? true,
    memorySwap: { swapBehavior: c.memorySwap?.swapBehavior ?? "" },
    containerLogMaxSizeBytes: reader.attempt(
      "containerLogMaxSize",
      0,
      () => value(parseQuantity(c.containerLogMaxSize ?? "")),
    ),
    containerLogMaxFiles: c.containerLogMaxFiles ?? 0,
    containerLogMaxWorkers: c.containerLogMaxWorkers ?? 0,
    containerLogMonitorIntervalMs: ms("containerLogMonitorInterval", c.containerLogMonitorInterval),
    configMapAndSecretChangeDetectionStrategy: c.configMapAndSecretChangeDetectionStrategy ?? "",
    systemReserved,
    kubeReserved,
    reservedSystemCPUs,
    showHiddenMetricsForVersion: c.showHiddenMetricsForVersion ?? "",
    systemReservedCgroup: c.systemReservedCgroup ?? "",
    kubeReservedCgroup: c.kubeReservedCgroup ?? "",
    enforceNodeAllocatable: c.enforceNodeAllocatable ?? [],
    allowedUnsafeSysctls: c.allowedUnsafeSysctls ?? [],
    volumePluginDir: c.volumePluginDir ?? "",
    providerID: c.providerID ?? "",
    kernelMemcgNotification: c.kernelMemcgNotification ?? false,
    logging: logging(reader, c.logging),
    enableSystemLogHandler: c.enableSystemLogHandler ?? true,
    enableSystemLogQuery: c.enableSystemLogQuery ?? false,
    shutdownGracePeriodMs: ms("shutdownGracePeriod", c.shutdownGracePeriod),
    shutdownGracePeriodCriticalPodsMs: ms("shutdownGracePeriodCriticalPods", c.shutdownGracePeriodCriticalPods),
    shutdownGracePeriodByPodPriority: c.shutdownGracePeriodByPodPriority ?? [],
    crashLoopBackOff: {
      maxContainerRestartPeriodMs: c.crashLoopBackOff?.maxContainerRestartPeriod === undefined
        ? 300_000
        : ms("crashLoopBackOff.maxContainerRestartPeriod", c.crashLoopBackOff.maxContainerRestartPeriod),
    },
    reservedMemory: c.reservedMemory ?? [],
    enableProfilingHandler: c.enableProfilingHandler ?? true,
    enableDebugFlagsHandler: c.enableDebugFlagsHandler ?? true,
    seccompDefault: (c.seccompDefault ?? false) || options.seccompDefault,
    memoryThrottlingFactor: c.memoryThrottlingFactor ?? 0,
    memoryReservationPolicy: c.memoryReservationPolicy ?? "",
    registerWithTaints: c.registerWithTaints ?? [],
    registerNode: c.registerNode ?? true,
    tracing: c.tracing === undefined ? undefined : {
      endpoint: c.tracing.endpoint ?? "localhost:4317",
      samplingRatePerMillion: c.tracing.samplingRatePerMillion ?? 0,
    },
    localStorageCapacityIsolation: c.localStorageCapacityIsolation ?? true,
    containerRuntimeEndpoint: c.containerRuntimeEndpoint ?? "",
    imageServiceEndpoint: c.imageServiceEndpoint || c.containerRuntimeEndpoint || "",
    failCgroupV1: c.failCgroupV1 ?? true,
    userNamespaces: { idsPerPod: c.userNamespaces?.idsPerPod ?? 65536 },
  };
  return { config, problems: reader.problems };
}
