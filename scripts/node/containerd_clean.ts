import { attempt } from "../lib/command.ts";
import { exists, namesIn, remove, unlessMissing } from "../lib/files.ts";
import { removeCgroup, removeEmptyCgroup } from "./cgroups.ts";
import { type Layout, pathsOf } from "./containerd_config.ts";
import { removeNatRules } from "./iptables.ts";
import { unmountBelow } from "./mounts.ts";
import { end, ended, identity, processes, type ProcessFacts, signal, withDescendants } from "./processes.ts";

/** What is left of a container in the runtime's state directory. */
interface Bundle {
  readonly id: string;
  readonly pid: number | undefined;
  readonly cgroup: string | undefined;
  readonly sockets: readonly string[];
}

/**
 * Removes all that a private containerd of this layout left, however it ended: the daemon, its shims and their
 * containers, control groups, network namespaces and other mounts below its directories, address and port rules, the
 * bridge, its directories. Nothing else is touched; a directory that it did not mark as its own is an error. Idempotent.
 */
export async function cleanContainerd(layout: Layout, options: { keepRoot?: boolean } = {}): Promise<void> {
  const paths = pathsOf(layout);
  for (const directory of [layout.root, layout.run]) await refuseForeign(directory, paths.marker(directory));
  const all = await processes();
  for (const daemon of all.filter((one) => isDaemon(one, paths.config))) await end(daemon.pid, 10_000);
  const bundles = await Promise.all(
    (await namesIn(paths.bundles)).map((id) => readBundle(`${paths.bundles}/${id}`, id)),
  );
  await endContainers(paths.socket, bundles);
  for (const bundle of bundles) {
    if (bundle.cgroup !== undefined) await removeCgroup(bundle.cgroup);
    for (const socket of bundle.sockets) await remove(socket);
  }
  // the parent of containers whose sandbox names no parent; other runtimes use it too, so only when it is empty
  await removeEmptyCgroup("/k8s.io");
  await unmountBelow(layout.run);
  await unmountBelow(layout.root);
  await removeNatRules(paths.network);
  await removeNetworkResults(paths.network, bundles.map((bundle) => bundle.id));
  if (await exists(`/sys/class/net/${layout.bridge}`)) await attempt(["ip", "link", "delete", layout.bridge]);
  await remove(layout.run);
  if (!options.keepRoot) await remove(layout.root);
}

/** Throws when another process that still runs uses the layout: cleaning up would take its runtime away. */
export async function assertUnused(layout: Layout): Promise<void> {
  const owner = (await unlessMissing(Deno.readTextFile(pathsOf(layout).owner)))?.trim();
  const pid = Number(owner?.split(" ")[0]);
  if (owner === undefined || !(pid > 0) || pid === Deno.pid || await identity(pid) !== owner) return;
  throw new Error(
    `private containerd ${layout.name} is in use by process ${pid}; wait for its end or choose another name`,
  );
}

/** What the CNI library keeps of each sandbox of the network, the loopback device's part included. */
async function removeNetworkResults(network: string, ids: readonly string[]): Promise<void> {
  const directory = "/var/lib/cni/results";
  const names = await namesIn(directory);
  const own = new RegExp(`^${network}-([0-9a-f]{64})-[a-z0-9]+$`);
  const sandboxes = new Set([...ids, ...names.flatMap((name) => own.exec(name)?.[1] ?? [])]);
  const loopback = /^cni-loopback-([0-9a-f]{64})-lo$/;
  for (const name of names) {
    if (own.test(name) || sandboxes.has(loopback.exec(name)?.[1] ?? "")) await remove(`${directory}/${name}`);
  }
}

async function refuseForeign(directory: string, marker: string): Promise<void> {
  if ((await namesIn(directory)).length === 0 || await exists(marker)) return;
  throw new Error(`private containerd: ${directory} is not empty and not ours (no ${marker}); choose another`);
}

function isDaemon(one: ProcessFacts, config: string): boolean {
  return /(^|\/)containerd$/.test(one.command[0] ?? "") && one.command.includes(config);
}

/** Kills the shims that report to this socket, what runs below them, and containers whose shim is gone. */
async function endContainers(socket: string, bundles: readonly Bundle[]): Promise<void> {
  const all = await processes();
  const shims = all.filter((one) => one.command[0]?.includes("containerd-shim") && one.command.includes(socket));
  const doomed = new Set(withDescendants(all, shims).map((one) => one.pid));
  for (const { id, pid } of bundles) {
    // the number may be another process's by now: its control group names the container
    if (pid !== undefined && (await unlessMissing(Deno.readTextFile(`/proc/${pid}/cgroup`)))?.includes(id)) {
      doomed.add(pid);
    }
  }
  for (const pid of doomed) signal(pid, "SIGKILL");
  for (const pid of doomed) await ended(pid, 10_000);
}

async function readBundle(directory: string, id: string): Promise<Bundle> {
  const pid = Number(await unlessMissing(Deno.readTextFile(`${directory}/init.pid`)));
  const address = await unlessMissing(Deno.readTextFile(`${directory}/address`)) ?? "";
  const bootstrap = await unlessMissing(Deno.readTextFile(`${directory}/bootstrap.json`)) ?? "";
  const sockets = [...`${address} ${bootstrap}`.matchAll(/unix:\/\/(\/run\/containerd\/s\/[0-9a-f]{64})/g)];
  return {
    id,
    pid: Number.isSafeInteger(pid) && pid > 1 ? pid : undefined,
    cgroup: await cgroupOf(`${directory}/config.json`, id),
    sockets: sockets.map(([, path]) => path ?? "").filter((path) => path !== ""),
  };
}

async function cgroupOf(spec: string, id: string): Promise<string | undefined> {
  const text = await unlessMissing(Deno.readTextFile(spec));
  if (text === undefined) return undefined;
  try {
    const path: unknown = JSON.parse(text)?.linux?.cgroupsPath;
    return typeof path === "string" && path.startsWith("/") && path.endsWith(id) ? path : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined; // written half when the runtime was killed
    throw thrown;
  }
}
