import { parseDuration } from "../../base/duration.ts";
import type { FlagKind } from "./field_spec.ts";
import { fieldGroups } from "./fields.ts";
import { parseQuantity, valueBig } from "../../kube/quantity.ts";
import { getKey, type Json } from "./json.ts";

/** One flag. */
export interface FlagDefinition {
  readonly name: string;
  readonly kind: FlagKind;
  readonly shorthand?: string;
  readonly deprecated?: true;
  readonly about: string;
  /** Default as help shows it. */
  readonly initial?: string;
  /** The configuration field that it sets. */
  readonly field?: string;
  readonly group: string;
}

/** The settings that only flags give (contract config.md section 3). Durations in milliseconds. */
export interface KubeletFlags {
  readonly config: string;
  readonly configDir: string;
  /** Empty: standalone, no API server. */
  readonly kubeconfig: string;
  readonly bootstrapKubeconfig: string;
  readonly hostnameOverride: string;
  readonly nodeIP: string;
  readonly certDir: string;
  readonly cloudProvider: string;
  readonly rootDir: string;
  readonly seccompDefault: boolean;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly runtimeCgroups: string;
  readonly imageCredentialProviderConfig: string;
  readonly imageCredentialProviderBinDir: string;
  readonly lockFile: string;
  readonly exitOnLockContention: boolean;
  readonly minimumContainerTTLMs: number;
  readonly maximumDeadContainersPerContainer: number;
  readonly maximumDeadContainers: number;
  readonly experimentalMounterPath: string;
  readonly experimentalAllocatableIgnoreEviction: boolean;
  readonly housekeepingIntervalMs: number;
  /** Of this agent alone (docs/eviction.md). */
  readonly denoletEvictionIgnorePageCache: boolean;
  readonly denoletEvictionPsi: Readonly<Record<string, string>>;
  readonly denoletEvictionDryRun: boolean;
  readonly denoletEvictionStaticPods: boolean;
  /** Bytes; 0 for none. */
  readonly denoletLogBudgetBytes: number;
}

type OwnFlag = readonly [name: string, kind: FlagKind, about: string, initial?: string | undefined, deprecated?: true];

const own: readonly OwnFlag[] = [
  ["config", "string", "Configuration file (YAML or JSON, KubeletConfiguration). Flags win over it."],
  ["config-dir", "string", "Directory of *.conf files that are merged over the configuration file in lexical order."],
  ["kubeconfig", "string", "How to reach the API server; without it the agent runs standalone."],
  [
    "bootstrap-kubeconfig",
    "string",
    "Kubeconfig that a client certificate is requested with when --kubeconfig does not exist yet.",
  ],
  ["hostname-override", "string", "Name of the node instead of the host's name."],
  [
    "node-ip",
    "string",
    "Address of the node: one IP, 0.0.0.0 or :: to prefer a family, or an IPv4 and an IPv6 address with a comma.",
  ],
  ["cert-dir", "string", "Where certificates are kept.", "/var/lib/kubelet/pki"],
  ["cloud-provider", "string", "Empty, or external for an external cloud provider."],
  ["root-dir", "string", "Where the agent keeps pods, volumes and state.", "/var/lib/kubelet"],
  ["seccomp-default", "bool", "Use RuntimeDefault for pods without a seccomp profile.", "false"],
  ["node-labels", "map", "Labels (key=value,…) the node registers with."],
  ["runtime-cgroups", "string", "Cgroup of the container runtime."],
  [
    "image-credential-provider-config",
    "string",
    "Configuration of credential provider plugins: a file or a directory.",
  ],
  ["image-credential-provider-bin-dir", "string", "Where credential provider plugins are."],
  ["lock-file", "string", "Alpha: file that is locked while the agent runs."],
  ["exit-on-lock-contention", "bool", "Alpha: exit when another process wants --lock-file.", "false"],
  ["minimum-container-ttl-duration", "duration", "Youngest age at which a dead container may be removed.", "0s", true],
  ["maximum-dead-containers-per-container", "int32", "Dead instances kept of each container.", "1", true],
  ["maximum-dead-containers", "int32", "Dead containers kept on the node; negative means no limit.", "-1", true],
  ["experimental-mounter-path", "string", "Path of a mount program.", undefined, true],
  [
    "experimental-allocatable-ignore-eviction",
    "bool",
    "Leave eviction thresholds out of the node's allocatable.",
    "false",
    true,
  ],
  ["housekeeping-interval", "duration", "How often container statistics are gathered.", "10s"],
];

/** Flags that the reference does not have; each is off unless it is given. */
const denolet: readonly OwnFlag[] = [
  [
    "denolet-eviction-ignore-page-cache",
    "bool",
    "Eviction: file cache in use counts as available memory, as the kernel takes it back when it must.",
    "false",
  ],
  [
    "denolet-eviction-psi",
    "map",
    "Eviction: percent of time lost for want of memory from which pods are evicted, such as memory.full.avg10=20 " +
    "(memory.some or memory.full; avg10, avg60 or avg300).",
  ],
  ["denolet-eviction-dry-run", "bool", "Eviction: evict nothing, tell in log and journal what would be.", "false"],
  [
    "denolet-eviction-static-pods",
    "bool",
    "Eviction: pods from files and URLs are evicted and turned away like others, unless their priority is critical.",
    "false",
  ],
  [
    "denolet-log-budget",
    "quantity",
    "Logs: most that all files of one running container's log may take, such as 100Mi; looked at each second, the oldest " +
    "lines go. 0 means no limit but containerLogMaxSize and containerLogMaxFiles.",
    "0",
  ],
];

// Flags of cAdvisor that the reference took over by mistake: read and without effect.
const cadvisor: readonly OwnFlag[] = ([
  ["application-metrics-count-limit", "int64", "100"],
  ["boot-id-file", "string", "/proc/sys/kernel/random/boot_id"],
  ["container-hints", "string", "/etc/cadvisor/container_hints.json"],
  ["containerd", "string", "/run/containerd/containerd.sock"],
  ["containerd-namespace", "string", "k8s.io"],
  ["enable-load-reader", "bool", "false"],
  ["event-storage-age-limit", "string", "default=0"],
  ["event-storage-event-limit", "string", "default=0"],
  ["global-housekeeping-interval", "duration", "1m0s"],
  ["log-cadvisor-usage", "bool", "false"],
  ["machine-id-file", "string", "/etc/machine-id,/var/lib/dbus/machine-id"],
  ["storage-driver-user", "string", "root"],
  ["storage-driver-password", "string", ""],
  ["storage-driver-host", "string", "localhost:8086"],
  ["storage-driver-db", "string", "cadvisor"],
  ["storage-driver-table", "string", "stats"],
  ["storage-driver-secure", "bool", "false"],
  ["storage-driver-buffer-duration", "duration", "1m0s"],
] as const).map(([name, kind, initial]) => [name, kind, "Has no effect.", initial, true]);

function ownDefinition(group: string) {
  return ([name, kind, about, initial, deprecated]: OwnFlag): FlagDefinition => ({
    name,
    kind,
    about,
    group,
    ...(initial === undefined ? {} : { initial }),
    ...(deprecated === undefined ? {} : { deprecated }),
  });
}

/** Flags of the command itself. */
const general: readonly FlagDefinition[] = [
  { name: "help", shorthand: "h", kind: "bool", about: "Show this help.", group: "General" },
  {
    name: "version",
    kind: "version",
    about: "Show the version; --version=raw shows every field of it.",
    group: "General",
  },
];

/** Defaults that a command line without --config has instead of the file's. */
const legacyInitial: Readonly<Record<string, string>> = {
  "anonymous-auth": "true",
  "authentication-token-webhook": "false",
  "authorization-mode": "AlwaysAllow",
  "read-only-port": "10255",
};

/** Every flag, grouped as help shows them. */
export const allFlags: readonly FlagDefinition[] = [
  ...general,
  ...own.map(ownDefinition("Start")),
  ...fieldGroups.flatMap(({ title, fields }) =>
    fields.flatMap((field): FlagDefinition[] => {
      const { flag, initial } = field;
      if (flag === undefined) return [];
      const shown = legacyInitial[flag.name] ?? (initial === undefined ? undefined : String(initial));
      return [{
        ...flag,
        about: field.about,
        field: field.path,
        group: title,
        ...(flag.name === "v" ? { shorthand: "v" } : {}),
        ...(shown === undefined ? {} : { initial: shown }),
      }];
    })
  ),
  ...denolet.map(ownDefinition("Of denolet alone")),
  ...cadvisor.map(ownDefinition("Of cAdvisor")),
];

const byName = new Map(allFlags.map((flag) => [flag.name, flag]));

/** The flag of a name; `_` counts as `-`. */
export function flagNamed(name: string): FlagDefinition | undefined {
  return byName.get(name.replaceAll("_", "-"));
}

/** The typed flags from values by name. */
export function toKubeletFlags(values: ReadonlyMap<string, Json>): KubeletFlags {
  const initial = (name: string): string => byName.get(name)?.initial ?? "";
  const text = (name: string): string => {
    const value = values.get(name);
    return typeof value === "string" ? value : initial(name);
  };
  const flag = (name: string): boolean => values.get(name) === true;
  const count = (name: string): number => {
    const value = values.get(name);
    return typeof value === "number" ? value : Number(initial(name));
  };
  const map = (name: string): Record<string, string> => {
    const found: Record<string, string> = {};
    const given = values.get(name);
    for (const key of typeof given === "object" && given !== null ? Object.keys(given) : []) {
      Object.defineProperty(found, key, { value: String(getKey(given, key)), enumerable: true });
    }
    return found;
  };
  return {
    config: text("config"),
    configDir: text("config-dir"),
    kubeconfig: text("kubeconfig"),
    bootstrapKubeconfig: text("bootstrap-kubeconfig"),
    hostnameOverride: text("hostname-override"),
    nodeIP: text("node-ip"),
    certDir: text("cert-dir"),
    cloudProvider: text("cloud-provider"),
    rootDir: text("root-dir"),
    seccompDefault: flag("seccomp-default"),
    nodeLabels: map("node-labels"),
    runtimeCgroups: text("runtime-cgroups"),
    imageCredentialProviderConfig: text("image-credential-provider-config"),
    imageCredentialProviderBinDir: text("image-credential-provider-bin-dir"),
    lockFile: text("lock-file"),
    exitOnLockContention: flag("exit-on-lock-contention"),
    minimumContainerTTLMs: parseDuration(text("minimum-container-ttl-duration")),
    maximumDeadContainersPerContainer: count("maximum-dead-containers-per-container"),
    maximumDeadContainers: count("maximum-dead-containers"),
    experimentalMounterPath: text("experimental-mounter-path"),
    experimentalAllocatableIgnoreEviction: flag("experimental-allocatable-ignore-eviction"),
    housekeepingIntervalMs: parseDuration(text("housekeeping-interval")),
    denoletEvictionIgnorePageCache: flag("denolet-eviction-ignore-page-cache"),
    denoletEvictionPsi: map("denolet-eviction-psi"),
    denoletEvictionDryRun: flag("denolet-eviction-dry-run"),
    denoletEvictionStaticPods: flag("denolet-eviction-static-pods"),
    denoletLogBudgetBytes: Number(valueBig(parseQuantity(text("denolet-log-budget")))),
  };
}
