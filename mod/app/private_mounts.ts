import { run } from "../base/deno_run.ts";
import { KubeletError } from "../base/errors.ts";

/** Where the host's interface file systems can be read; the places everybody knows when nothing is bound. */
export interface PrivateMounts {
  readonly procRoot: string;
  readonly cgroupRoot: string;
  readonly sysRoot: string;
  /** The kernel's log; a machine may have none. */
  readonly kernelLog: string;
}

/** Where they are on every machine. */
export const usualPlaces: PrivateMounts = {
  procRoot: "/proc",
  cgroupRoot: "/sys/fs/cgroup",
  sysRoot: "/sys",
  kernelLog: "/dev/kmsg",
};

/** Where the private mounts and what else is the agent's for the time of a boot are, unless DENOLET_RUN says otherwise. */
export const defaultRunDir = "/run/denolet";

/** What is bound, and how: every launcher gets it from here. */
const binds = [
  { name: "proc", source: "/proc", option: "--bind" },
  { name: "cgroup", source: "/sys/fs/cgroup", option: "--rbind" },
  { name: "sys", source: "/sys", option: "--bind" },
  // A device: it is bound to a file, and left out on a machine (a container, mostly) that has none.
  { name: "kmsg", source: "/dev/kmsg", option: "--bind" },
] as const;

const mountProgram = "/usr/bin/mount";

/** What is at this path; undefined when there is nothing. */
async function deviceOf(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).dev;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
}

/** True when the run-time lets this process read /proc: it does under a complete permission set only, by path. */
function seesProc(): boolean {
  try {
    Deno.statSync("/proc/self/stat");
    return true;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotCapable || thrown instanceof Deno.errors.NotFound) return false;
    throw thrown;
  }
}

/**
 * Binds /proc, the cgroup hierarchies, /sys and /dev/kmsg below the run directory (DENOLET_RUN), since the run-time refuses those
 * paths under any but a complete permission set; idempotent, and safe when several agents start at once. The mounts are
 * slaves of the host's: nothing done here reaches those. Nothing is bound without root, with a complete permission set,
 * or when the environment says where they are (DENOLET_PROC, DENOLET_CGROUP, DENOLET_SYS and DENOLET_KMSG: a
 * unit with BindPaths=).
 */
export async function privateMounts(): Promise<PrivateMounts> {
  const given = {
    proc: Deno.env.get("DENOLET_PROC"),
    cgroup: Deno.env.get("DENOLET_CGROUP"),
    sys: Deno.env.get("DENOLET_SYS"),
    kmsg: Deno.env.get("DENOLET_KMSG"),
  };
  // Who gives the file systems and not the log does without it.
  const told = [given.proc, given.cgroup, given.sys].every((path) => path !== undefined);
  const own = !told && Deno.uid() === 0 && !seesProc();
  const runDir = Deno.env.get("DENOLET_RUN") ?? defaultRunDir;
  if (own && !runDir.startsWith("/")) throw new KubeletError("BadConfig", `DENOLET_RUN: ${runDir} is not absolute`);
  const wanted = own ? binds.filter(({ name }) => given[name] === undefined) : [];
  if (wanted.length > 0) await bindAll(runDir, wanted);
  const at = (name: keyof typeof given, usual: string) => given[name] ?? (own ? `${runDir}/${name}` : usual);
  const { procRoot, cgroupRoot, sysRoot, kernelLog } = usualPlaces;
  return {
    procRoot: at("proc", procRoot),
    cgroupRoot: at("cgroup", cgroupRoot),
    sysRoot: at("sys", sysRoot),
    kernelLog: at("kmsg", kernelLog),
  };
}

async function bindAll(runDir: string, wanted: readonly (typeof binds)[number][]): Promise<void> {
  await Deno.mkdir(runDir, { recursive: true });
  const base = await deviceOf(runDir);
  // a mount point is on another device than the directory above it
  const bound = async (name: string) => ![base, undefined].includes(await deviceOf(`${runDir}/${name}`));
  const missing = async () => {
    const answers = await Promise.all(wanted.map(({ name }) => bound(name)));
    return wanted.filter((_, at) => !answers[at]);
  };
  if ((await missing()).length === 0) return;
  using lock = await Deno.open(`${runDir}/.lock`, { write: true, create: true, mode: 0o600 });
  await lock.lock(true);
  for (const { name, source, option } of await missing()) {
    const target = `${runDir}/${name}`;
    const isFile = name === "kmsg";
    if (isFile) await Deno.writeFile(target, new Uint8Array(), { mode: 0o600 });
    else await Deno.mkdir(target, { recursive: true });
    const { code, stderr } = await run(mountProgram, ["-n", option, "--make-rslave", source, target], {
      env: { LC_ALL: "C" },
    });
    // Whoever reads the log is then told that there is none.
    if (code !== 0 && isFile) await Deno.remove(target);
    else if (code !== 0) throw new KubeletError("Host", `cannot bind ${source} to ${target}: ${stderr.trim()}`);
  }
}
