import { create } from "@bufbuild/protobuf";
import { Channel } from "../../mod/base/channel.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import { type Random, randomHex } from "../../mod/base/random.ts";
import type {
  AuthConfigInit,
  CallOptions,
  ContainerConfigInit,
  ContainerFilterInit,
  ExecSyncResult,
  ImageService,
  ImageSpecInit,
  MutatingOptions,
  ResourcesInit,
  RuntimeService,
  SandboxConfigInit,
  SandboxFilterInit,
} from "../api.ts";
import { grpcCode, RuntimeError } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { imageItem, type ImageSource, ImageStore, normalReference, type Registry } from "./images.ts";
import { Line, never, unavailable } from "./line.ts";
import { killed, Lives } from "./lives.ts";
import type { CallRecord, Faults, Programs } from "./program.ts";
import {
  containerItem,
  containerName,
  type ContainerRecord,
  containerStatus,
  type Flavour,
  keepContainerConfig,
  keepSandboxConfig,
  matchesContainer,
  matchesSandbox,
  onHostNetwork,
  sandboxItem,
  sandboxName,
  type SandboxRecord,
  sandboxStatus,
  stateOf,
} from "./state.ts";
import { runtimeStatus } from "./answers.ts";
import { containerStats, sandboxStats } from "./stats.ts";
import { type Snapshot, snapshotOf } from "./snapshot.ts";

const { CONTAINER_CREATED, CONTAINER_RUNNING } = pb.ContainerState;
const event = pb.ContainerEventType;

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
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #options: FakeRuntimeOptions;
  readonly #flavour: Flavour;
  readonly #line: Line;
  readonly #lives: Lives;
  readonly #timeoutMs: number;
  readonly #sandboxes = new Map<string, SandboxRecord>();
  readonly #containers = new Map<string, ContainerRecord>();
  readonly #names = new Map<string, string>();
  readonly #streams = new Set<Channel<pb.ContainerEventResponse>>();
  readonly #podNet: string;
  #lastIp = 1;
  #lastStamp = 0n;
  /** The image store; tests may add to it. */
  readonly images: ImageStore;
  /** The reasons, where the node is not ready; empty when it is. */
  readonly notReady: { runtime?: string; network?: string } = {};

  constructor(options: FakeRuntimeOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#flavour = options.flavour ?? "2";
    this.#timeoutMs = options.requestTimeoutMs ?? 120_000;
    this.#podNet = options.podNet ?? "10.88";
    this.images = new ImageStore(options.images ?? []);
    this.#line = new Line({
      clock: options.clock,
      latency: options.latency ?? (() => 0),
      faults: options.faults,
      keep: options.keepCalls ?? 10_000,
    });
    this.#lives = new Lives({
      clock: options.clock,
      stamp: () => this.#stamp(),
      onExit: (record) => this.#emit(record.id, record.sandboxId, event.CONTAINER_STOPPED_EVENT),
    });
  }

  // ---- for tests ----

  /** Every call got, oldest first. */
  get calls(): readonly CallRecord[] {
    return this.#line.calls;
  }

  /** The hook asked at each call; may be set at any time. */
  get faults(): Faults | undefined {
    return this.#line.faults;
  }
  set faults(faults: Faults | undefined) {
    this.#line.faults = faults;
  }

  /** What there is now, for invariants. */
  snapshot(): Snapshot {
    return snapshotOf(this.#sandboxes.values(), this.#containers.values());
  }

  /** Ends a running container as if its process had ended. Throws when there is no such container. */
  exitContainer(id: string, exitCode: number, reason = ""): void {
    const record = this.#containers.get(id);
    if (!record) throw new TypeError(`no container ${id}`);
    this.#lives.exit(record, exitCode, reason);
  }

  /** Ends a sandbox's own process (as when `pause` is killed): the sandbox becomes not ready, its containers run on. */
  exitSandbox(id: string): void {
    const record = this.#sandboxes.get(id);
    if (!record) throw new TypeError(`no sandbox ${id}`);
    this.#sandboxEnds(record);
  }

  /** Restarts the runtime: calls and streams fail with Unavailable for `downMs` milliseconds; containers run on. */
  restart(downMs = 1_000): void {
    this.#line.cut(downMs);
    for (const record of this.#containers.values()) record.starting = false;
  }

  /** The machine loses its power: every process is gone; what the runtime had written down is still there. */
  reboot(downMs = 1_000): void {
    this.restart(downMs);
    for (const record of this.#containers.values()) this.#lives.exit(record, 255, "Unknown");
    for (const record of this.#sandboxes.values()) this.#sandboxEnds(record);
  }

  // ---- runtime ----

  version(options?: CallOptions): Promise<pb.VersionResponse> {
    return this.#call("Version", undefined, options, () =>
      create(pb.VersionResponseSchema, {
        version: "0.1.0",
        runtimeName: "containerd",
        runtimeVersion: this.#flavour === "1.6" ? "1.6.20" : "v2.4.2",
        runtimeApiVersion: "v1",
      }));
  }

  status(request: { verbose: boolean }, options?: CallOptions): Promise<pb.StatusResponse> {
    return this.#call("Status", undefined, options, () =>
      runtimeStatus({
        verbose: request.verbose,
        flavour: this.#flavour,
        notReady: this.notReady,
        handlers: this.#handlers,
      }));
  }

  runtimeConfig(options?: CallOptions): Promise<pb.RuntimeConfigResponse> {
    const driver = this.#options.cgroupDriver ?? (this.#flavour === "1.6" ? "Unimplemented" : "cgroupfs");
    return this.#call("RuntimeConfig", undefined, options, () => {
      if (driver === "Unimplemented") throw unimplemented("RuntimeConfig");
      const cgroupDriver = driver === "systemd" ? pb.CgroupDriver.SYSTEMD : pb.CgroupDriver.CGROUPFS;
      return create(pb.RuntimeConfigResponseSchema, { linux: { cgroupDriver } });
    });
  }

  updateRuntimeConfig(podCidr: string, options: MutatingOptions): Promise<void> {
    return this.#call("UpdateRuntimeConfig", podCidr, options, () => {});
  }

  // ---- sandboxes ----

  runPodSandbox(config: SandboxConfigInit, handler: string, options: MutatingOptions): Promise<string> {
    const kept = keepSandboxConfig(config);
    const { metadata } = kept;
    const call = "RunPodSandbox";
    return this.#call(call, metadata?.name, options, () => {
      if (!metadata) throw failed(call, "sandbox config must include metadata");
      const name = sandboxName(metadata);
      if (!this.#handlers.includes(handler)) {
        throw failed(call, `failed to get sandbox runtime: no runtime for "${handler}" is configured`, metadata.name);
      }
      const id = this.#reserve(call, "sandbox", name, metadata.name);
      const record: SandboxRecord = {
        id,
        name,
        config: kept,
        handler,
        createdAt: this.#stamp(),
        ready: true,
        ip: onHostNetwork(kept) ? "" : this.#nextIp(),
      };
      this.#sandboxes.set(id, record);
      this.#emit(id, id, event.CONTAINER_CREATED_EVENT);
      this.#emit(id, id, event.CONTAINER_STARTED_EVENT);
      return id;
    }, this.#timeoutMs);
  }

  stopPodSandbox(id: string, options: MutatingOptions): Promise<void> {
    return this.#call("StopPodSandbox", id, options, async (gone) => {
      const record = this.#findSandbox(id);
      if (record) await this.#stopSandbox(record, gone);
    });
  }

  removePodSandbox(id: string, options: MutatingOptions): Promise<void> {
    return this.#call("RemovePodSandbox", id, options, async (gone) => {
      const record = this.#findSandbox(id);
      if (!record) return;
      await this.#stopSandbox(record, gone);
      for (const container of this.#of(record.id)) this.#drop(container);
      this.#emit(record.id, record.id, event.CONTAINER_DELETED_EVENT);
      this.#sandboxes.delete(record.id);
      this.#names.delete(record.name);
    });
  }

  podSandboxStatus(id: string, options?: CallOptions): Promise<pb.PodSandboxStatusResponse> {
    const call = "PodSandboxStatus";
    return this.#call(call, id, options, () => {
      const record = this.#findSandbox(id);
      if (!record) throw notFound(call, `an error occurred when try to find sandbox: not found`, id);
      return create(pb.PodSandboxStatusResponseSchema, { status: sandboxStatus(record) });
    });
  }

  listPodSandboxes(filter?: SandboxFilterInit, options?: CallOptions): Promise<pb.PodSandbox[]> {
    return this.#call("ListPodSandbox", undefined, options, () => {
      const items: pb.PodSandbox[] = [];
      for (const r of this.#sandboxes.values()) if (matchesSandbox(r, filter)) items.push(sandboxItem(r));
      return items;
    });
  }

  updatePodSandboxResources(
    request: { id: string; overhead: ResourcesInit; resources: ResourcesInit },
    options: MutatingOptions,
  ): Promise<void> {
    const call = "UpdatePodSandboxResources";
    return this.#call(call, request.id, options, () => {
      if (this.#flavour === "1.6") throw unimplemented(call);
      if (!this.#findSandbox(request.id)) throw notFound(call, "failed to find sandbox: not found", request.id);
    });
  }

  // ---- containers ----

  createContainer(
    request: { sandboxId: string; config: ContainerConfigInit; sandboxConfig: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string> {
    const call = "CreateContainer";
    const config = keepContainerConfig(request.config);
    const pod = keepSandboxConfig(request.sandboxConfig);
    const target = config.metadata?.name;
    return this.#call(call, target, options, () => {
      const sandbox = this.#findSandbox(request.sandboxId);
      if (!sandbox) throw notFound(call, `failed to find sandbox id "${request.sandboxId}": not found`, target);
      if (!sandbox.ready) throw failed(call, `sandbox container "${sandbox.id}" is not running`, target);
      if (!config.metadata) throw failed(call, "container config must include metadata");
      if (!pod.metadata) throw failed(call, "pod sandbox config must include metadata", target);
      const name = containerName(config.metadata, pod.metadata);
      const imageName = config.image?.image ?? "";
      const image = this.images.find(imageName);
      const id = this.#reserve(call, "container", name, target);
      if (!image) {
        this.#names.delete(name);
        throw notFound(call, `failed to resolve image "${imageName}": image "${imageName}": not found`, target);
      }
      const record: ContainerRecord = {
        id,
        name,
        sandboxId: sandbox.id,
        config,
        logPath: config.logPath === "" ? "" : joinPath(pod.logDirectory, config.logPath),
        imageId: image.id,
        program: this.#options.programs?.(config, sandbox.config) ?? { onStop: "exits" },
        createdAt: this.#stamp(),
        ended: Promise.withResolvers<void>(),
        startedAt: 0n,
        finishedAt: 0n,
        exitCode: 0,
        reason: "",
        message: "",
        starting: false,
        signalled: false,
        resources: config.linux?.resources,
        timers: [],
      };
      this.#containers.set(id, record);
      this.#emit(id, sandbox.id, event.CONTAINER_CREATED_EVENT);
      return id;
    });
  }

  startContainer(id: string, options: MutatingOptions): Promise<void> {
    const call = "StartContainer";
    return this.#call(call, id, options, () => {
      const record = this.#container(call, id);
      const state = stateOf(record);
      if (state !== CONTAINER_CREATED) {
        throw failed(
          call,
          `failed to set starting state for container "${record.id}": container is in ${
            pb.ContainerState[state]
          } state`,
          id,
        );
      }
      const sandbox = this.#sandboxes.get(record.sandboxId);
      const reason = sandbox?.ready
        ? record.program.startError
        : `sandbox container "${record.sandboxId}" is not running`;
      if (reason !== undefined) {
        this.#lives.failStart(record, reason);
        throw failed(call, reason, id);
      }
      this.#lives.start(record);
      this.#emit(record.id, record.sandboxId, event.CONTAINER_STARTED_EVENT);
    });
  }

  stopContainer(id: string, graceSeconds: number, options: MutatingOptions): Promise<void> {
    const call = "StopContainer";
    const graceMs = Math.max(graceSeconds, 0) * 1_000;
    return this.#call(call, id, options, async (gone) => {
      // 1.6 knows no stop of a container that is not there; 2 takes it as done.
      const record = this.#flavour === "1.6" ? this.#container(call, id) : this.#findContainer(id);
      if (record) await this.#lives.stop(record, graceMs, gone);
    }, graceMs);
  }

  removeContainer(id: string, options: MutatingOptions): Promise<void> {
    return this.#call("RemoveContainer", id, options, async (gone) => {
      const record = this.#findContainer(id);
      if (!record) return;
      await this.#lives.stop(record, 0, gone);
      this.#drop(record);
    });
  }

  listContainers(filter?: ContainerFilterInit, options?: CallOptions): Promise<pb.Container[]> {
    return this.#call("ListContainers", undefined, options, () => {
      const items: pb.Container[] = [];
      for (const r of this.#containers.values()) {
        if (matchesContainer(r, filter)) items.push(containerItem(r, this.#flavour));
      }
      return items;
    });
  }

  containerStatus(
    id: string,
    options?: CallOptions & { verbose?: boolean },
  ): Promise<pb.ContainerStatusResponse> {
    const call = "ContainerStatus";
    return this.#call(call, id, options, () => {
      const record = this.#container(call, id);
      return create(pb.ContainerStatusResponseSchema, {
        status: this.#statusOf(record),
        info: options?.verbose ? { info: JSON.stringify({ sandboxID: record.sandboxId }) } : {},
      });
    });
  }

  updateContainerResources(id: string, resources: ResourcesInit, options: MutatingOptions): Promise<void> {
    const call = "UpdateContainerResources";
    return this.#call(call, id, options, () => {
      const record = this.#container(call, id);
      const state = stateOf(record);
      if (state !== CONTAINER_CREATED && state !== CONTAINER_RUNNING) {
        throw failed(
          call,
          `failed to update resources: container is in ${pb.ContainerState[state]} state`,
          id,
        );
      }
      const { $typeName: _, ...before } = record.resources ?? create(pb.LinuxContainerResourcesSchema);
      record.resources = create(pb.LinuxContainerResourcesSchema, { ...before, ...given(resources) });
    });
  }

  reopenContainerLog(id: string, options: MutatingOptions): Promise<void> {
    const call = "ReopenContainerLog";
    return this.#call(call, id, options, () => {
      if (stateOf(this.#container(call, id)) !== CONTAINER_RUNNING) throw failed(call, "container is not running", id);
    });
  }

  checkpointContainer(id: string, _location: string, _timeout: number, options: MutatingOptions): Promise<void> {
    return this.#call("CheckpointContainer", id, options, () => {
      throw unimplemented("CheckpointContainer");
    });
  }

  execSync(
    id: string,
    command: string[],
    timeoutSeconds: number,
    options?: CallOptions,
  ): Promise<ExecSyncResult> {
    const call = "ExecSync";
    // A run without a limit of its own has no deadline either, unless the caller gives one.
    const withLimit = timeoutSeconds > 0 ? options : { timeoutMs: 0, ...options };
    return this.#call(call, id, withLimit, async (gone) => {
      const record = this.#findContainer(id);
      if (!record) {
        throw notFound(call, `failed to exec in container: failed to find container "${id}" in store: not found`, id);
      }
      const state = stateOf(record);
      if (state !== CONTAINER_RUNNING) {
        throw failed(call, `failed to exec in container: container is in ${pb.ContainerState[state]} state`, id);
      }
      const reply = await record.program.exec?.(command) ?? {};
      const limitMs = timeoutSeconds > 0 ? timeoutSeconds * 1_000 : Infinity;
      const { ms = 0 } = reply;
      const waitMs = Math.min(ms, limitMs);
      const over = new AbortController();
      const onGone = () => over.abort(gone.reason);
      gone.addEventListener("abort", onGone, { once: true });
      try {
        if (waitMs > 0) {
          const wait = waitMs === Infinity ? never(over.signal) : this.#clock.sleep(waitMs, over.signal);
          await Promise.race([wait, record.ended.promise]);
        }
      } finally {
        gone.removeEventListener("abort", onGone);
        over.abort();
      }
      if (stateOf(record) !== CONTAINER_RUNNING) return execResult({ exitCode: killed });
      if (ms > limitMs) {
        throw new RuntimeError(
          call,
          grpcCode.DeadlineExceeded,
          `failed to exec in container: timeout ${timeoutSeconds}s exceeded: context deadline exceeded`,
          { target: id },
        );
      }
      return execResult(reply);
    }, Math.max(timeoutSeconds, 0) * 1_000);
  }

  exec(request: Parameters<RuntimeService["exec"]>[0], options?: CallOptions): Promise<string> {
    return this.#stream("Exec", request.containerId ?? "", options);
  }

  attach(request: Parameters<RuntimeService["attach"]>[0], options?: CallOptions): Promise<string> {
    return this.#stream("Attach", request.containerId ?? "", options);
  }

  portForward(request: Parameters<RuntimeService["portForward"]>[0], options?: CallOptions): Promise<string> {
    const call = "PortForward";
    const id = request.podSandboxId ?? "";
    return this.#call(call, id, options, () => {
      const record = this.#findSandbox(id);
      if (!record) throw notFound(call, `failed to find sandbox "${id}": not found`, id);
      if (!record.ready) throw failed(call, "sandbox container is not running", id);
      return `http://127.0.0.1:41000/portforward/${randomHex(this.#random, 4)}`;
    });
  }

  async *containerEvents(options: CallOptions): AsyncGenerator<pb.ContainerEventResponse> {
    const call = { call: "GetContainerEvents", target: undefined, options };
    this.#line.note(call);
    this.#line.reach(call);
    const fault = this.faults?.(call.call, undefined);
    if (fault?.error) throw fault.error;
    if (this.#flavour === "1.6") throw unimplemented(call.call);
    const { up } = this.#line;
    const stream = new Channel<pb.ContainerEventResponse>();
    const end = () => stream.close();
    this.#streams.add(stream);
    options.signal?.addEventListener("abort", end, { once: true });
    up.addEventListener("abort", end, { once: true });
    try {
      for await (const value of stream.values()) {
        if (options.signal?.aborted) break;
        yield value;
      }
    } finally {
      this.#streams.delete(stream);
      options.signal?.removeEventListener("abort", end);
      up.removeEventListener("abort", end);
    }
    if (options.signal?.aborted) throw abortedBy(options.signal);
    throw unavailable(call.call, undefined, "error reading from server: EOF");
  }

  // ---- statistics ----

  podSandboxStats(id: string, options?: CallOptions): Promise<pb.PodSandboxStats | undefined> {
    const call = "PodSandboxStats";
    return this.#call(call, id, options, () => {
      const record = this.#findSandbox(id);
      if (!record) throw notFound(call, "an error occurred when trying to find sandbox: not found", id);
      return sandboxStats(record, this.#of(record.id), this.#clock.now());
    });
  }

  listPodSandboxStats(options?: CallOptions): Promise<pb.PodSandboxStats[]> {
    return this.#call(
      "ListPodSandboxStats",
      undefined,
      options,
      () =>
        [...this.#sandboxes.values()].filter((r) => r.ready).map((r) =>
          sandboxStats(r, this.#of(r.id), this.#clock.now())
        ),
    );
  }

  containerStats(id: string, options?: CallOptions): Promise<pb.ContainerStats | undefined> {
    const call = "ContainerStats";
    return this.#call(call, id, options, () => containerStats(this.#container(call, id), this.#clock.now()));
  }

  listContainerStats(options?: CallOptions): Promise<pb.ContainerStats[]> {
    return this.#call(
      "ListContainerStats",
      undefined,
      options,
      () =>
        [...this.#containers.values()].filter((r) => stateOf(r) === CONTAINER_RUNNING)
          .map((r) => containerStats(r, this.#clock.now())),
    );
  }

  // ---- images ----

  listImages(options?: CallOptions): Promise<pb.Image[]> {
    return this.#call("ListImages", undefined, options, () => this.images.list().map(imageItem));
  }

  imageStatus(image: ImageSpecInit, options?: CallOptions): Promise<pb.Image | undefined> {
    return this.#call("ImageStatus", image.image, options, () => {
      const found = this.images.find(image.image ?? "");
      return found ? imageItem(found) : undefined;
    });
  }

  pullImage(
    request: { image: ImageSpecInit; auth?: AuthConfigInit; sandboxConfig?: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string> {
    const call = "PullImage";
    const asked = request.image.image ?? "";
    return this.#call(call, asked, { timeoutMs: 0, ...options }, async (gone) => {
      const name = normalReference(asked);
      if (name === undefined) {
        throw failed(call, `failed to parse image reference "${asked}": invalid reference format`, asked);
      }
      const reply = this.#options.registry?.(asked, request.auth) ?? {};
      if (reply.ms) await this.#clock.sleep(reply.ms, gone);
      if (reply.error) throw reply.error;
      return this.images.add({ ...reply.image, name }).id;
    });
  }

  removeImage(image: ImageSpecInit, options: MutatingOptions): Promise<void> {
    return this.#call("RemoveImage", image.image, options, () => this.images.remove(image.image ?? ""));
  }

  imageFsInfo(options?: CallOptions): Promise<pb.ImageFsInfoResponse> {
    return this.#call("ImageFsInfo", undefined, options, () => {
      const imageFilesystem = {
        timestamp: BigInt(this.#clock.now()) * 1_000_000n,
        fsId: { mountpoint: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs" },
        usedBytes: { value: this.images.usedBytes },
        inodesUsed: { value: BigInt(this.images.list().length) },
      };
      return create(pb.ImageFsInfoResponseSchema, {
        imageFilesystems: [imageFilesystem],
        containerFilesystems: this.#flavour === "1.6" ? [] : [imageFilesystem],
      });
    });
  }

  // ---- inside ----

  #call<T>(
    call: string,
    target: string | undefined,
    options: CallOptions | MutatingOptions | undefined,
    work: (gone: AbortSignal) => T | Promise<T>,
    extraMs = 0,
  ): Promise<T> {
    return this.#line.carry({ call, target, options, deadlineMs: this.#timeoutMs + extraMs }, work);
  }

  get #handlers(): readonly string[] {
    return this.#options.handlers ?? ["", "runc"];
  }

  /** The time in nanoseconds, never the same twice. */
  #stamp(): bigint {
    const now = BigInt(Math.floor(this.#clock.now())) * 1_000_000n;
    this.#lastStamp = now > this.#lastStamp ? now : this.#lastStamp + 1n;
    return this.#lastStamp;
  }

  #reserve(call: string, kind: "sandbox" | "container", name: string, target: string | undefined): string {
    const holder = this.#names.get(name);
    if (holder !== undefined) {
      throw failed(
        call,
        `failed to reserve ${kind} name "${name}": name "${name}" is reserved for "${holder}"`,
        target,
      );
    }
    const id = randomHex(this.#random, 32);
    this.#names.set(name, id);
    return id;
  }

  #nextIp(): string {
    const taken = new Set<string>();
    for (const record of this.#sandboxes.values()) taken.add(record.ip);
    for (let tries = 0; tries < 65_533; tries++) {
      this.#lastIp = this.#lastIp >= 65_534 ? 2 : this.#lastIp + 1;
      const ip = `${this.#podNet}.${this.#lastIp >> 8}.${this.#lastIp & 255}`;
      if (!taken.has(ip)) return ip;
    }
    throw failed("RunPodSandbox", "failed to setup network for sandbox: no IP addresses available in range set");
  }

  #findSandbox(id: string): SandboxRecord | undefined {
    return byPrefix(this.#sandboxes, id);
  }

  #findContainer(id: string): ContainerRecord | undefined {
    return byPrefix(this.#containers, id);
  }

  #container(call: string, id: string): ContainerRecord {
    const record = this.#findContainer(id);
    if (!record) throw notFound(call, `an error occurred when try to find container "${id}": not found`, id);
    return record;
  }

  #of(sandboxId: string): ContainerRecord[] {
    return [...this.#containers.values()].filter((r) => r.sandboxId === sandboxId);
  }

  async #stopSandbox(record: SandboxRecord, gone: AbortSignal): Promise<void> {
    for (const container of this.#of(record.id)) await this.#lives.stop(container, 0, gone);
    this.#sandboxEnds(record);
    record.ip = "";
  }

  #sandboxEnds(record: SandboxRecord): void {
    if (!record.ready) return;
    record.ready = false;
    this.#emit(record.id, record.id, event.CONTAINER_STOPPED_EVENT);
  }

  #drop(record: ContainerRecord): void {
    this.#containers.delete(record.id);
    this.#names.delete(record.name);
    this.#emit(record.id, record.sandboxId, event.CONTAINER_DELETED_EVENT);
  }

  #statusOf(record: ContainerRecord): pb.ContainerStatus {
    return containerStatus(record, this.images.find(record.imageId), this.#flavour);
  }

  #stream(call: string, id: string, options: CallOptions | undefined): Promise<string> {
    return this.#call(call, id, options, () => {
      const state = stateOf(this.#container(call, id));
      if (state !== CONTAINER_RUNNING) throw failed(call, `container is in ${pb.ContainerState[state]} state`, id);
      return `http://127.0.0.1:41000/${call.toLowerCase()}/${randomHex(this.#random, 4)}`;
    });
  }

  #emit(containerId: string, sandboxId: string, type: pb.ContainerEventType): void {
    if (this.#streams.size === 0) return;
    const sandbox = this.#sandboxes.get(sandboxId);
    const value = create(pb.ContainerEventResponseSchema, {
      containerId,
      containerEventType: type,
      createdAt: this.#stamp(),
      containersStatuses: this.#of(sandboxId).map((r) => this.#statusOf(r)),
      ...(sandbox ? { podSandboxStatus: sandboxStatus(sandbox) } : {}),
    });
    for (const stream of this.#streams) stream.push(value);
  }
}

/** Finds by id, or by the beginning of an id when only one has it. */
function byPrefix<T>(records: ReadonlyMap<string, T>, id: string): T | undefined {
  const direct = records.get(id);
  if (direct !== undefined || id === "" || id.length >= 64) return direct;
  let found: T | undefined;
  for (const [key, record] of records) {
    if (!key.startsWith(id)) continue;
    if (found !== undefined) return undefined;
    found = record;
  }
  return found;
}

/** The fields that an update sets: zero and empty ones leave the old value. */
function given(resources: ResourcesInit): ResourcesInit {
  const set = Object.entries(resources).filter(([key, value]) =>
    key !== "$typeName" && value !== undefined && value !== 0n && value !== "" &&
    !(Array.isArray(value) && value.length === 0)
  );
  return Object.fromEntries(set);
}

function execResult(reply: { exitCode?: number; stdout?: string; stderr?: string }): ExecSyncResult {
  const encoder = new TextEncoder();
  return {
    exitCode: reply.exitCode ?? 0,
    stdout: encoder.encode(reply.stdout ?? ""),
    stderr: encoder.encode(reply.stderr ?? ""),
  };
}

function joinPath(directory: string, path: string): string {
  return `${directory}/${path}`.replace(/\/+/g, "/");
}

function failed(call: string, details: string, target?: string): RuntimeError {
  return new RuntimeError(call, grpcCode.Unknown, details, target === undefined ? {} : { target });
}

function notFound(call: string, details: string, target?: string): RuntimeError {
  return new RuntimeError(call, grpcCode.NotFound, details, target === undefined ? {} : { target });
}

function unimplemented(call: string): RuntimeError {
  return new RuntimeError(call, grpcCode.Unimplemented, `unknown method ${call} for service runtime.v1.RuntimeService`);
}
