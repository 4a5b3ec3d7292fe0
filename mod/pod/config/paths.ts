/** Every path of the agent on the node (runtime-contract.md section 2), refused when a name could lead elsewhere. */
import { KubeletError } from "../../base/errors.ts";

/** A file name has at most so many bytes on the usual file systems. */
const longestName = 255;
const utf8 = new TextEncoder();

/** What pod paths need of a pod. */
export interface PodNames {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
}

/** A name as one path element. Throws BadPod when it isn't one: empty, `.`, `..`, with `/` or a zero byte, too long. */
export function pathElement(name: string, what: string): string {
  const bad = name === "" || name === "." || name === ".." || /[/\0]/.test(name) ||
    utf8.encode(name).length > longestName;
  if (!bad) return name;
  throw new KubeletError(
    "BadPod",
    `${what} ${JSON.stringify(name.slice(0, 80))} can't be part of a path; ` +
      `it must be 1 to ${longestName} bytes without "/" and not "." or ".."`,
  );
}

/** A relative path of a spec below a directory. Throws BadPod when it is absolute or climbs out with `..`. */
export function pathBelow(dir: string, relative: string, what: string): string {
  const parts = relative.split("/").filter((part) => part !== "" && part !== ".");
  if (relative.startsWith("/") || parts.includes("..") || relative.includes("\0")) {
    throw new KubeletError(
      "BadPod",
      `${what} ${JSON.stringify(relative.slice(0, 80))} must be a relative path without ".."`,
    );
  }
  return parts.length === 0 ? dir : `${dir}/${parts.join("/")}`;
}

/** A plugin's name as a directory: `kubernetes.io/empty-dir` is `kubernetes.io~empty-dir`. */
function pluginElement(plugin: string): string {
  return pathElement(plugin.replaceAll("/", "~"), "volume plugin");
}

/** Directories and files below the root directory (mode 0750 unless said otherwise). */
export const rootPaths = {
  pods: (root: string): string => `${root}/pods`,
  plugins: (root: string): string => `${root}/plugins`,
  pluginRegistration: (root: string): string => `${root}/plugins_registry`,
  podResources: (root: string): string => `${root}/pod-resources`,
  devicePlugins: (root: string): string => `${root}/device-plugins`,
  /** Mode 0700, only with the ContainerCheckpoint gate. */
  checkpoints: (root: string): string => `${root}/checkpoints`,
  seccomp: (root: string): string => `${root}/seccomp`,
  podsApi: (root: string): string => `${root}/pods-api`,
  pki: (root: string): string => `${root}/pki`,
  imageManager: (root: string, kind: "pulling" | "pulled"): string => `${root}/image_manager/${kind}`,
  cpuManagerState: (root: string): string => `${root}/cpu_manager_state`,
  memoryManagerState: (root: string): string => `${root}/memory_manager_state`,
  draManagerState: (root: string): string => `${root}/dra_manager_state`,
  draHealthState: (root: string): string => `${root}/dra_health_state`,
  allocatedPodsState: (root: string): string => `${root}/allocated_pods_state`,
  actuatedPodsState: (root: string): string => `${root}/actuated_pods_state`,
  shutdownState: (root: string): string => `${root}/graceful_node_shutdown_state`,
  deviceCheckpoint: (root: string): string => `${root}/device-plugins/kubelet_internal_checkpoint`,
} as const;

/** A checkpoint archive. @param at RFC 3339 time */
export function checkpointPath(root: string, pod: PodNames, container: string, at: string): string {
  const { name, namespace } = pod.metadata;
  const file = pathElement(`checkpoint-${name}_${namespace}-${container}-${at}.tar`, "checkpoint");
  return `${rootPaths.checkpoints(root)}/${file}`;
}

/** `<root>/pods/<uid>`. */
export function podDir(root: string, uid: string): string {
  return `${rootPaths.pods(root)}/${pathElement(uid, "pod UID")}`;
}

export function podVolumesDir(root: string, uid: string): string {
  return `${podDir(root, uid)}/volumes`;
}

/** @param plugin such as `kubernetes.io/empty-dir` */
export function podVolumeDir(root: string, uid: string, plugin: string, volume: string): string {
  return `${podVolumesDir(root, uid)}/${pluginElement(plugin)}/${pathElement(volume, "volume")}`;
}

export function podPluginsDir(root: string, uid: string): string {
  return `${podDir(root, uid)}/plugins`;
}

export function podPluginDir(root: string, uid: string, plugin: string): string {
  return `${podPluginsDir(root, uid)}/${pluginElement(plugin)}`;
}

/** The link to a block volume's device. */
export function podVolumeDevice(root: string, uid: string, plugin: string, volume: string): string {
  return `${podDir(root, uid)}/volumeDevices/${pluginElement(plugin)}/${pathElement(volume, "volume")}`;
}

/** Where sub paths of the pod's volumes are bind-mounted. */
export function podSubPathsDir(root: string, uid: string): string {
  return `${podDir(root, uid)}/volume-subpaths`;
}

/** @param index the mount's place in the container's volumeMounts */
export function podSubPath(root: string, uid: string, volume: string, container: string, index: number): string {
  const dir = `${podSubPathsDir(root, uid)}/${pathElement(volume, "volume")}`;
  return `${dir}/${pathElement(container, "container")}/${index}`;
}

export function containerDir(root: string, uid: string, container: string): string {
  return `${podDir(root, uid)}/containers/${pathElement(container, "container")}`;
}

/** The termination message file of one start (mode 0666). @param random 32 random bits */
export function terminationFile(root: string, uid: string, container: string, random: number): string {
  return `${containerDir(root, uid, container)}/${(random >>> 0).toString(16).padStart(8, "0")}`;
}

/** The pod's hosts file (mode 0644). */
export function etcHostsFile(root: string, uid: string): string {
  return `${podDir(root, uid)}/etc-hosts`;
}

/** The pod's user namespace record. */
export function usernsFile(root: string, uid: string): string {
  return `${podDir(root, uid)}/userns`;
}

/** `<podLogsDir>/<ns>_<name>_<uid>` (mode 0755). */
export function podLogDir(podLogsDir: string, pod: PodNames): string {
  const { namespace, name, uid } = pod.metadata;
  return `${podLogsDir}/${pathElement(`${namespace}_${name}_${uid}`, "pod log directory")}`;
}

/** `podLogDir`; undefined for a pod whose names are too long for one, which therefore never had any. */
export function podLogDirIfAny(podLogsDir: string, pod: PodNames): string | undefined {
  const { namespace, name, uid } = pod.metadata;
  return utf8.encode(`${namespace}_${name}_${uid}`).length > longestName ? undefined : podLogDir(podLogsDir, pod);
}

/** The pod UID that a log directory's name ends with. */
export function uidOfLogDir(name: string): string {
  return name.slice(name.lastIndexOf("_") + 1);
}

export function containerLogDir(podLogsDir: string, pod: PodNames, container: string): string {
  return `${podLogDir(podLogsDir, pod)}/${pathElement(container, "container")}`;
}

/** The CRI log path, relative to the pod's log directory. */
export function containerLogPath(container: string, restartCount: number): string {
  return `${pathElement(container, "container")}/${restartCount}.log`;
}

export function containerLogFile(podLogsDir: string, pod: PodNames, container: string, restartCount: number): string {
  return `${podLogDir(podLogsDir, pod)}/${containerLogPath(container, restartCount)}`;
}

/** The restart count that a log file's name tells, also of a rotated one; undefined for other names. */
export function restartCountOfLog(name: string): number | undefined {
  const match = /^(\d{1,9})\.log(\.|$)/.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** Cuts a text to so many bytes without leaving half a character. */
function cutBytes(text: string, most: number): string {
  const bytes = utf8.encode(text);
  if (bytes.length <= most) return text;
  let end = most;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end));
}

/** The legacy link to a container's log: `<dir>/<name>_<ns>_<container>-<id>.log`, its name cut to 255 bytes. */
export function legacyLogLink(dir: string, pod: PodNames, container: string, containerId: string): string {
  const { name, namespace } = pod.metadata;
  const base = cutBytes(`${name}_${namespace}_${container}-${containerId}`, longestName - ".log".length);
  return `${dir}/${pathElement(`${base}.log`, "log link")}`;
}

/** The container id in a legacy link's name; undefined when the name holds none that is long enough to be one. */
export function containerIdOfLegacyLink(link: string): string | undefined {
  const tail = link.slice(link.lastIndexOf("-") + 1);
  const id = tail.endsWith(".log") ? tail.slice(0, -".log".length) : "";
  return id.length < 6 ? undefined : id;
}
