import { attempt, run } from "../../scripts/lib/command.ts";
import { exists, remove, repository } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";

/** The scripts that make and run the virtual machine; $DENOLET_VM, or what lies beside the repository. */
export const scripts = Deno.env.get("DENOLET_VM") || `${repository}/../shared/vm`;

/** A run directory and ports of our own, so that another machine may run beside ours. */
const env = {
  VM_RUN: `${Deno.env.get("VM_HOME") || "/var/tmp/node-vm"}/run-denolet-test`,
  VM_PORT_BASE: Deno.env.get("VM_PORT_BASE") || "21000",
  VM_TIMEOUT: Deno.env.get("VM_TIMEOUT") || "400",
};

/** Stops the machine of this test, if it is up. */
export async function down(): Promise<void> {
  if (await exists(`${scripts}/vm.sh`)) await run(["bash", `${scripts}/vm.sh`, "down"], { env });
}

/** A booted virtual machine: Debian with systemd as init, unified control groups and containerd. Stopped by `await using`. */
export class Machine implements AsyncDisposable {
  private constructor() {}

  /**
   * Boots it (and makes its disk, the first time). Each path appears read-only as /host/NAME inside. Throws with the
   * remedy when something is missing.
   */
  static async up(paths: readonly string[], print: (line: string) => void): Promise<Machine> {
    if (!await exists(`${scripts}/vm.sh`)) {
      throw new Error(`${scripts}/vm.sh is missing; set DENOLET_VM to the directory with vm.sh and build.sh`);
    }
    if ((await attempt(["qemu-system-x86_64", "--version"])).code !== 0) {
      throw new Error(
        "qemu-system-x86_64 is missing; apt-get install --no-install-recommends qemu-system-x86 debootstrap " +
          "e2fsprogs cpio kmod xz-utils openssh-client",
      );
    }
    await run(["bash", `${scripts}/build.sh`]);
    const said = await Deno.makeTempFile({ prefix: "denolet-vm-" });
    try {
      // Into a file: what stays in the background keeps standard output open.
      const up = 'exec bash "$0" up "$@" >"$SAID" 2>&1';
      const { code } = await attempt(["bash", "-c", up, `${scripts}/vm.sh`, ...paths], {
        env: { ...env, SAID: said },
        show: true,
      });
      const text = (await Deno.readTextFile(said)).trim();
      if (code !== 0) throw new Error(`the virtual machine did not boot: ${text}`);
      print(text);
      return new Machine();
    } finally {
      await remove(said);
    }
  }

  /** Where the agent's HTTPS port of the machine is reached from here. */
  get api(): string {
    return `https://127.0.0.1:${Number(env.VM_PORT_BASE) + 250}`;
  }

  /** Runs a shell script inside; what it writes. Throws unless it ends with code 0. */
  async sh(script: string): Promise<string> {
    return (await run(["bash", `${scripts}/vm.sh`, "exec", `set -eu\n${script}`], { env })).trimEnd();
  }

  /** Writes a file inside. */
  async write(path: string, text: string): Promise<void> {
    const local = await Deno.makeTempFile({ prefix: "denolet-vm-" });
    try {
      await Deno.writeTextFile(local, text);
      await run(["bash", `${scripts}/vm.sh`, "push", local, `${path}.part`], { env });
      await this.sh(`mv '${path}.part' '${path}'`);
    } finally {
      await remove(local);
    }
  }

  /** The texts of files inside, without blanks around; undefined for one that is not there. */
  async texts<K extends string>(paths: Readonly<Record<K, string>>): Promise<Record<K, string | undefined>> {
    const names = Object.keys(paths) as K[];
    const mark = crypto.randomUUID();
    const looks = names.map((name) =>
      `echo ${mark}; if [ -e '${paths[name]}' ]; then echo y; cat '${paths[name]}'; fi`
    );
    const parts = (await this.sh(looks.join("\n"))).split(mark).slice(1).map((part) => part.trim());
    const texts: Partial<Record<K, string | undefined>> = {};
    names.forEach((name, i) => {
      const part = parts[i] ?? "";
      texts[name] = part.startsWith("y") ? part.slice(1).trim() : undefined;
    });
    return texts as Record<K, string | undefined>;
  }

  /** Looks until `look` gives something; patient, because the machine is emulated. Seconds. */
  async until<T>(what: string, look: () => Promise<T | undefined | false>, within = 480): Promise<T> {
    return await waitFor(what, look, { within: within * 1000, every: 1000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await down();
  }
}
