import { type InterfaceAddress, nodeAddresses } from "../../managers/node/addresses.ts";
import { type Amount, nodeAllocatable, nodeCapacity } from "../../managers/node/allocatable.ts";
import { KubeletError } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import { isSubdomain } from "../kube/validation/names.ts";
import { hugePageSizeName } from "../pod/resources.ts";
import type { KubeletConfig } from "./config/kubelet_config.ts";
import { sysFacts } from "./sys_facts.ts";

/** What the agent finds out about its node at start; it does not change while the agent runs. */
export interface NodeFacts {
  readonly name: string;
  /** Primary first; empty when the node has none that is usable. */
  readonly ips: readonly string[];
  /** Bytes, whole CPUs. */
  readonly memory: number;
  readonly swap: number;
  readonly cpus: number;
  /** Processes that the kernel allows in all; undefined when it does not tell. */
  readonly pids?: number;
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /** Huge page sizes in the runtime's words (`2MB`). */
  readonly hugePageSizes: readonly string[];
  /** As the label `kubernetes.io/arch` has it. */
  readonly arch: string;
  /** The kernel's release. */
  readonly kernelVersion: string;
  readonly appArmor: boolean;
  /** Paths of this node's hardware that containers must not see. */
  readonly maskedPaths?: readonly string[];
  /** True when groups can limit swap (cgroup v2's memory.swap.max). */
  readonly swapController: boolean;
}

/**
 * The node's name: --hostname-override or the machine's, lower-cased and trimmed (features.md A9).
 * @throws KubeletError BadConfig for a machine whose name can be no node's
 */
export function nodeName(override: string, hostname: string): string {
  const name = (override || hostname).trim().toLowerCase();
  if (isSubdomain(name)) return name;
  throw new KubeletError(
    "BadConfig",
    `the machine's name ${
      JSON.stringify(name.slice(0, 80))
    } cannot be a node's name: give one with --hostname-override`,
  );
}

/** The hard thresholds of a configuration by signal. */
export function hardThresholds(config: Pick<KubeletConfig, "evictionThresholds">): Record<string, Amount> {
  return Object.fromEntries(
    config.evictionThresholds.filter((t) => t.gracePeriodMs === 0).map((t) => [t.signal, t.value]),
  );
}

/** Finds out what the node is. Rejects with code Host when procfs or the root directory's file system cannot be read. */
export async function nodeFacts(options: {
  host: Pick<Host, "capacity" | "space" | "readText" | "readDir" | "stat" | "hostname" | "procRoot">;
  log: Logger;
  config: KubeletConfig;
  rootDir: string;
  hostnameOverride: string;
  nodeIp: string;
  interfaces: () => readonly InterfaceAddress[];
  /** The machine's architecture in Deno's words. */
  arch: string;
  /** Directory of the memory controller's hierarchy on cgroup v2; undefined on v1. */
  memoryV2: string | undefined;
  /** Hard eviction thresholds do not lessen what pods may have (--experimental-allocatable-ignore-eviction). */
  ignoreEviction?: boolean;
}): Promise<NodeFacts> {
  const { host, config, rootDir, nodeIp } = options;
  const [{ memory, cpus, swap }, space, routes, kernel, sys, swapController, pids] = await Promise.all([
    host.capacity(),
    host.space(rootDir),
    // A node without IPv4 routes has no such table.
    host.readText(`${host.procRoot}/net/route`).catch(() => ""),
    host.readText(`${host.procRoot}/sys/kernel/osrelease`),
    sysFacts(host, options.log),
    options.memoryV2 === undefined ? false : limitsSwap(host, options.memoryV2),
    mostProcesses(host),
  ]);
  const machine = {
    memory,
    cpus,
    ...(config.localStorageCapacityIsolation ? { ephemeralStorage: space.total } : {}),
    hugePages: sys.hugePages,
  };
  return {
    name: nodeName(options.hostnameOverride, host.hostname()),
    ips: nodeAddresses({ nodeIp, interfaces: options.interfaces(), routes }),
    memory,
    swap,
    cpus,
    capacity: nodeCapacity(machine, config),
    allocatable: nodeAllocatable(machine, {
      systemReserved: config.systemReserved,
      kubeReserved: config.kubeReserved,
      evictionHard: options.ignoreEviction ? {} : hardThresholds(config),
      maxPods: config.maxPods,
      podsPerCore: config.podsPerCore,
    }),
    hugePageSizes: sys.hugePages.flatMap(({ size }) => hugePageSizeName(BigInt(size)) ?? []),
    arch: options.arch === "x86_64" ? "amd64" : options.arch === "aarch64" ? "arm64" : options.arch,
    kernelVersion: kernel.trim(),
    appArmor: sys.appArmor,
    maskedPaths: sys.maskedPaths,
    swapController,
    ...(pids === undefined ? {} : { pids }),
  };
}

type Files = Pick<Host, "readText" | "stat" | "procRoot">;

/** True when groups can limit swap. The root group has no such file on any machine, so the agent's own group is asked. */
async function limitsSwap(host: Files, memoryV2: string): Promise<boolean> {
  const own = /^0::(\/.*)$/m.exec(await host.readText(`${host.procRoot}/self/cgroup`))?.[1] ?? "/";
  return await host.stat(`${memoryV2}${own === "/" ? "" : own}/memory.swap.max`) !== undefined;
}

/** How many processes there can be: the lower of the kernel's two limits. */
async function mostProcesses(host: Files): Promise<number | undefined> {
  const limits = await Promise.all(["pid_max", "threads-max"].map(async (name) =>
    // Either may be missing, in a sandbox for one.
    Number(await host.readText(`${host.procRoot}/sys/kernel/${name}`).catch(() => ""))
  ));
  const known = limits.filter((limit) => Number.isSafeInteger(limit) && limit > 0);
  return known.length > 0 ? Math.min(...known) : undefined;
}
