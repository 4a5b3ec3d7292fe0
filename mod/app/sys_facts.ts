import { messageOf } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import { isMissing } from "../base/host_error.ts";
import type { Logger } from "../base/log.ts";

const hugePagesDir = "/sys/kernel/mm/hugepages";
const cpuDir = "/sys/devices/system/cpu";

/** Huge pages of one size. */
export interface HugePages {
  /** Bytes of a page. */
  readonly size: number;
  /** Bytes of all pages of this size. */
  readonly total: number;
}

/** What sysfs tells of the node; it does not change while the agent runs. */
export interface SysFacts {
  /** By size. */
  readonly hugePages: readonly HugePages[];
  /** Paths of this node's hardware that containers must not see, by CPU. */
  readonly maskedPaths: readonly string[];
  readonly appArmor: boolean;
}

/** Reads sysfs. What is not there the node does not have; so does, with a warning, what may not be read. */
export async function sysFacts(host: Pick<Host, "readText" | "readDir">, log: Logger): Promise<SysFacts> {
  const sys = new Sysfs(host, log);
  const [hugePages, maskedPaths, appArmor] = await Promise.all([
    readHugePages(sys),
    thermalPaths(sys),
    sys.text("/sys/module/apparmor/parameters/enabled"),
  ]);
  return { hugePages, maskedPaths, appArmor: appArmor.trim() === "Y" };
}

class Sysfs {
  constructor(readonly host: Pick<Host, "readText" | "readDir">, readonly log: Logger) {}

  /** "" when there is nothing to read. */
  text(path: string): Promise<string> {
    return this.#read(path, () => this.host.readText(path), "");
  }

  /** None when there is no such directory. */
  names(path: string): Promise<string[]> {
    return this.#read(path, async () => (await this.host.readDir(path)).map(({ name }) => name), []);
  }

  async #read<T>(path: string, read: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await read();
    } catch (thrown) {
      if (!isMissing(thrown)) {
        this.log.warn("a fact of the node cannot be read; it counts as not there", { path, error: messageOf(thrown) });
      }
      return otherwise;
    }
  }
}

async function readHugePages(sys: Sysfs): Promise<HugePages[]> {
  const found: HugePages[] = [];
  for (const name of await sys.names(hugePagesDir)) {
    const size = Number(/^hugepages-(\d{1,12})kB$/.exec(name)?.[1] ?? 0) * 1024;
    if (size === 0) continue;
    const count = Number(
      /^\d{1,12}$/.exec((await sys.text(`${hugePagesDir}/${name}/nr_hugepages`)).trim())?.[0] ?? 0,
    );
    found.push({ size, total: Math.min(size * count, Number.MAX_SAFE_INTEGER) });
  }
  return found.sort((a, b) => a.size - b.size);
}

/** What the CPUs tell of their heat, which shows what other containers do. */
async function thermalPaths(sys: Sysfs): Promise<string[]> {
  const cpus = (await sys.names(cpuDir)).flatMap((name) => /^cpu(\d{1,6})$/.exec(name)?.[1] ?? []).map(Number);
  const found: string[] = [];
  for (const cpu of cpus.sort((a, b) => a - b)) {
    const below = await sys.names(`${cpuDir}/cpu${cpu}`);
    if (below.includes("thermal_throttle")) found.push(`${cpuDir}/cpu${cpu}/thermal_throttle`);
  }
  return found;
}
