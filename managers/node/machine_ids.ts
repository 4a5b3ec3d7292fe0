import type { Host } from "../../mod/base/host.ts";

/** What tells this machine and this start of it from others. */
export interface MachineIds {
  readonly machineID: string;
  readonly systemUUID: string;
  readonly bootID: string;
  /** The name that the operating system gives itself. */
  readonly osImage: string;
}

/** Where to read them; the first that is there counts. */
const machineIdFiles = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
const releaseFiles = ["/etc/os-release", "/usr/lib/os-release"];

/** Reads what identifies the machine; what cannot be read is empty, and "Linux" for the system's name. */
export async function machineIds(host: Pick<Host, "readText" | "procRoot">): Promise<MachineIds> {
  const first = async (paths: readonly string[]): Promise<string> => {
    for (const path of paths) {
      const text = await host.readText(path).catch(() => undefined);
      if (text !== undefined) return text.replaceAll("\0", "").trim();
    }
    return "";
  };
  const [machineID, systemUUID, bootID, release] = await Promise.all([
    first(machineIdFiles),
    first([
      "/sys/class/dmi/id/product_uuid",
      `${host.procRoot}/device-tree/system-id`,
      `${host.procRoot}/device-tree/vm,uuid`,
      "/etc/machine-id",
    ]),
    first([`${host.procRoot}/sys/kernel/random/boot_id`]),
    first(releaseFiles),
  ]);
  return { machineID, systemUUID, bootID, osImage: osName(release) };
}

/** PRETTY_NAME of an os-release file, without quotes. */
export function osName(release: string): string {
  const value = /^PRETTY_NAME=(.*)$/m.exec(release)?.[1]?.trim() ?? "";
  return value.replace(/^(["'])(.*)\1$/, "$2") || "Linux";
}
