import { askAgent, NoAgent } from "../../mod/app/cli/ask_agent.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { systemClock } from "../../mod/base/clock.ts";
import type { PodStatus } from "../../mod/kube/types.ts";
import { namesIn, remove, repository, writeWhole } from "../lib/files.ts";
import { GiveUp, waitFor } from "../lib/wait.ts";
import { makeCgroup, removeCgroup } from "./cgroups.ts";
import type { Containerd } from "./containerd.ts";
import { unmountBelow } from "./mounts.ts";
import { readPods, readStatuses, type SeenPod } from "./pods.ts";
import { end, ended, processFacts, signal } from "./processes.ts";

/** How an agent is run on a private containerd. */
export interface AgentOptions {
  /** Makes directories and control groups of its own; as containerd's name. */
  readonly name: string;
  readonly containerd: Containerd;
  /** Directory whose *.yaml and *.json files are copied to become the static pods; none when not given. */
  readonly manifests?: string;
  /** Fields of the KubeletConfiguration that differ from those of `agentConfig`. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** More flags. */
  readonly flags?: readonly string[];
  /** The executable to run, instead of the sources by scripts/agent.sh; DENOLET_TEST_PROGRAM when not given. */
  readonly program?: string;
  /** More variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where everything is kept; /var/lib/denolet-agent.NAME when not given. */
  readonly root?: string;
  readonly log?: (line: string) => void;
}

/** The configuration that an agent beside others gets: directories, control group and port of its own, nothing served. */
export function agentConfig(facts: {
  root: string;
  endpoint: string;
  cgroup: string;
  healthzPort: number;
}): Record<string, unknown> {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    containerRuntimeEndpoint: facts.endpoint,
    staticPodPath: `${facts.root}/manifests`,
    fileCheckFrequency: "2s",
    podLogsDir: `${facts.root}/logs`,
    volumePluginDir: `${facts.root}/plugins`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: facts.cgroup,
    cgroupsPerQOS: true,
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    // The machine's tables are not the agent's to change here.
    makeIPTablesUtilChains: false,
    enableServer: false,
    readOnlyPort: 0,
    healthzBindAddress: "127.0.0.1",
    healthzPort: facts.healthzPort,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    // Images cannot be pulled again here, and the machine's disk may be fuller than a node's should be.
    imageGCHighThresholdPercent: 100,
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "1%",
      "nodefs.inodesFree": "1%",
      "imagefs.available": "1%",
    },
  };
}

/** A TCP port of 127.0.0.1 that nothing listens on just now. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** The directories of an agent. */
export interface AgentPaths {
  readonly root: string;
  readonly manifests: string;
  readonly config: string;
  /** The agent's --root-dir. */
  readonly kubelet: string;
  readonly logs: string;
  readonly log: string;
  /** Where scripts/agent.sh binds /proc and the cgroup hierarchies. */
  readonly run: string;
  readonly cgroup: string;
}

/** The directories and the control group that follow from a name. */
export function agentPaths(name: string, root: string = `/var/lib/denolet-agent.${name}`): AgentPaths {
  return {
    root,
    manifests: `${root}/manifests`,
    config: `${root}/config.yaml`,
    kubelet: `${root}/kubelet`,
    logs: `${root}/logs`,
    log: `${root}/agent.log`,
    run: `/run/denolet-agent.${name}`,
    cgroup: `/denolet-${name}`,
  };
}

/** Ends the process of an agent that an earlier run left. */
export async function endAgent(paths: AgentPaths): Promise<void> {
  const pid = Number((await readOr(`${paths.run}/agent.pid`, "0")).trim());
  const facts = pid > 1 ? await processFacts(pid) : undefined;
  if (facts?.command.includes(paths.config)) await end(pid, 10_000);
}

/**
 * Removes what an agent of this name left: the process, mounts, control groups, directories. Idempotent. Its
 * containers hold the control groups and mounts: the containerd that ran them is to be cleaned up first.
 */
export async function cleanAgent(paths: AgentPaths): Promise<void> {
  await endAgent(paths);
  await unmountBelow(paths.run);
  await unmountBelow(paths.root);
  const busy = await removeCgroupPatiently(paths.cgroup);
  await remove(paths.run);
  await remove(paths.root);
  if (busy.length > 0) throw new Error(`control groups still in use: ${busy.join(", ")}`);
}

async function removeCgroupPatiently(path: string): Promise<string[]> {
  let busy = await removeCgroup(path);
  // a killed process leaves its group a moment after it is gone
  for (let tries = 0; busy.length > 0 && tries < 40; tries++) {
    await systemClock.sleep(50);
    busy = await removeCgroup(path);
  }
  return busy;
}

async function readOr(path: string, otherwise: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return otherwise;
    throw thrown;
  }
}

/** An agent on a private containerd, with everything that it needs and makes below directories of its own. */
export class AgentNode implements AsyncDisposable {
  readonly paths: AgentPaths;
  readonly healthzPort: number;
  #child: Deno.ChildProcess | undefined;
  readonly #log: (line: string) => void;

  private constructor(private readonly options: AgentOptions) {
    this.paths = agentPaths(options.name, options.root);
    this.healthzPort = freePort();
    this.#log = options.log ?? (() => {});
  }

  /** Prepares directories, control group, configuration and manifests; what an earlier run left is removed first. */
  static async prepare(options: AgentOptions): Promise<AgentNode> {
    const node = new AgentNode(options);
    const { paths } = node;
    await cleanAgent(paths);
    for (const directory of [paths.manifests, paths.logs, paths.kubelet]) {
      await Deno.mkdir(directory, { recursive: true });
    }
    await Deno.mkdir(paths.run, { recursive: true });
    await makeCgroup(paths.cgroup);
    const { endpoint } = options.containerd;
    const config = agentConfig({ root: paths.root, endpoint, cgroup: paths.cgroup, healthzPort: node.healthzPort });
    await node.configure({ ...config, ...options.config });
    if (options.manifests !== undefined) await node.copyManifests(options.manifests);
    return node;
  }

  /** Writes the configuration file. */
  async configure(config: Readonly<Record<string, unknown>>): Promise<void> {
    await writeWhole(this.paths.config, `${JSON.stringify(config, null, 2)}\n`); // JSON is YAML
  }

  /** Copies the manifests of a directory; throws when it has none. */
  async copyManifests(directory: string): Promise<void> {
    const names = (await namesIn(directory)).filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name));
    if (names.length === 0) throw new Error(`${directory}: no manifest (*.yaml, *.yml, *.json) in it`);
    for (const name of names) await this.putManifest(name, await Deno.readTextFile(`${directory}/${name}`));
  }

  /** Writes or replaces a manifest at once; an object is written as JSON. */
  async putManifest(name: string, manifest: string | object): Promise<void> {
    const text = typeof manifest === "string" ? manifest : JSON.stringify(manifest, null, 2);
    // made elsewhere and moved in: the agent must never see half a file
    const temporary = `${this.paths.root}/.${name}.tmp`;
    await Deno.writeTextFile(temporary, text);
    await Deno.rename(temporary, `${this.paths.manifests}/${name}`);
  }

  /** Removes a manifest. */
  async removeManifest(name: string): Promise<void> {
    await remove(`${this.paths.manifests}/${name}`);
  }

  /** Process id of the agent; 0 while it is down. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /**
   * Starts the agent's process and returns at once. Flags are added to those that every agent gets; with `show` its
   * standard output is seen instead of going into the log file.
   */
  start(flags: readonly string[] = [], options: { show?: boolean } = {}): void {
    if (this.#child) throw new Error("the agent runs already");
    const { paths } = this;
    const all = [
      "--config",
      paths.config,
      "--root-dir",
      paths.kubelet,
      "--hostname-override",
      this.options.name,
      ...this.options.flags ?? [],
      ...flags,
    ];
    const output = options.show ? 'exec "$@" 2>>"$LOG"' : 'exec "$@" >>"$LOG" 2>&1';
    const program = this.options.program ?? Deno.env.get("DENOLET_TEST_PROGRAM");
    const child = new Deno.Command("/bin/sh", {
      args: [
        "-c",
        output,
        "sh",
        ...program === undefined ? ["sh", `${repository}/scripts/agent.sh`] : [program],
        ...all,
      ],
      cwd: "/",
      env: { LOG: paths.log, DENOLET_RUN: paths.run, DENOLET_DENO: Deno.execPath(), ...this.options.env },
      stdin: "null",
      stdout: options.show ? "inherit" : "null",
      stderr: "null",
      // its own session: Ctrl-C is for us, and pods are ended before the agent is
      detached: true,
    }).spawn();
    this.#child = child;
    Deno.writeTextFileSync(`${paths.run}/agent.pid`, `${child.pid}\n`);
    this.#log(`agent (pid ${child.pid}), log in ${paths.log}`);
  }

  /** Waits until the agent's healthz answers 200. */
  async healthy(within = 30_000): Promise<void> {
    await this.#explained("the agent's /healthz", async () => {
      const answer = await fetch(`http://127.0.0.1:${this.healthzPort}/healthz`);
      await answer.body?.cancel();
      return answer.status === 200;
    }, within);
  }

  /** Looks at the pods until `look` is content; the error has the pods and the end of the agent's log. */
  async until<T>(
    what: string,
    look: (pods: SeenPod[]) => T | undefined | false | Promise<T | undefined | false>,
    within = 60_000,
  ): Promise<T> {
    let pods: SeenPod[] = [];
    try {
      return await this.#explained(what, async () => look(pods = await this.pods()), within);
    } catch (thrown) {
      throw new Error(`${messageOf(thrown)}\npods: ${JSON.stringify(pods, null, 1)}`, { cause: thrown });
    }
  }

  /** The pods as the runtime knows them now. */
  async pods(): Promise<SeenPod[]> {
    return await readPods(this.options.containerd.socket);
  }

  async #explained<T>(
    what: string,
    look: () => Promise<T | undefined | false>,
    within: number,
  ): Promise<T> {
    const pid = this.pid;
    try {
      return await waitFor(what, async () => {
        let failure: unknown;
        let seen: T | undefined | false;
        try {
          seen = await look();
        } catch (thrown) {
          if (thrown instanceof Error && thrown.name === "AssertionError") throw new GiveUp(thrown.message);
          failure = thrown;
        }
        if (seen !== undefined && seen !== false) return seen;
        if (pid !== 0 && this.pid === pid && await processFacts(pid) === undefined) {
          throw new GiveUp(`the agent ended while waiting for ${what}`);
        }
        if (failure !== undefined) throw failure;
        return undefined;
      }, { within });
    } catch (thrown) {
      throw new Error(`${messageOf(thrown)}\nend of ${this.paths.log}:\n${await this.logEnd()}`, { cause: thrown });
    }
  }

  /** The statuses of the pods as the agent keeps them, by UID. */
  async statuses(): Promise<Map<string, PodStatus>> {
    return await readStatuses(`${this.paths.kubelet}/pod_status`);
  }

  /** UIDs of the pods that are ending, as the agent tells; none while it does not answer. */
  async leaving(): Promise<Set<string>> {
    try {
      const { pods } = await askAgent(this.paths.kubelet).pods();
      return new Set(pods.flatMap(({ pod, leaving }) => leaving ? [pod.metadata.uid] : []));
    } catch (thrown) {
      if (thrown instanceof NoAgent) return new Set();
      throw thrown;
    }
  }

  /** The last lines of the agent's log. */
  async logEnd(lines = 40): Promise<string> {
    return (await readOr(this.paths.log, "(no log)")).trimEnd().split("\n").slice(-lines).join("\n");
  }

  /** Waits for the agent's own end; its exit code. */
  async exited(): Promise<number> {
    const child = this.#child;
    if (!child) throw new Error("the agent does not run");
    const { code } = await child.status;
    if (this.#child === child) this.#child = undefined; // not one that was started meanwhile
    return code;
  }

  /** Ends the agent's process; its pods go on running. */
  async kill(name: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child) return;
    if (name === "SIGTERM") await end(child.pid, 10_000);
    else if (signal(child.pid, name)) await ended(child.pid, 10_000);
    await child.status;
  }

  /**
   * Takes the manifests away and waits until the agent has ended their pods; tells whether it managed in time
   * (milliseconds). When pods are left and no agent runs, one is started for that.
   */
  async drain(within = 60_000): Promise<boolean> {
    for (const name of await namesIn(this.paths.manifests)) await this.removeManifest(name);
    const gone = async () =>
      (await this.pods()).length === 0 && (await namesIn(`${this.paths.kubelet}/pods`)).length === 0;
    try {
      if (!await this.options.containerd.alive()) throw new Error("containerd is down: nobody can end the pods");
      if (!this.#child) {
        if (await gone()) return true;
        this.#log("the agent has ended and its pods go on: another one ends them");
        this.start();
      }
      await this.until("the pods to end", gone, within);
      return true;
    } catch (thrown) {
      this.#log(messageOf(thrown));
      return false;
    }
  }

  /** Ends the pods (`within` milliseconds at most) and then the agent; tells whether no pod was left. */
  async stop(options: { within?: number } = {}): Promise<boolean> {
    const drained = await this.drain(options.within);
    await this.kill();
    return drained;
  }

  /** Removes directories, mounts and control groups; to be called when containerd has stopped. */
  async clean(): Promise<void> {
    await this.kill();
    await cleanAgent(this.paths);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
