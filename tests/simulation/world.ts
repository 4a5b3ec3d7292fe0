import { type ImageService, RuntimeError, type RuntimeService } from "../../cri/api.ts";
import { grpcCode } from "../../cri/api.ts";
import type { Fault } from "../../cri/fake/program.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { fakeCgroupV1, fakeCgroupV2 } from "../../managers/cgroups/fake_kernel.ts";
import { detectCgroups, type Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import type { Dialers } from "../../managers/probes/prober.ts";
import type { KubeletFlags } from "../../mod/app/config/flags.ts";
import type { KubeletConfig } from "../../mod/app/config/kubelet_config.ts";
import { loadConfig } from "../../mod/app/config/load.ts";
import type { NodeFacts } from "../../mod/app/node_facts.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { errno, FakeHost, type HostOperation } from "../../mod/base/fake_host.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { readPod } from "../../mod/sources/manifest.ts";
import { Dice } from "./dice.ts";
import { type Plan, planOf, programOf } from "./pods.ts";
import { SimCluster } from "./sim_cluster.ts";
import { SimHost } from "./sim_host.ts";
import { Broken, Trace } from "./trace.ts";

export const manifestDir = "/etc/kubernetes/manifests";
export const rootDir = "/var/lib/kubelet";
export const podLogsDir = "/var/log/pods";
export const linkDir = "/var/log/containers";
const nodeName = "node1";

/** How a probe or hook answers. */
export type Answer = "ok" | "bad" | "slow" | "hangs";

/** What is wrong with the machine now. */
export interface Weather {
  /** Share of the CRI calls that are disturbed, and how. */
  cri: number;
  criKinds: readonly ("slow" | "error" | "hang" | "lost")[];
  /** Share of the disk operations that fail, with which error, below which path. */
  disk: number;
  diskError: "ENOSPC" | "EIO" | "EROFS";
  diskPath: string;
  /** Longest time that a disk operation takes, milliseconds. */
  diskMs: number;
}

const calm: Weather = { cri: 0, criKinds: [], disk: 0, diskError: "EIO", diskPath: "/", diskMs: 0 };
/** How long what hangs does so, milliseconds: a postStart hook has no deadline that could end it, so it ends by itself. */
const hangMs = (key: string) => key.endsWith("/postStart") ? 300_000 : Infinity;
const grows = new Set<HostOperation>(["write", "mkdir", "symlink"]);
const changes = new Set<HostOperation>([...grows, "writeControl", "rename", "chmod", "chown", "remove", "removeTree"]);
const neverFails = new Set<HostOperation>(["mounts", "lock", "hostname", "capacity", "kill", "run", "space"]);

/** Numbers that a run tells in the end. */
export interface Figures {
  criCalls: number;
  faults: number;
  lives: number;
  pods: number;
}

/** The machine, the runtime and the network that an agent lives in. */
export class World {
  readonly clock = new FakeClock();
  readonly dice: Dice;
  readonly trace: Trace;
  readonly host: SimHost;
  readonly runtime: FakeRuntime;
  readonly dial: Dialers;
  readonly figures: Figures = { criCalls: 0, faults: 0, lives: 0, pods: 0 };
  weather: Weather = calm;
  readonly cluster: SimCluster | undefined;
  /** Answers by `<key>/<probe or hook>`; without one it is "ok". */
  readonly answers = new Map<string, Answer>();
  /** Texts of the manifests by path. */
  readonly manifests = new Map<string, string>();
  /** Told after each CRI call that changes something has ended. */
  onMutation: ((call: string, target: string, error: unknown) => void) | undefined;
  #broken: Broken | undefined;
  readonly #faultDice: Dice;
  readonly #parsed = new Map<string, BoundPod | undefined>();

  /** @param options.cluster the node is a member of a cluster */
  constructor(seed: number, options: { echo?: (line: string) => void; cluster?: boolean } = {}) {
    this.dice = new Dice(seed);
    this.#faultDice = new Dice(seed ^ 0x5bd1e995);
    const { clock, dice } = this;
    this.trace = new Trace({ now: () => clock.now(), ...options });
    this.host = new SimHost({
      clock,
      hostname: nodeName,
      files: {
        "/etc/hosts": "127.0.0.1 localhost\n",
        "/etc/resolv.conf": "nameserver 10.0.0.53\nsearch example.org\n",
        "/srv/data/file": "",
      },
    });
    this.host.put("/proc/stat", "btime 1700000000\n");
    this.host.put("/proc/sys/kernel/pid_max", "32768\n");
    this.host.put("/proc/sys/kernel/threads-max", "60000\n");
    this.pressed = false;
    for (const dir of [manifestDir, `${rootDir}/pods`, podLogsDir, linkDir]) this.host.putDir(dir);
    if (dice.chance(0.5)) fakeCgroupV2(this.host);
    else fakeCgroupV1(this.host);
    this.host.fault((operation, path) => this.#diskFault(operation, path));
    const flavour = dice.chance(0.5) ? "2" : "1.6";
    this.runtime = new FakeRuntime({
      clock,
      random: seeded(seed ^ 0x9e3779b9),
      flavour,
      cgroupDriver: "cgroupfs",
      images: [{ name: "registry.k8s.io/pause:3.10", pinned: true }],
      requestTimeoutMs: dice.pick([5_000, 20_000, 120_000]),
      keepCalls: Infinity,
      latency: () => this.#latency,
      faults: (call) => this.#criFault(call),
      registry: (name) =>
        name.includes("slow")
          ? { ms: 4000 }
          : name.includes("none")
          ? { error: new RuntimeError("PullImage", grpcCode.NotFound, "no such image") }
          : {},
      programs: (config, sandbox) => {
        const plan = planOf(config.command);
        const onStart = () => {
          const log = `${sandbox.logDirectory}/${config.logPath}`;
          if (config.logPath !== "" && this.host.exists(log.slice(0, log.lastIndexOf("/")))) {
            this.host.put(log, "2026-01-01T00:00:00Z stdout F x\n");
          }
        };
        if (!plan) return { onStop: "exits", onStart };
        return { ...programOf(plan, config.metadata?.attempt ?? 0), onStart, exec: (command) => this.#exec(command) };
      },
    });
    this.dial = this.#makeDial();
    if (options.cluster) this.cluster = new SimCluster(this);
  }

  /** True while the machine runs out of process ids. */
  set pressed(pressed: boolean) {
    this.host.put("/proc/loadavg", `0.1 0.2 0.3 1/${pressed ? 32_500 : 200} 4242\n`);
  }

  #latency = 0;
  /** Milliseconds that each CRI call takes. */
  set latency(ms: number) {
    this.#latency = ms;
  }

  /** The runtime as clients see it. */
  get service(): RuntimeService & ImageService {
    return new Proxy(this.runtime, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        if (!mutating.has(String(name))) return (...given: unknown[]) => Reflect.apply(method, target, given);
        return async (...given: unknown[]) => {
          // What an invariant has found goes round in circles may not keep the simulation from saying so.
          if (this.#broken) return await new Promise(() => {});
          let error: unknown;
          try {
            return await Reflect.apply(method, target, given);
          } catch (thrown) {
            error = thrown;
            throw thrown;
          } finally {
            const [first] = given;
            this.onMutation?.(String(name), typeof first === "string" ? first : "", error);
          }
        };
      },
    });
  }

  readonly #exitSeen = new Map<string, number>();

  /** Milliseconds since an instance has ended; since that was first looked at, when the clock has been set. */
  sinceExit({ id, finishedAt }: { readonly id: string; readonly finishedAt: number }): number {
    const { clock } = this;
    if (clock.shifted === 0) return clock.now() - finishedAt;
    const now = clock.now() - clock.shifted;
    const seen = this.#exitSeen.get(id) ?? now;
    this.#exitSeen.set(id, seen);
    return now - seen;
  }

  /** Notes that an invariant does not hold; the first one counts. */
  fail(invariant: string, what: string): void {
    if (this.#broken) return;
    this.#broken = new Broken(invariant, what);
    this.trace.note(`BROKEN ${invariant}: ${what}`);
  }

  get broken(): Broken | undefined {
    return this.#broken;
  }

  /** Everything works again. */
  clear(): void {
    this.weather = calm;
    this.pressed = false;
    this.#latency = 0;
    this.answers.clear();
    this.cluster?.clear();
    delete this.runtime.notReady.runtime;
    delete this.runtime.notReady.network;
  }

  get stormy(): boolean {
    return this.weather !== calm || this.runtime.notReady.network !== undefined ||
      this.runtime.notReady.runtime !== undefined;
  }

  writeManifest(path: string, text: string): void {
    this.manifests.set(path, text);
    this.host.put(path, text);
  }

  async removeManifest(path: string): Promise<void> {
    this.manifests.delete(path);
    await this.#quietly(() => this.host.remove(path));
  }

  async renameManifest(from: string, to: string): Promise<void> {
    const text = this.manifests.get(from);
    if (text === undefined) return;
    this.manifests.delete(from);
    this.manifests.set(to, text);
    await this.#quietly(() => this.host.rename(from, to));
  }

  /** The world's own operations meet no faults; the fake host does them before it gives its promise. */
  #quietly<T>(run: () => Promise<T>): Promise<T> {
    this.#bypass = true;
    try {
      return run();
    } finally {
      this.#bypass = false;
    }
  }
  #bypass = false;

  /** The pods that the manifests want, the first of a name or UID only, as the contract says. */
  wanted(): Map<string, BoundPod> {
    const pods = new Map<string, BoundPod>();
    const names = new Set<string>();
    for (const [path, text] of [...this.manifests].sort(([a], [b]) => a < b ? -1 : 1)) {
      const pod = this.#parse(path, text);
      if (!pod) continue;
      const name = `${pod.metadata.namespace}/${pod.metadata.name}`;
      if (names.has(name) || pods.has(pod.metadata.uid)) continue;
      names.add(name);
      pods.set(pod.metadata.uid, pod);
    }
    for (const pod of this.cluster?.wanted() ?? []) pods.set(pod.metadata.uid, pod);
    return pods;
  }

  #parse(path: string, text: string): BoundPod | undefined {
    const key = `${path}\n${text}`;
    if (!this.#parsed.has(key)) {
      let pod: BoundPod | undefined;
      try {
        pod = readPod(text, { origin: { source: "file", path }, nodeName }).pods[0];
      } catch {
        pod = undefined;
      }
      this.#parsed.set(key, pod);
    }
    return this.#parsed.get(key);
  }

  /** Milliseconds that a disk operation takes now. */
  hostDelayMs(): number {
    const { diskMs } = this.weather;
    return diskMs > 0 && this.#faultDice.chance(0.5) ? this.#faultDice.int(0, diskMs) : 0;
  }

  #diskFault(operation: HostOperation, path: string): Error | undefined {
    const { disk, diskError, diskPath } = this.weather;
    if (this.#bypass || disk === 0 || neverFails.has(operation) || !path.startsWith(diskPath)) return undefined;
    const kind = diskError === "ENOSPC" ? grows : diskError === "EROFS" ? changes : undefined;
    if (kind && !kind.has(operation)) return undefined;
    if (!this.#faultDice.chance(disk)) return undefined;
    this.figures.faults++;
    return errno(diskError);
  }

  #criFault(call: string): Fault | undefined {
    this.figures.criCalls++;
    const { cri, criKinds } = this.weather;
    if (cri === 0 || criKinds.length === 0 || !this.#faultDice.chance(cri)) return undefined;
    this.figures.faults++;
    const dice = this.#faultDice;
    const kind = dice.pick(criKinds);
    this.trace.note(`  fault: ${call} ${kind}`);
    switch (kind) {
      case "slow":
        return { delayMs: dice.span(1, 30_000) };
      case "error":
        return { error: new RuntimeError(call, dice.pick([grpcCode.Unknown, grpcCode.Unavailable]), "made to fail") };
      case "hang":
        // A pull has no deadline of its own, nor has a hook's command; they are slow instead.
        return call === "PullImage" || call === "ExecSync" ? { delayMs: 300_000 } : { hang: true };
      case "lost":
        return { loseAnswer: true, ...(dice.chance(0.3) ? { delayMs: dice.span(1, 5000) } : {}) };
    }
  }

  #exec(command: readonly string[]): { exitCode: number; ms?: number } {
    const answer = this.answers.get(command[1] ?? "") ?? "ok";
    return {
      exitCode: answer === "bad" ? 1 : 0,
      ...(answer === "hangs" ? { ms: hangMs(command[1] ?? "") } : answer === "slow" ? { ms: 2500 } : {}),
    };
  }

  #makeDial(): Dialers {
    const { clock } = this;
    const wait = async (
      { answer, key }: { answer: Answer; key: string },
      timeoutMs: number,
      signal: AbortSignal | undefined,
    ): Promise<boolean> => {
      if (signal?.aborted) throw abortedBy(signal);
      const ms = answer === "hangs" ? hangMs(key) : answer === "slow" ? 2500 : 0;
      if (ms === 0) return true;
      const limit = Math.min(ms, timeoutMs > 0 ? timeoutMs : 3_600_000);
      await clock.sleep(limit, signal);
      return ms <= limit;
    };
    const failed = "connect: connection refused";
    return {
      http: async ({ action, container, timeoutMs, signal, podIP }) => {
        const port = typeof action.port === "number"
          ? action.port
          : container.ports?.find((p) => p.name === action.port)?.containerPort ?? 0;
        const key = `k${port - 1000}${action.path ?? "/"}`;
        const answer = this.answers.get(key) ?? "ok";
        const hostPort = `${action.host ?? podIP}:${port}`;
        const done = await wait({ answer, key }, timeoutMs, signal);
        if (!done) return { ok: false, stage: "request", plainHttp: false, message: "timeout", hostPort };
        if (answer !== "bad") return { ok: true, status: 200, body: "ok", hostPort };
        return clock.now() % 2 === 0
          ? { ok: true, status: 500, body: "bad", hostPort }
          : { ok: false, stage: "request", plainHttp: false, message: failed, hostPort };
      },
      tcp: async ({ port, timeoutMs, signal }) => {
        const key = `k${port - 1000}/tcp`;
        const answer = this.answers.get(key) ?? "ok";
        const done = await wait({ answer, key }, timeoutMs, signal);
        return done && answer !== "bad" ? { result: "success", output: "" } : { result: "failure", output: failed };
      },
      grpc: () => Promise.reject(new Error("no gRPC probes here")),
    };
  }

  /** The machine loses its power and comes back: no process, mount or control group of before is left. */
  async reboot(): Promise<void> {
    const { host, runtime } = this;
    runtime.reboot(this.dice.int(100, 5000));
    for (const { target } of (await host.mounts()).reverse()) {
      if (target.startsWith(`${rootDir}/`)) await this.#quietly(() => host.unmount(target));
    }
    const groups = host.tree(host.cgroupRoot).filter((p) => p.endsWith("/") && p.includes("kubepods"));
    for (const path of groups.sort((a, b) => b.length - a.length)) {
      host.put(`${host.cgroupRoot}/${path}cgroup.procs`, "");
      await this.#quietly(() => host.remove(`${host.cgroupRoot}/${path.slice(0, -1)}`));
    }
  }
}

export const mutating: ReadonlySet<string> = new Set([
  "runPodSandbox",
  "stopPodSandbox",
  "removePodSandbox",
  "createContainer",
  "startContainer",
  "stopContainer",
  "removeContainer",
  "pullImage",
  "removeImage",
]);

let loaded: { config: KubeletConfig; flags: KubeletFlags } | undefined;

/** The configuration of the simulated agent; read once, as a life of the agent does at its start. */
export async function simulatedConfig(): Promise<{ config: KubeletConfig; flags: KubeletFlags }> {
  if (!loaded) {
    const host = new FakeHost({ files: { "/etc/resolv.conf": "nameserver 10.0.0.53\n" } });
    const argv = [
      `--pod-manifest-path=${manifestDir}`,
      `--root-dir=${rootDir}`,
      "--resolv-conf=/etc/resolv.conf",
      "--eviction-hard=pid.available<1000",
      "--eviction-pressure-transition-period=30s",
      "--denolet-eviction-static-pods",
    ];
    const { config, flags } = await loadConfig({ argv, host, log: silent });
    loaded = { config, flags };
  }
  return loaded;
}

export const simulatedFacts: NodeFacts = {
  name: nodeName,
  ips: ["192.168.1.10"],
  memory: 8 * 2 ** 30,
  swap: 0,
  cpus: 4,
  capacity: { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" },
  allocatable: { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" },
  hugePageSizes: [],
  arch: "amd64",
  kernelVersion: "6.1.0",
  appArmor: false,
  swapController: false,
};

export async function hierarchiesOf(world: World): Promise<Hierarchies> {
  return await detectCgroups(world.host);
}

/** The plan of a container of a pod. */
export function planOfContainer(pod: BoundPod, name: string): Plan | undefined {
  const all = [...pod.spec.initContainers ?? [], ...pod.spec.containers];
  return planOf(all.find((c) => c.name === name)?.command ?? []);
}
