import { posix } from "node:path";
import type { LoadedConfig } from "../config/load.ts";
import { localSocket } from "../../server/local/name.ts";
import type { PrivateMounts } from "../private_mounts.ts";
import { trailFile } from "../trail.ts";

/** The paths below which the agent may read and write; everything else is refused by the run-time. */
export interface FileAccess {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Programs besides those that every configuration may need; none when not given. */
  readonly run?: readonly string[];
}

/** What the paths follow from. */
export interface AccessFacts {
  readonly flags: LoadedConfig["flags"];
  /** Undefined when the configuration can't be loaded: the agent then only says so. */
  readonly config: LoadedConfig["config"] | undefined;
  readonly mounts: PrivateMounts;
  /** Programs that files of the configuration name, such as credential plugins; absolute paths. */
  readonly programs?: readonly string[];
  /** Files that the kubeconfig names; absolute paths. */
  readonly credentials?: readonly string[];
  /** Where relative paths start. */
  readonly cwd: string;
  /** systemd's socket; empty when there is none. */
  readonly notifySocket: string;
}

/** Files of the node that the agent reads whatever its configuration. */
const nodeFiles = [
  "/etc/hosts",
  "/etc/passwd",
  "/etc/machine-id",
  "/etc/os-release",
  "/usr/lib/os-release",
  // pull credentials for every pod
  "/root/.docker/config.json",
  "/.docker/config.json",
  "/root/.dockercfg",
  "/.dockercfg",
] as const;

/** Answers queries for the logs of the node's services; only where they are switched on. */
const journalctl = "/usr/bin/journalctl";

/** Links to the logs of containers, which log collectors look for. */
const logLinks = "/var/log/containers";

/**
 * The paths a configuration asks for (docs/permissions.md). Pure. A `/` is an honest answer to a configuration that
 * names it. Paths are absolute, without duplicates and without those that another one covers.
 */
export function accessOf(facts: AccessFacts): FileAccess {
  const { flags, config, mounts } = facts;
  const absolute = (path: string) => path === "" ? [] : [posix.resolve(facts.cwd, path)];
  const files = [flags.config, flags.configDir].flatMap(absolute);
  const interfaces = [mounts.procRoot, mounts.cgroupRoot, mounts.sysRoot];
  if (!config) return { read: covering([...files, ...interfaces]), write: [] };

  const owned = [
    flags.rootDir,
    flags.certDir,
    // one that is made by bootstrapping is written beside itself first
    flags.bootstrapKubeconfig === "" || flags.kubeconfig === "" ? "" : posix.dirname(flags.kubeconfig),
    flags.lockFile,
    config.podLogsDir,
    config.volumePluginDir,
    // the directory watcher opens a FIFO that lies among manifests for both directions, which frees it
    config.staticPodPath,
    flags.rootDir === "/var/lib/kubelet" ? logLinks : "",
    socketPath(config.containerRuntimeEndpoint),
    socketPath(config.imageServiceEndpoint),
    facts.notifySocket.startsWith("/") ? facts.notifySocket : "",
  ].flatMap(absolute);
  const write = [
    ...owned,
    mounts.cgroupRoot,
    // The rest of procfs may be read only: what is below <pid>/root would be the whole machine.
    `${mounts.procRoot}/self/fd`,
    `${mounts.procRoot}/self/oom_score_adj`,
    `${mounts.procRoot}/sys`,
  ];
  const read = [
    ...files,
    ...owned,
    ...interfaces,
    // out-of-memory kills; unlike the rest of what is in /dev it changes nothing to read it
    mounts.kernelLog,
    ...nodeFiles,
    ...[
      flags.kubeconfig,
      flags.bootstrapKubeconfig,
      ...(facts.credentials ?? []),
      flags.imageCredentialProviderConfig,
      flags.imageCredentialProviderBinDir,
      config.resolvConf,
      config.tlsCertFile,
      config.tlsPrivateKeyFile,
      config.authentication.x509.clientCAFile,
      // what /logs/ serves
      config.enableServer && config.enableSystemLogHandler ? "/var/log" : "",
    ].flatMap(absolute),
  ];
  const programs = [
    ...(facts.programs ?? []),
    ...(config.enableServer && config.enableSystemLogQuery ? [journalctl] : []),
  ];
  return { read: covering(read), write: covering(write), ...(programs.length > 0 ? { run: programs } : {}) };
}

/** A command that looks at an agent (mod/app/cli). */
export type Looking = "ps" | "logs" | "check" | "explain" | "explain config" | "completion";

/**
 * The paths that a command which only looks may use. Pure. It may write to nothing but sockets, which connecting to
 * them takes: the agent's local one, and for `check` the runtime's.
 * @param facts `config` only where the command reads the configuration
 * @param logsDir where `logs` finds logs
 */
export function accessOfLooking(command: Looking, facts: AccessFacts, logsDir?: string): FileAccess {
  const { flags, config, mounts } = facts;
  const absolute = (path: string) => path === "" ? [] : [posix.resolve(facts.cwd, path)];
  const files = [flags.config, flags.configDir].flatMap(absolute);
  const root = posix.resolve(facts.cwd, flags.rootDir);
  const socket = `${root}/${localSocket}`;
  switch (command) {
    case "completion":
      return { read: [], write: [] };
    case "explain config":
      return { read: covering(files), write: [] };
    case "ps":
      return { read: [socket], write: [socket] };
    case "explain":
      return { read: covering([socket, `${root}/journal.jsonl`, `${root}/journal.jsonl.1`]), write: [socket] };
    case "logs": {
      const logs = logsDir ?? config?.podLogsDir ?? "/var/log/pods";
      return { read: covering([socket, `${root}/${trailFile}`, ...absolute(logs), ...files]), write: [socket] };
    }
    case "check": {
      const endpoint = config?.containerRuntimeEndpoint ?? "unix:///run/containerd/containerd.sock";
      const sockets = [socket, ...absolute(socketPath(endpoint))];
      const interfaces = [mounts.procRoot, mounts.cgroupRoot, mounts.sysRoot];
      return { read: covering([...files, ...interfaces, ...sockets]), write: covering(sockets) };
    }
  }
}

/** The path of a `unix:///path` endpoint, or of a plain path; empty for other kinds. */
function socketPath(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?/, "");
  return path.startsWith("/") ? path : "";
}

/** The paths in order, without those that lie below another one. */
function covering(paths: readonly string[]): string[] {
  const sorted = [...new Set(paths.map((path) => path.replace(/(.)\/+$/, "$1")))].sort();
  return sorted.filter((path) =>
    !sorted.some((other) => other !== path && path.startsWith(other === "/" ? "/" : `${other}/`))
  );
}

/** The run-time's flags for these paths: one each for reading, writing and programs. Commas in a path are doubled. */
export function accessFlags(access: FileAccess): string[] {
  const flag = (name: string, paths: readonly string[]) =>
    paths.length === 0 ? [] : [`--allow-${name}=${paths.map((path) => path.replaceAll(",", ",,")).join(",")}`];
  return [...flag("read", access.read), ...flag("write", access.write), ...flag("run", access.run ?? [])];
}
