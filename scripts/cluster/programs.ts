import { attempt } from "../lib/command.ts";
import { cacheDirectory, exists } from "../lib/files.ts";
import { print } from "../lib/print.ts";
import { goBuild } from "../node/go_build.ts";
import { ensureInstalled } from "../node/install.ts";

const pinned = "1.36.3";
const pinnedMetricsServer = "0.9.0";
const programs = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;

/** Where the programs of a control plane are. */
export interface ControlPlanePrograms {
  /** Directory of kube-apiserver, kube-controller-manager and kube-scheduler. */
  readonly directory: string;
  readonly etcd: string;
}

/**
 * Finds a control plane: in the directory that DENOLET_CONTROL_PLANE names, in PATH, where other suites of this machine
 * keep theirs, or in the cache directory, into which it is built from the Go module pinned in kubernetes/go.mod (6 to 8
 * minutes on two cores the first time). etcd is Debian's, or beside the others. Throws when the named directory lacks
 * something, or nothing can be installed or built.
 */
export async function ensureControlPlane(options: {
  cache?: string;
  log?: (line: string) => void;
} = {}): Promise<ControlPlanePrograms> {
  const named = Deno.env.get("DENOLET_CONTROL_PLANE");
  if (named) {
    const missing = [];
    for (const program of programs) if (!await exists(`${named}/${program}`)) missing.push(program);
    if (missing.length > 0) throw new Error(`DENOLET_CONTROL_PLANE: ${named} has no ${missing.join(", ")}`);
    return { directory: named, etcd: await etcdFor(named, options) };
  }
  const path = (Deno.env.get("PATH") ?? "").split(":").filter((directory) => directory !== "");
  const target = `${options.cache ?? cacheDirectory()}/kubernetes-${pinned}`;
  for (const directory of [...path, "/var/tmp/node-conformance/bin", target]) {
    if (await complete(directory)) return { directory, etcd: await etcdFor(directory, options) };
  }
  await build(target, programs, options);
  return { directory: target, etcd: await etcdFor(target, options) };
}

/**
 * Finds the real kubelet of the pinned version: where a control plane is looked for, or it is built into the cache
 * directory. Throws when the directory that DENOLET_CONTROL_PLANE names has none, or it cannot be built.
 */
export async function ensureKubelet(options: {
  cache?: string;
  log?: (line: string) => void;
} = {}): Promise<string> {
  const named = Deno.env.get("DENOLET_CONTROL_PLANE");
  if (named && !await exists(`${named}/kubelet`)) throw new Error(`DENOLET_CONTROL_PLANE: ${named} has no kubelet`);
  const path = (Deno.env.get("PATH") ?? "").split(":").filter((directory) => directory !== "");
  const target = `${options.cache ?? cacheDirectory()}/kubelet-${pinned}`;
  const places = named ? [named] : [...path, "/var/tmp/node-conformance/bin", target];
  for (const directory of places) if (await isPinned(`${directory}/kubelet`)) return `${directory}/kubelet`;
  if (named) throw new Error(`DENOLET_CONTROL_PLANE: ${named}/kubelet is not Kubernetes v${pinned}`);
  await build(target, ["kubelet"], options);
  return `${target}/kubelet`;
}

/** Finds kubectl: in PATH, of whatever version, or built of the pinned one into the cache directory. */
export async function ensureKubectl(options: {
  cache?: string;
  log?: (line: string) => void;
} = {}): Promise<string> {
  const target = `${options.cache ?? cacheDirectory()}/kubectl-${pinned}`;
  for (const program of ["kubectl", `${target}/kubectl`]) {
    if ((await attempt([program, "version", "--client"])).code === 0) return program;
  }
  await build(target, ["kubectl"], options);
  return `${target}/kubectl`;
}

/**
 * Finds metrics-server of the pinned version: where DENOLET_METRICS_SERVER says, in PATH, or it is built into the cache
 * directory (some three minutes on two cores the first time). Throws when it cannot be built.
 */
export async function ensureMetricsServer(options: {
  cache?: string;
  log?: (line: string) => void;
} = {}): Promise<string> {
  const named = Deno.env.get("DENOLET_METRICS_SERVER");
  if (named) return named;
  const target = `${options.cache ?? cacheDirectory()}/metrics-server-${pinnedMetricsServer}`;
  for (const program of ["metrics-server", `${target}/metrics-server`]) {
    const { code, stdout } = await attempt([program, "--version"]);
    if (code === 0 && stdout.trim() === `v${pinnedMetricsServer}`) return program;
  }
  await goBuild(target, {
    ...options,
    about: `building metrics-server ${pinnedMetricsServer} (some minutes, once)`,
    module: new URL("metrics_server", import.meta.url),
    packages: ["sigs.k8s.io/metrics-server/cmd/metrics-server"],
    settings: [`k8s.io/client-go/pkg/version.gitVersion=v${pinnedMetricsServer}`],
  });
  return `${target}/metrics-server`;
}

async function build(
  target: string,
  names: readonly string[],
  options: { cache?: string; log?: (line: string) => void },
): Promise<void> {
  const version = "k8s.io/component-base/version";
  const [major, minor] = pinned.split(".");
  await goBuild(target, {
    ...options,
    about: `building ${names.join(", ")} of Kubernetes ${pinned} (some minutes, once)`,
    module: new URL("kubernetes", import.meta.url),
    packages: names.map((name) => `k8s.io/kubernetes/cmd/${name}`),
    settings: [`${version}.gitVersion=v${pinned}`, `${version}.gitMajor=${major}`, `${version}.gitMinor=${minor}`],
  });
}

async function complete(directory: string): Promise<boolean> {
  for (const program of programs) if (!await exists(`${directory}/${program}`)) return false;
  return await isPinned(`${directory}/${programs[0]}`);
}

async function isPinned(program: string): Promise<boolean> {
  if (!await exists(program)) return false;
  const { code, stdout } = await attempt([program, "--version"]);
  return code === 0 && stdout.trim() === `Kubernetes v${pinned}`;
}

/** etcd beside the other programs, or Debian's, which is installed when it is missing. */
async function etcdFor(directory: string, options: { log?: (line: string) => void }): Promise<string> {
  if (await exists(`${directory}/etcd`)) return `${directory}/etcd`;
  await ensureInstalled({ ...options, more: [{ name: "etcd-server", files: [["/usr/bin/etcd"]] }] });
  return "/usr/bin/etcd";
}

if (import.meta.main) print((await ensureControlPlane({ log: print })).directory);
