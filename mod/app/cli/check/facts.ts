import { type RuntimeService, silenceOf } from "../../../../cri/api.ts";
import { detectCgroups } from "../../../../managers/cgroups/hierarchies.ts";
import type { Clock } from "../../../base/clock.ts";
import { messageOf } from "../../../base/errors.ts";
import type { FileKind, FsSpace, Host } from "../../../base/host.ts";
import { RecordingLogger } from "../../../base/log.ts";
import { value } from "../../../kube/quantity.ts";
import { cgroupDriver } from "../../cgroup_driver.ts";
import type { KubeletConfig } from "../../config/kubelet_config.ts";
import { mountOf } from "../../shared_root.ts";
import { swapDevices } from "../../start_checks.ts";
import type { CheckFacts } from "./types.ts";

export interface GatherOptions {
  /** Undefined when it cannot be used, for the reason in `configProblem`. */
  readonly config: KubeletConfig | undefined;
  readonly configProblem?: string;
  /** What loading it warned of. */
  readonly configWarnings?: readonly string[];
  /** Fields that it sets without effect, in words. */
  readonly configUnused?: readonly string[];
  /** The runtime's endpoint, also where the configuration cannot be used. */
  readonly endpoint: string;
  readonly rootDir: string;
  readonly agentRuns: boolean;
  readonly isRoot: boolean;
  readonly runtime: Pick<RuntimeService, "version" | "status" | "runtimeConfig">;
  readonly host: Host;
  readonly clock: Clock;
  /** Why a port cannot be listened on; undefined when it can. */
  readonly portProblem: (address: string, port: number) => string | undefined;
  readonly signal: AbortSignal;
}

/** How long the runtime may take for an answer, in milliseconds. */
const runtimeMs = 5000;

/** Programs that the agent runs. */
const programs = ["mount", "umount", "ln", "mkdir", "touch", "kill"].map((name) => `/usr/bin/${name}`);

const tunables = [
  "vm/overcommit_memory",
  "vm/panic_on_oom",
  "kernel/panic",
  "kernel/panic_on_oops",
  "kernel/pid_max",
  "net/ipv4/ip_forward",
  "fs/inotify/max_user_instances",
] as const;

/** Files that tell of a program which keeps the clock. */
const timeKeepers: readonly (readonly [path: string, name: string])[] = [
  ["/run/systemd/timesync/synchronized", "systemd-timesyncd"],
  ["/run/chrony/chronyd.pid", "chrony"],
  ["/run/chronyd.pid", "chrony"],
  ["/run/ntpd.pid", "ntpd"],
  ["/var/run/ntpd.pid", "ntpd"],
  ["/run/openntpd.pid", "openntpd"],
];

/** Finds out what `kubelet check` judges. Nothing is changed. Rejects only when the signal aborts. */
export async function gatherFacts(options: GatherOptions): Promise<CheckFacts> {
  const { config, host, agentRuns, isRoot, configProblem } = options;
  const [runtime, cgroups, swap, rootDir, settings, timeKeeper, missing] = await Promise.all([
    runtimeFacts(options),
    cgroupFacts(options),
    host.readText(`${host.procRoot}/swaps`).then(swapDevices, () => []),
    rootFacts(options),
    Promise.all(tunables.map(async (path) => [path, await textOr(host, `${host.procRoot}/sys/${path}`)] as const)),
    firstThere(host, timeKeepers),
    Promise.all(programs.map(async (path) => await isThere(host, path) ? [] : [path])),
  ]);
  return {
    ...(configProblem === undefined ? {} : { configProblem }),
    configWarnings: options.configWarnings ?? [],
    configUnused: options.configUnused ?? [],
    agentRuns,
    isRoot,
    runtime,
    cgroups,
    swap: { devices: swap, failOn: config?.failSwapOn ?? true },
    ports: portsOf(config).map((port) => {
      const error = options.portProblem(port.address, port.port);
      return error === undefined ? port : { ...port, error };
    }),
    rootDir,
    tunables: Object.fromEntries(settings),
    protectKernelDefaults: config?.protectKernelDefaults ?? false,
    timeKeeper,
    missingPrograms: missing.flat(),
  };
}

function portsOf(config: KubeletConfig | undefined): { what: string; address: string; port: number }[] {
  if (!config) return [];
  const { enableServer, address, port, readOnlyPort, healthzPort, healthzBindAddress } = config;
  return [
    ...(enableServer ? [{ what: "port", address, port }, { what: "readOnlyPort", address, port: readOnlyPort }] : []),
    { what: "healthzPort", address: healthzBindAddress, port: healthzPort },
  ].filter((each) => each.port > 0);
}

async function runtimeFacts(options: GatherOptions): Promise<CheckFacts["runtime"]> {
  const { endpoint, runtime, config, clock, signal } = options;
  const within = { signal, timeoutMs: runtimeMs };
  try {
    const { runtimeName: name, runtimeVersion: version } = await runtime.version(within);
    const { status } = await runtime.status({ verbose: false }, within);
    const complaint = (type: string): string | undefined => {
      const found = status?.conditions.find((one) => one.type === type);
      if (found?.status) return undefined;
      return found ? `${found.reason}: ${found.message}` : `it does not tell its condition ${type}`;
    };
    const [notReady, noNetwork] = [complaint("RuntimeReady"), complaint("NetworkReady")];
    const log = new RecordingLogger();
    if (config) await cgroupDriver({ runtime, configured: config.cgroupDriver, clock, log, signal });
    const said = log.lines.find(({ level }) => level === "error" || level === "warn");
    return {
      endpoint,
      name,
      version,
      ...(notReady === undefined ? {} : { notReady }),
      ...(noNetwork === undefined ? {} : { noNetwork }),
      ...(said ? { driverComplaint: { fatal: said.level === "error", text: said.message } } : {}),
    };
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return { endpoint, error: silenceOf(thrown) };
  }
}

async function cgroupFacts({ host, config }: GatherOptions): Promise<CheckFacts["cgroups"]> {
  try {
    const { version, roots } = await detectCgroups(host);
    const root = config?.cgroupRoot || "/";
    // A root of the systemd driver is a slice, which systemd makes when it is needed.
    const byPath = root.startsWith("/") && config?.cgroupDriver !== "systemd";
    const memory = roots.get("memory") ?? host.cgroupRoot;
    return {
      version,
      controllers: [...roots.keys()],
      failV1: config?.failCgroupV1 ?? true,
      root,
      rootThere: !byPath || root === "/" || await isThere(host, `${memory}${root}`),
    };
  } catch (thrown) {
    return { error: messageOf(thrown) };
  }
}

async function rootFacts({ host, rootDir, config }: GatherOptions): Promise<CheckFacts["rootDir"]> {
  let nearest = rootDir;
  let kind: FileKind | undefined;
  while ((kind = (await host.stat(nearest).catch(() => undefined))?.kind) === undefined && nearest !== "/") {
    nearest = nearest.slice(0, nearest.lastIndexOf("/")) || "/";
  }
  const real = await host.realPath(nearest).catch(() => nearest);
  const mounts = await host.mounts().catch(() => []);
  const mount = mountOf(real, mounts);
  const mountBelow = nearest === rootDir
    ? mounts.find(({ target }) => target.startsWith(`${real}/`))?.target
    : undefined;
  const space = await host.space(nearest).catch(() => undefined);
  return {
    path: rootDir,
    nearest,
    kind: kind ?? "directory",
    readOnly: mount?.options.includes("ro") ?? false,
    noexec: mount?.options.includes("noexec") ?? false,
    shared: mount?.propagation.some((field) => field.startsWith("shared:")) ?? false,
    ...(mountBelow === undefined ? {} : { mountBelow }),
    ...(space ? { space } : {}),
    short: space && config ? shortOf(space, config) : [],
  };
}

/** Hard thresholds of the node's file system that it is below. */
function shortOf(space: FsSpace, { evictionThresholds }: KubeletConfig): string[] {
  const amounts: Readonly<Record<string, { now: number; all: number }>> = {
    "nodefs.available": { now: space.available, all: space.total },
    "nodefs.inodesFree": { now: space.inodesFree, all: space.inodes },
  };
  return evictionThresholds.flatMap(({ signal, value: limit, gracePeriodMs }) => {
    const amount = Object.hasOwn(amounts, signal) ? amounts[signal] : undefined;
    // A file system without a count of inodes has none to run out of.
    if (!amount || gracePeriodMs !== 0 || amount.all === 0) return [];
    const least = "share" in limit ? limit.share * amount.all : value(limit.quantity);
    return amount.now < least ? [`${signal} is below its threshold`] : [];
  });
}

async function textOr(host: Host, path: string): Promise<string | undefined> {
  return await host.readText(path).then((text) => text.trim(), () => undefined);
}

async function isThere(host: Host, path: string): Promise<boolean> {
  return await host.stat(path).then((info) => info !== undefined, () => false);
}

async function firstThere(
  host: Host,
  list: readonly (readonly [path: string, name: string])[],
): Promise<string | undefined> {
  for (const [path, name] of list) if (await isThere(host, path)) return name;
  return undefined;
}
