import type { Volume } from "../../mod/kube/types.ts";
import { parseQuantity, valueBig } from "../../mod/kube/quantity.ts";
import { podPluginDir } from "../../mod/pod/config/paths.ts";
import { podLimits } from "../../mod/pod/resources.ts";
import { hugePageSize, isHugePages } from "./huge_pages.ts";
import { giveToGroup } from "./ownership.ts";
import { type SetUpContext, volumeKind, type VolumePlugin, VolumeSpecError } from "./plugin.ts";

const pluginName = "kubernetes.io/empty-dir";

/** What the node tells about memory-backed volumes. */
export interface MemoryVolumes {
  /** Bytes of the node's allocatable memory; 0 or undefined when not known. */
  readonly allocatableMemory?: () => bigint;
  /** True when the kernel's tmpfs knows `noswap`. */
  readonly noswap?: boolean;
}

/** Whether the tmpfs of a kernel (its release, such as 6.1.0-25-amd64) knows `noswap`: from 6.4 on. */
export function knowsNoswap(kernelVersion: string): boolean {
  const [major = 0, minor = 0] = kernelVersion.split(".").map((part) => parseInt(part, 10));
  return major > 6 || (major === 6 && minor >= 4);
}

/** Bytes of a memory-backed volume: the smallest of node allocatable, pod limit and sizeLimit; 0 when none is set. */
export function memoryVolumeSize(context: SetUpContext, memory: MemoryVolumes): bigint {
  const limit = sizeLimitOf(context.volume) ?? 0n;
  const bounds = [memory.allocatableMemory?.() ?? 0n, podLimits(context.pod).memory ?? 0n, limit].filter((b) => b > 0n);
  return bounds.length === 0 ? 0n : bounds.reduce((a, b) => a < b ? a : b);
}

/** Bytes of an emptyDir's sizeLimit; undefined when it has none. Throws BadPod on a bad quantity. */
export function sizeLimitOf(volume: Volume): bigint | undefined {
  const text = volume.emptyDir?.sizeLimit;
  if (text === undefined) return undefined;
  return valueBig(parseQuantity(text, { what: `volume ${volume.name} emptyDir.sizeLimit`, code: "BadPod" }));
}

/** Makes a directory with exactly this mode unless it is there. */
export async function makeDirectory({ host, dir }: SetUpContext): Promise<void> {
  const info = await host.lstat(dir);
  if (info && info.kind !== "directory") {
    throw new VolumeSpecError(`${dir} is in the way: it is no directory but a ${info.kind}; remove it`);
  }
  await host.mkdir(dir.slice(0, dir.lastIndexOf("/")), { mode: 0o750 });
  await host.mkdir(dir, { mode: 0o777 });
  await host.chmod(dir, 0o777);
}

/** The type of the newest file system that is mounted at the volume's directory; undefined when none is. */
export async function mountedType({ host, dir }: SetUpContext): Promise<string | undefined> {
  if (!await host.lstat(dir)) return undefined;
  // The table names places by their true path.
  const real = await host.realPath(dir);
  return (await host.mounts()).findLast((m) => m.target === real)?.type;
}

/** Makes a hugetlbfs at the volume's directory unless one is mounted there. Returns true when it made one. */
async function makeHugetlbfs(context: SetUpContext, pageSize: string): Promise<boolean> {
  if (await mountedType(context) === "hugetlbfs") return false;
  await makeDirectory(context);
  const { host, dir } = context;
  await host.mount({ source: "nodev", target: dir, type: "hugetlbfs", options: [`pagesize=${pageSize}`] });
  await host.chmod(dir, 0o777);
  return true;
}

/** Makes a tmpfs at the volume's directory unless one is mounted there. Returns true when it made one. */
export async function makeTmpfs(context: SetUpContext, memory: MemoryVolumes): Promise<boolean> {
  const { host, dir } = context;
  if (await mountedType(context) === "tmpfs") return false;
  await makeDirectory(context);
  const size = memoryVolumeSize(context, memory);
  const options = [...size > 0n ? [`size=${size}`] : [], ...memory.noswap ? ["noswap"] : []];
  await host.mount({ source: "tmpfs", target: dir, type: "tmpfs", options });
  return true;
}

/** Gives a volume of the pod's own to its fsGroup; fsGroupChangePolicy is for volumes that outlive pods. */
export async function giveVolume(context: SetUpContext, readOnly: boolean): Promise<void> {
  const { host, clock, dir, podUid, pod, signal } = context;
  const gid = pod.spec.securityContext?.fsGroup;
  const onSlow = (message: string) => context.warn("VolumePermissionChangeInProgress", message);
  await giveToGroup({ host, clock, dir, podUid, gid, readOnly, signal, onSlow });
}

/** Directories that live as long as the pod, on disk or in memory (features.md section 11). */
export function emptyDirPlugin(memory: MemoryVolumes = {}): VolumePlugin {
  return {
    name: pluginName,
    live: false,
    canSupport: (volume) => volumeKind(volume) === "emptyDir",
    async setUp(context) {
      const { host, volume, pod, dir, rootDir, podUid } = context;
      const medium = volume.emptyDir?.medium ?? "";
      sizeLimitOf(volume);
      // The mark says that the directory was finished: containers may have changed its mode since.
      const mark = `${podPluginDir(rootDir, podUid, pluginName)}/${volume.name}`;
      const ready = await host.lstat(`${mark}/ready`) !== undefined;
      let fresh = false;
      if (medium === "") {
        fresh = !ready || !await host.lstat(dir);
        if (fresh) await makeDirectory(context);
      } else if (medium === "Memory") {
        fresh = await makeTmpfs(context, memory) || !ready;
      } else if (isHugePages(medium)) {
        fresh = await makeHugetlbfs(context, hugePageSize(pod, medium)) || !ready;
      } else {
        const remedy = 'use "", Memory, HugePages or HugePages-SIZE';
        throw new VolumeSpecError(`unknown storage medium ${JSON.stringify(medium)}: ${remedy}`);
      }
      if (fresh) await giveVolume(context, false);
      if (!ready) {
        await host.mkdir(mark, { mode: 0o750 });
        await host.write(`${mark}/ready`, "", { mode: 0o600 });
      }
      return { name: volume.name, hostPath: dir, readOnly: false, selinuxRelabel: true };
    },
  };
}
