import { messageOf } from "../../mod/base/errors.ts";
import { RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { run } from "../lib/command.ts";
import { namesIn, unlessMissing, writeWhole } from "../lib/files.ts";
import { GiveUp, waitFor } from "../lib/wait.ts";
import { BareCri } from "./bare_cri.ts";
import { assertUnused, cleanContainerd } from "./containerd_clean.ts";
import {
  checkLayout,
  cniConfig,
  containerdConfig,
  type ContainerdVersion,
  type Layout,
  pathsOf,
} from "./containerd_config.ts";
import { buildImages, type BuiltImage } from "./images.ts";
import { end, ended, identity, processFacts, signal } from "./processes.ts";

/** How to start a private containerd. `name` makes it different from others beside it; the rest follows from it. */
export interface ContainerdOptions extends Partial<Omit<Layout, "name">> {
  readonly name: string;
  /** 'debian' (containerd 1.6 of the package) when not given; 'v2' needs `binDir` (see containerd2.ts). */
  readonly version?: ContainerdVersion;
  /** Directory of containerd, ctr and containerd-shim-runc-v2; /usr/bin when not given. */
  readonly binDir?: string;
  /** Whether pods reach what lies beyond the host; false when not given. */
  readonly masquerade?: boolean;
  /** Told of each step. */
  readonly log?: (line: string) => void;
}

/** The directories, bridge and subnet that follow from the options; `used` are subnets that others have. */
export function layoutOf(options: ContainerdOptions, used: ReadonlySet<string> = new Set()): Layout {
  const number = [...options.name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  return {
    name: options.name,
    root: options.root ?? `/var/lib/denolet-node.${options.name}`,
    run: options.run ?? `/run/denolet-${options.name}`,
    bridge: options.bridge ?? `dl${number.toString(36)}`,
    subnet: options.subnet ?? freeSubnet(number, used),
  };
}

/** One of the 256 /20 networks of 10.112.0.0/12, which is not what others use by habit. */
function freeSubnet(start: number, used: ReadonlySet<string>): string {
  for (let i = 0; i < 256; i++) {
    const at = (start + i) % 256;
    const subnet = `10.${112 + (at >>> 4)}.${(at % 16) * 16}.0/20`;
    if (!used.has(subnet)) return subnet;
  }
  throw new Error("private containerd: all subnets of 10.112.0.0/12 are taken; give one");
}

/** Subnets in the network configurations of the other private runtimes. */
async function usedSubnets(name: string): Promise<Set<string>> {
  const used = new Set<string>();
  for (
    const directory of (await namesIn("/run")).filter((one) => one.startsWith("denolet-") && one !== `denolet-${name}`)
  ) {
    for (const file of await namesIn(`/run/${directory}/net.d`)) {
      const text = await unlessMissing(Deno.readTextFile(`/run/${directory}/net.d/${file}`)) ?? "";
      for (const [, subnet] of text.matchAll(/"subnet":"([^"]+)"/g)) used.add(subnet ?? "");
    }
  }
  return used;
}

/**
 * Starts a private containerd with directories, socket, network and bridge of its own, and waits until it is ready
 * (30 s at most). What an earlier run of the same layout left is cleaned up first. Needs root.
 * Throws with the end of containerd's log when it does not come up; nothing is left then.
 */
export async function startContainerd(options: ContainerdOptions): Promise<Containerd> {
  const layout = layoutOf(options, await usedSubnets(options.name));
  checkLayout(layout);
  await assertUnused(layout);
  await cleanContainerd(layout);
  const paths = pathsOf(layout);
  for (const directory of [layout.root, layout.run]) {
    await Deno.mkdir(directory, { recursive: true, mode: 0o711 });
    await Deno.writeTextFile(paths.marker(directory), `${layout.name}\n`);
  }
  await Deno.writeTextFile(paths.owner, `${await identity(Deno.pid)}\n`);
  await Deno.mkdir(paths.cni, { recursive: true });
  await writeWhole(
    `${paths.cni}/10-${layout.name}.conflist`,
    cniConfig(layout, { masquerade: options.masquerade ?? false }),
  );
  await writeWhole(paths.config, containerdConfig(options.version ?? "debian", layout));
  const containerd = new Containerd(layout, options.binDir ?? "/usr/bin", options.log ?? (() => {}));
  try {
    await containerd.start();
    return containerd;
  } catch (thrown) {
    await containerd.stop();
    throw thrown;
  }
}

/** A private containerd that runs. */
export class Containerd implements AsyncDisposable {
  readonly socket: string;
  /** The socket as containerRuntimeEndpoint wants it. */
  readonly endpoint: string;
  readonly logFile: string;
  #process: Deno.ChildProcess | undefined;

  constructor(readonly layout: Layout, readonly binDir: string, private readonly log: (line: string) => void) {
    const paths = pathsOf(layout);
    this.socket = paths.socket;
    this.endpoint = `unix://${paths.socket}`;
    this.logFile = paths.log;
  }

  /** Process id of the daemon; 0 while it is down. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Whether the daemon's process is there. */
  async alive(): Promise<boolean> {
    return this.pid !== 0 && await processFacts(this.pid) !== undefined;
  }

  /** Starts the daemon on the layout that is there; for use after `kill`. */
  async start(): Promise<void> {
    if (this.#process) throw new Error("containerd runs already");
    const { config, pid } = pathsOf(this.layout);
    // its own session: a Ctrl-C in the terminal is for us, and containerd must outlive it to clean up
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$1" -c "$2" >>"$3" 2>&1', "sh", `${this.binDir}/containerd`, config, this.logFile],
      env: { PATH: `${this.binDir}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin` },
      stdin: "null",
      stdout: "null",
      stderr: "null",
      detached: true,
    }).spawn();
    this.#process = child;
    await Deno.writeTextFile(pid, `${child.pid}\n`);
    this.log(`containerd ${this.layout.name} (pid ${child.pid}) on ${this.socket}`);
    using cri = new BareCri(this.socket);
    try {
      await waitFor("containerd to be ready", async () => {
        if (await processFacts(child.pid) === undefined) throw new GiveUp("containerd ended at once");
        return await cri.ready();
      }, { within: 30_000 });
    } catch (thrown) {
      throw new Error(`${messageOf(thrown)}; the end of its log:\n${await this.logEnd()}`, { cause: thrown });
    }
  }

  /** The last lines of the daemon's log. */
  async logEnd(lines = 20): Promise<string> {
    return (await Deno.readTextFile(this.logFile)).trimEnd().split("\n").slice(-lines).join("\n");
  }

  /** Ends the daemon alone: containers go on running, as when containerd crashes or is updated. */
  async kill(name: "SIGKILL" | "SIGTERM" = "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child) return;
    if (name === "SIGTERM") await end(child.pid, 10_000);
    else if (signal(child.pid, name)) await ended(child.pid, 10_000);
    await child.status;
  }

  /** Imports images that are not there yet; ours when none are given. Returns their names. */
  async importImages(images?: readonly BuiltImage[]): Promise<string[]> {
    const wanted = images ?? await buildImages();
    const ctr = [`${this.binDir}/ctr`, "-a", this.socket, "-n", "k8s.io", "images"];
    const there = new Set((await run([...ctr, "ls", "-q"])).split("\n"));
    for (const image of wanted) {
      if (!there.has(image.name)) await run([...ctr, "import", image.path]);
    }
    return wanted.map((image) => image.name);
  }

  /**
   * Removes every sandbox and container, ends the daemon and removes all that it made: shims, namespaces, mounts, rules,
   * bridge, directories (`keepRoot` keeps images and log). Safe to call again.
   */
  async stop(options: { keepRoot?: boolean } = {}): Promise<void> {
    if (await this.alive()) await this.removePods();
    await this.kill();
    await cleanContainerd(this.layout, options);
  }

  /** Removes every sandbox and container; what cannot be removed is told. */
  async removePods(): Promise<void> {
    using cri = new BareCri(this.socket);
    const { listPodSandbox, stopPodSandbox, removePodSandbox, listContainers, removeContainer } = RuntimeService.method;
    const tell = (what: string) => (thrown: unknown) => this.log(`${what}: ${messageOf(thrown)}`);
    try {
      for (const { id } of (await cri.call(listPodSandbox, {})).items) {
        await cri.call(stopPodSandbox, { podSandboxId: id }).catch(tell(`stop sandbox ${id}`));
        await cri.call(removePodSandbox, { podSandboxId: id }).catch(tell(`remove sandbox ${id}`));
      }
      for (const { id } of (await cri.call(listContainers, {})).containers) {
        await cri.call(removeContainer, { containerId: id }).catch(tell(`remove container ${id}`));
      }
    } catch (thrown) {
      tell("containerd does not answer; its remains are removed without it")(thrown);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
