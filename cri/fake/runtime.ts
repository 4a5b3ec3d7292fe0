import { create } from "@bufbuild/protobuf";
import type { Clock } from "../../mod/base/clock.ts";
import type { Random } from "../../mod/base/random.ts";
import type { CallOptions, ImageService, MutatingOptions, RuntimeService } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { runtimeStatus } from "./answers.ts";
import { ContainerCalls } from "./containers.ts";
import { Core, unimplemented } from "./core.ts";
import { ExecCalls } from "./exec.ts";
import { ImageCalls } from "./image_calls.ts";
import { type ImageSource, ImageStore, type Registry } from "./images.ts";
import { Line } from "./line.ts";
import type { CallRecord, Faults, Programs } from "./program.ts";
import { SandboxCalls } from "./sandboxes.ts";
import { type Snapshot, snapshotOf } from "./snapshot.ts";
import type { Flavour } from "./state.ts";
import { StatsCalls } from "./stats.ts";

export interface FakeRuntimeOptions {
  clock: Clock;
  random: Random;
  /** Which containerd it takes after: 1.6 has no RuntimeConfig and no container events. Default `2`. */
  flavour?: Flavour;
  /** What containers do. Default: they run for ever and exit with 0 on the stop signal. */
  programs?: Programs;
  /** Images that are there from the beginning. */
  images?: readonly ImageSource[];
  /** What a pull gives. Default: every well-formed name exists and is pulled at once. */
  registry?: Registry;
  /** What RuntimeConfig says; `Unimplemented` makes it fail so. Default cgroupfs (1.6: Unimplemented). */
  cgroupDriver?: "cgroupfs" | "systemd" | "Unimplemented";
  /** Runtime handlers. Default the nameless one and `runc`. */
  handlers?: readonly string[];
  /** The client's deadline, milliseconds (runtimeRequestTimeout). Default 2 minutes. */
  requestTimeoutMs?: number;
  /** Milliseconds that each call takes. Default 0. */
  latency?: (call: string) => number;
  faults?: Faults;
  /** Records kept in `calls`. Default 10,000. */
  keepCalls?: number;
  /** The first two numbers of pod addresses. Default `10.88`. */
  podNet?: string;
}

/**
 * An in-memory containerd: the CRI as the real one answers it (the contract suite runs against both), under a handed-in
 * clock, with faults on demand. It outlives its clients, so an agent can be killed and started again in front of it.
 */
export class FakeRuntime implements RuntimeService, ImageService {
  readonly #core: Core;
  readonly #cgroupDriver: "cgroupfs" | "systemd" | "Unimplemented";
  readonly #sandboxes: SandboxCalls;
  readonly #containers: ContainerCalls;
  readonly #exec: ExecCalls;
  readonly #stats: StatsCalls;
  readonly #images: ImageCalls;
  /** The image store; tests may add to it. */
  readonly images: ImageStore;
  /** Set to the reason to make Status say that the runtime or the network is not ready. */
  readonly notReady: { runtime?: string; network?: string } = {};

  constructor(options: FakeRuntimeOptions) {
    const { clock, random, flavour = "2" } = options;
    this.images = new ImageStore(options.images ?? []);
    this.#cgroupDriver = options.cgroupDriver ?? (flavour === "1.6" ? "Unimplemented" : "cgroupfs");
    const core = new Core({
      clock,
      random,
      flavour,
      images: this.images,
      programs: options.programs ?? (() => ({ onStop: "exits" })),
      handlers: options.handlers ?? ["", "runc"],
      timeoutMs: options.requestTimeoutMs ?? 120_000,
      podNet: options.podNet ?? "10.88",
      line: new Line({
        clock,
        latency: options.latency ?? (() => 0),
        faults: options.faults,
        keep: options.keepCalls ?? 10_000,
      }),
    });
    this.#core = core;
    this.#sandboxes = new SandboxCalls(core);
    this.#containers = new ContainerCalls(core);
    this.#exec = new ExecCalls(core);
    this.#stats = new StatsCalls(core);
    this.#images = new ImageCalls(core, options.registry ?? (() => ({})));
  }

  // ---- for tests ----

  /** Every call got, oldest first. */
  get calls(): readonly CallRecord[] {
    return this.#core.line.calls;
  }

  /** The hook asked at each call; may be set at any time. */
  get faults(): Faults | undefined {
    return this.#core.line.faults;
  }
  set faults(faults: Faults | undefined) {
    this.#core.line.faults = faults;
  }

  /** What there is now, for invariants. */
  snapshot(): Snapshot {
    return snapshotOf(this.#core.sandboxes.values(), this.#core.containers.values());
  }

  /** Ends a running container as if its process had ended. Throws when there is no such container. */
  exitContainer(id: string, exitCode: number, reason = ""): void {
    const record = this.#core.containers.get(id);
    if (!record) throw new TypeError(`no container ${id}`);
    this.#core.lives.exit(record, exitCode, reason);
  }

  /** Ends a sandbox's own process (as when `pause` is killed): the sandbox becomes not ready, its containers run on. */
  exitSandbox(id: string): void {
    const record = this.#core.sandboxes.get(id);
    if (!record) throw new TypeError(`no sandbox ${id}`);
    this.#core.endSandbox(record);
  }

  /** Restarts the runtime: calls and streams fail with Unavailable for `downMs` milliseconds; containers run on. */
  restart(downMs = 1_000): void {
    this.#core.line.cut(downMs);
  }

  /** The machine loses its power: every process is gone; what the runtime had written down is still there. */
  reboot(downMs = 1_000): void {
    const { containers, sandboxes, lives } = this.#core;
    this.restart(downMs);
    for (const record of containers.values()) lives.exit(record, 255, "Unknown");
    for (const record of sandboxes.values()) this.#core.endSandbox(record);
  }

  // ---- the runtime itself ----

  version(options?: CallOptions): Promise<pb.VersionResponse> {
    const runtimeVersion = this.#core.flavour === "1.6" ? "1.6.20" : "2.4.2";
    return this.#core.call("Version", undefined, options, () =>
      create(pb.VersionResponseSchema, {
        version: "0.1.0",
        runtimeName: "containerd",
        runtimeVersion,
        runtimeApiVersion: "v1",
      }));
  }

  status(request: { verbose: boolean }, options?: CallOptions): Promise<pb.StatusResponse> {
    const { flavour, handlers } = this.#core;
    const { verbose } = request;
    return this.#core.call(
      "Status",
      undefined,
      options,
      () => runtimeStatus({ verbose, flavour, notReady: this.notReady, handlers }),
    );
  }

  runtimeConfig(options?: CallOptions): Promise<pb.RuntimeConfigResponse> {
    const call = "RuntimeConfig";
    return this.#core.call(call, undefined, options, () => {
      if (this.#cgroupDriver === "Unimplemented") throw unimplemented(call);
      const cgroupDriver = this.#cgroupDriver === "systemd" ? pb.CgroupDriver.SYSTEMD : pb.CgroupDriver.CGROUPFS;
      return create(pb.RuntimeConfigResponseSchema, { linux: { cgroupDriver } });
    });
  }

  updateRuntimeConfig(podCidr: string, options: MutatingOptions): Promise<void> {
    return this.#core.call("UpdateRuntimeConfig", podCidr, options, () => {});
  }

  // ---- what the parts answer ----

  runPodSandbox: RuntimeService["runPodSandbox"] = (...given) => this.#sandboxes.runPodSandbox(...given);
  stopPodSandbox: RuntimeService["stopPodSandbox"] = (...given) => this.#sandboxes.stopPodSandbox(...given);
  removePodSandbox: RuntimeService["removePodSandbox"] = (...given) => this.#sandboxes.removePodSandbox(...given);
  podSandboxStatus: RuntimeService["podSandboxStatus"] = (...given) => this.#sandboxes.podSandboxStatus(...given);
  listPodSandboxes: RuntimeService["listPodSandboxes"] = (...given) => this.#sandboxes.listPodSandboxes(...given);
  updatePodSandboxResources: RuntimeService["updatePodSandboxResources"] = (...given) =>
    this.#sandboxes.updatePodSandboxResources(...given);

  createContainer: RuntimeService["createContainer"] = (...given) => this.#containers.createContainer(...given);
  startContainer: RuntimeService["startContainer"] = (...given) => this.#containers.startContainer(...given);
  stopContainer: RuntimeService["stopContainer"] = (...given) => this.#containers.stopContainer(...given);
  removeContainer: RuntimeService["removeContainer"] = (...given) => this.#containers.removeContainer(...given);
  listContainers: RuntimeService["listContainers"] = (...given) => this.#containers.listContainers(...given);
  containerStatus: RuntimeService["containerStatus"] = (...given) => this.#containers.containerStatus(...given);
  updateContainerResources: RuntimeService["updateContainerResources"] = (...given) =>
    this.#containers.updateContainerResources(...given);
  reopenContainerLog: RuntimeService["reopenContainerLog"] = (...given) =>
    this.#containers.reopenContainerLog(...given);
  checkpointContainer: RuntimeService["checkpointContainer"] = (...given) =>
    this.#containers.checkpointContainer(...given);

  execSync: RuntimeService["execSync"] = (...given) => this.#exec.execSync(...given);
  exec: RuntimeService["exec"] = (...given) => this.#exec.exec(...given);
  attach: RuntimeService["attach"] = (...given) => this.#exec.attach(...given);
  portForward: RuntimeService["portForward"] = (...given) => this.#exec.portForward(...given);
  containerEvents: RuntimeService["containerEvents"] = (...given) => this.#exec.containerEvents(...given);

  podSandboxStats: RuntimeService["podSandboxStats"] = (...given) => this.#stats.podSandboxStats(...given);
  listPodSandboxStats: RuntimeService["listPodSandboxStats"] = (...given) => this.#stats.listPodSandboxStats(...given);
  containerStats: RuntimeService["containerStats"] = (...given) => this.#stats.containerStats(...given);
  listContainerStats: RuntimeService["listContainerStats"] = (...given) => this.#stats.listContainerStats(...given);

  listImages: ImageService["listImages"] = (...given) => this.#images.listImages(...given);
  imageStatus: ImageService["imageStatus"] = (...given) => this.#images.imageStatus(...given);
  pullImage: ImageService["pullImage"] = (...given) => this.#images.pullImage(...given);
  removeImage: ImageService["removeImage"] = (...given) => this.#images.removeImage(...given);
  imageFsInfo: ImageService["imageFsInfo"] = (...given) => this.#images.imageFsInfo(...given);
}
