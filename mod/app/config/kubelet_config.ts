import type { Quantity } from "../../kube/quantity.ts";
import type { MemoryReservation, ShutdownGracePeriodByPodPriority, Taint, VModuleItem } from "../../kube/types.ts";
import type { EvictionThreshold } from "./eviction.ts";

type StringMap = Readonly<Record<string, string>>;

/** Where log lines go. */
export interface LoggingConfig {
  readonly format: "text" | "json";
  readonly flushFrequencyMs: number;
  readonly verbosity: number;
  readonly vmodule: readonly VModuleItem[];
  /** Of the format in use: info lines to stdout, buffered up to so many bytes. */
  readonly splitStream: boolean;
  readonly infoBufferBytes: number;
}

/**
 * The configuration as the agent uses it: every field present, checked and typed. Convention: the names are those of
 * v1beta1; a duration's name ends in `Ms` (milliseconds), a size's in `Bytes`; reservations are quantities, thresholds
 * are parsed; an empty string, list or map means "not set", and `undefined` stands only where zero means something else.
 */
export interface KubeletConfig {
  readonly enableServer: boolean;
  readonly staticPodPath: string;
  readonly podLogsDir: string;
  readonly syncFrequencyMs: number;
  readonly fileCheckFrequencyMs: number;
  readonly httpCheckFrequencyMs: number;
  readonly staticPodURL: string;
  readonly staticPodURLHeader: Readonly<Record<string, readonly string[]>>;
  readonly address: string;
  readonly port: number;
  readonly readOnlyPort: number;
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly tlsCipherSuites: readonly string[];
  readonly tlsCurvePreferences: readonly number[];
  readonly tlsMinVersion: string;
  readonly rotateCertificates: boolean;
  readonly serverTLSBootstrap: boolean;
  readonly authentication: {
    readonly x509: { readonly clientCAFile: string };
    readonly webhook: { readonly enabled: boolean; readonly cacheTTLMs: number };
    readonly anonymous: { readonly enabled: boolean };
  };
  readonly authorization: {
    readonly mode: string;
    readonly webhook: { readonly cacheAuthorizedTTLMs: number; readonly cacheUnauthorizedTTLMs: number };
  };
  readonly registryPullQPS: number;
  readonly registryBurst: number;
  readonly imagePullCredentialsVerificationPolicy: string;
  readonly preloadedImagesVerificationAllowlist: readonly string[];
  readonly eventRecordQPS: number;
  readonly eventBurst: number;
  readonly enableDebuggingHandlers: boolean;
  readonly enableContentionProfiling: boolean;
  readonly healthzPort: number;
  readonly healthzBindAddress: string;
  readonly oomScoreAdj: number;
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  readonly streamingConnectionIdleTimeoutMs: number;
  readonly nodeStatusUpdateFrequencyMs: number;
  readonly nodeStatusReportFrequencyMs: number;
  readonly nodeLeaseDurationSeconds: number;
  readonly imageMinimumGCAgeMs: number;
  /** 0: images are not removed for their age. */
  readonly imageMaximumGCAgeMs: number;
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  /** Negative: volumes are not measured. */
  readonly volumeStatsAggPeriodMs: number;
  readonly kubeletCgroups: string;
  readonly systemCgroups: string;
  /** `/` when cgroupsPerQOS is on and nothing else was set. */
  readonly cgroupRoot: string;
  readonly cgroupsPerQOS: boolean;
  readonly cgroupDriver: "cgroupfs" | "systemd";
  readonly cpuManagerPolicy: string;
  /** undefined: true on cgroup v1, false on v2. */
  readonly singleProcessOOMKill: boolean | undefined;
  readonly cpuManagerPolicyOptions: StringMap;
  readonly cpuManagerReconcilePeriodMs: number;
  readonly memoryManagerPolicy: string;
  readonly topologyManagerPolicy: string;
  readonly topologyManagerScope: string;
  readonly topologyManagerPolicyOptions: StringMap;
  /** Percentages by resource. */
  readonly qosReserved: Readonly<Record<string, number>>;
  readonly runtimeRequestTimeoutMs: number;
  readonly hairpinMode: string;
  readonly maxPods: number;
  readonly podCIDR: string;
  /** -1: the node's limit. */
  readonly podPidsLimit: number;
  readonly resolvConf: string;
  readonly runOnce: boolean;
  readonly cpuCFSQuota: boolean;
  readonly cpuCFSQuotaPeriodMs: number;
  readonly nodeStatusMaxImages: number;
  readonly maxOpenFiles: number;
  readonly contentType: string;
  readonly kubeAPIQPS: number;
  readonly kubeAPIBurst: number;
  readonly serializeImagePulls: boolean;
  readonly maxParallelImagePulls: number | undefined;
  /** From evictionHard, evictionSoft, evictionSoftGracePeriod and evictionMinimumReclaim. */
  readonly evictionThresholds: readonly EvictionThreshold[];
  readonly evictionPressureTransitionPeriodMs: number;
  readonly evictionMaxPodGracePeriod: number;
  readonly podsPerCore: number;
  readonly enableControllerAttachDetach: boolean;
  readonly protectKernelDefaults: boolean;
  readonly makeIPTablesUtilChains: boolean;
  readonly failSwapOn: boolean;
  readonly memorySwap: { readonly swapBehavior: string };
  /** Negative: logs are not rotated. */
  readonly containerLogMaxSizeBytes: number;
  readonly containerLogMaxFiles: number;
  readonly containerLogMaxWorkers: number;
  readonly containerLogMonitorIntervalMs: number;
  readonly configMapAndSecretChangeDetectionStrategy: string;
  /** With reservedSystemCPUs: cpu is the number of those CPUs. */
  readonly systemReserved: Readonly<Record<string, Quantity>>;
  /** With reservedSystemCPUs: without cpu. */
  readonly kubeReserved: Readonly<Record<string, Quantity>>;
  readonly reservedSystemCPUs: readonly number[];
  readonly showHiddenMetricsForVersion: string;
  readonly systemReservedCgroup: string;
  readonly kubeReservedCgroup: string;
  readonly enforceNodeAllocatable: readonly string[];
  readonly allowedUnsafeSysctls: readonly string[];
  readonly volumePluginDir: string;
  readonly providerID: string;
  readonly kernelMemcgNotification: boolean;
  readonly logging: LoggingConfig;
  readonly enableSystemLogHandler: boolean;
  readonly enableSystemLogQuery: boolean;
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownGracePeriodByPodPriority[];
  readonly crashLoopBackOff: { readonly maxContainerRestartPeriodMs: number };
  readonly reservedMemory: readonly MemoryReservation[];
  readonly enableProfilingHandler: boolean;
  readonly enableDebugFlagsHandler: boolean;
  /** The field or --seccomp-default. */
  readonly seccompDefault: boolean;
  readonly memoryThrottlingFactor: number;
  readonly memoryReservationPolicy: string;
  readonly registerWithTaints: readonly Taint[];
  readonly registerNode: boolean;
  /** undefined: no tracing. */
  readonly tracing: { readonly endpoint: string; readonly samplingRatePerMillion: number } | undefined;
  readonly localStorageCapacityIsolation: boolean;
  readonly containerRuntimeEndpoint: string;
  /** The runtime's endpoint when none was set. */
  readonly imageServiceEndpoint: string;
  readonly failCgroupV1: boolean;
  readonly userNamespaces: { readonly idsPerPod: number };
}
