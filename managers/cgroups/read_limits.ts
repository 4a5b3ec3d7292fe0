import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { GroupState } from "../../mod/pod/resize/group_plan.ts";
import { cpuSharesOfWeight, defaultCpuPeriodUs } from "../../mod/pod/resources.ts";
import type { GroupTree } from "./hierarchies.ts";

type Reader = Pick<Host, "readText">;

/** From here on a limit of v1 means that there is none: the kernel rounds its greatest number to pages. */
const noLimit = 2n ** 62n;

function fileOf(tree: GroupTree, path: string, controller: string, file: string): string {
  const root = tree.roots.get(controller);
  if (root === undefined) throw new Error(`the machine has no controller ${controller}`);
  return `${root}${path}/${controller}.${file}`;
}

/** The limits that a group has. @throws KubeletError Cgroup when they cannot be read */
export async function readGroupState(host: Reader, tree: GroupTree, path: string): Promise<GroupState> {
  const read = async (controller: string, file: string) =>
    (await host.readText(fileOf(tree, path, controller, file))).trim();
  try {
    if (tree.version === 2) {
      const [max, cpu, weight] = await Promise.all([read("memory", "max"), read("cpu", "max"), read("cpu", "weight")]);
      const [quota = "max", period = String(defaultCpuPeriodUs)] = cpu.split(/\s+/);
      return {
        memoryLimit: max === "max" ? undefined : BigInt(max),
        cpuQuota: quota === "max" ? -1 : Number(quota),
        cpuPeriod: Number(period),
        cpuShares: cpuSharesOfWeight(Number(weight)),
      };
    }
    const [limit, quota, period, shares] = await Promise.all([
      read("memory", "limit_in_bytes"),
      read("cpu", "cfs_quota_us"),
      read("cpu", "cfs_period_us"),
      read("cpu", "shares"),
    ]);
    const bytes = BigInt(limit);
    return {
      memoryLimit: bytes < 0n || bytes >= noLimit ? undefined : bytes,
      cpuQuota: Number(quota),
      cpuPeriod: Number(period),
      cpuShares: Number(shares),
    };
  } catch (thrown) {
    throw new KubeletError("Cgroup", `cgroup ${path}: its limits cannot be read: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Memory that a group uses, bytes; undefined when it cannot be read. */
export async function memoryUsed(host: Reader, tree: GroupTree, path: string): Promise<bigint | undefined> {
  try {
    const file = tree.version === 2 ? "current" : "usage_in_bytes";
    return BigInt((await host.readText(fileOf(tree, path, "memory", file))).trim());
  } catch {
    // The caller tells that it is not known.
    return undefined;
  }
}
