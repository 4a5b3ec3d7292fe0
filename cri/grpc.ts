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
} from "./api.ts";
import { assertStartable, assertVariables } from "./command_limits.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import * as pb from "./gen/runtime_pb.ts";

const runtime = pb.RuntimeService.method;
const images = pb.ImageService.method;

/** Options of a client of the CRI. */
export type ClientOptions = ConnectionOptions;

/**
 * Makes a client of a runtime's CRI v1 on a unix socket. It connects when it is first used. Throws BadConfig for an
 * endpoint that is not a unix socket's. Dispose of it to close the connection.
 */
export function createRuntimeClient(options: ClientOptions): RuntimeService & Disposable {
  return new RuntimeClient(new Connection(options));
}

/** Makes a client of the image service; its endpoint is the runtime's own when none is configured. */
export function createImageClient(options: ClientOptions): ImageService & Disposable {
  return new ImageClient(new Connection({ field: "imageServiceEndpoint", ...options }));
}

class RuntimeClient implements RuntimeService, Disposable {
  constructor(private readonly line: Connection) {}

  version(options?: CallOptions): Promise<pb.VersionResponse> {
    return this.line.unary(runtime.version, { version: "v1" }, { options });
  }
  status(request: { verbose: boolean }, options?: CallOptions): Promise<pb.StatusResponse> {
    return this.line.unary(runtime.status, request, { options });
  }
  runtimeConfig(options?: CallOptions): Promise<pb.RuntimeConfigResponse> {
    return this.line.unary(runtime.runtimeConfig, {}, { options });
  }
  async updateRuntimeConfig(podCidr: string, options: MutatingOptions): Promise<void> {
    const request = { runtimeConfig: { networkConfig: { podCidr } } };
    await this.line.unary(runtime.updateRuntimeConfig, request, { options, target: podCidr });
  }

  async runPodSandbox(config: SandboxConfigInit, handler: string, options: MutatingOptions): Promise<string> {
    const { podSandboxId } = await this.line.unary(
      runtime.runPodSandbox,
      { config, runtimeHandler: handler },
      // It has twice the time, as with the kubelet: the sandbox's image is pulled and its network set up meanwhile.
      { options, target: nameOf(config), extraMs: this.line.timeoutMs },
    );
    return podSandboxId;
  }
  async stopPodSandbox(id: string, options: MutatingOptions): Promise<void> {
    await this.line.unary(runtime.stopPodSandbox, { podSandboxId: id }, { options, target: id });
  }
  async removePodSandbox(id: string, options: MutatingOptions): Promise<void> {
    await this.line.unary(runtime.removePodSandbox, { podSandboxId: id }, { options, target: id });
  }
  podSandboxStatus(id: string, options?: CallOptions): Promise<pb.PodSandboxStatusResponse> {
    return this.line.unary(runtime.podSandboxStatus, { podSandboxId: id }, { options, target: id });
  }
  async listPodSandboxes(filter?: SandboxFilterInit, options?: CallOptions): Promise<pb.PodSandbox[]> {
    return (await this.line.unary(runtime.listPodSandbox, withFilter(filter), { options })).items;
  }
  async updatePodSandboxResources(
    request: { id: string; overhead: ResourcesInit; resources: ResourcesInit },
    options: MutatingOptions,
  ): Promise<void> {
    const { id, overhead, resources } = request;
    await this.line.unary(
      runtime.updatePodSandboxResources,
      { podSandboxId: id, overhead, resources },
      { options, target: id },
    );
  }

  async createContainer(
    request: { sandboxId: string; config: ContainerConfigInit; sandboxConfig: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string> {
    const { sandboxId, config, sandboxConfig } = request;
    const { command = [], args = [], envs = [] } = config;
    // Without a command the program is the image's.
    assertStartable("CreateContainer", nameOf(config), [...command.length > 0 ? command : [""], ...args]);
    assertVariables("CreateContainer", nameOf(config), envs);
    const { containerId } = await this.line.unary(
      runtime.createContainer,
      { podSandboxId: sandboxId, config, sandboxConfig },
      { options, target: nameOf(config) },
    );
    return containerId;
  }
  async startContainer(id: string, options: MutatingOptions): Promise<void> {
    await this.line.unary(runtime.startContainer, { containerId: id }, { options, target: id });
  }
  async stopContainer(id: string, graceSeconds: number, options: MutatingOptions): Promise<void> {
    const seconds = wholeSeconds(graceSeconds);
    await this.line.unary(
      runtime.stopContainer,
      { containerId: id, timeout: BigInt(seconds) },
      { options, target: id, extraMs: seconds * 1_000 },
    );
  }
  async removeContainer(id: string, options: MutatingOptions): Promise<void> {
    await this.line.unary(runtime.removeContainer, { containerId: id }, { options, target: id });
  }
  async listContainers(filter?: ContainerFilterInit, options?: CallOptions): Promise<pb.Container[]> {
    return (await this.line.unary(runtime.listContainers, withFilter(filter), { options })).containers;
  }
  containerStatus(id: string, options?: CallOptions & { verbose?: boolean }): Promise<pb.ContainerStatusResponse> {
    const request = { containerId: id, verbose: options?.verbose ?? false };
    return this.line.unary(runtime.containerStatus, request, { options, target: id });
  }
  async updateContainerResources(id: string, resources: ResourcesInit, options: MutatingOptions): Promise<void> {
    const request = { containerId: id, linux: resources };
    await this.line.unary(runtime.updateContainerResources, request, { options, target: id });
  }
  async reopenContainerLog(id: string, options: MutatingOptions): Promise<void> {
    await this.line.unary(runtime.reopenContainerLog, { containerId: id }, { options, target: id });
  }
  async checkpointContainer(
    id: string,
    location: string,
    timeoutSeconds: number,
    options: MutatingOptions,
  ): Promise<void> {
    const seconds = wholeSeconds(timeoutSeconds);
    await this.line.unary(
      runtime.checkpointContainer,
      { containerId: id, location, timeout: BigInt(seconds) },
      { options, target: id, extraMs: seconds * 1_000 },
    );
  }

  async execSync(
    id: string,
    command: string[],
    timeoutSeconds: number,
    options?: CallOptions,
  ): Promise<ExecSyncResult> {
    assertStartable("ExecSync", id, command);
    const seconds = wholeSeconds(timeoutSeconds);
    // A command without a limit runs as long as it runs.
    const limited = seconds > 0 ? options : { timeoutMs: 0, ...options };
    const { stdout, stderr, exitCode } = await this.line.unary(
      runtime.execSync,
      { containerId: id, cmd: command, timeout: BigInt(seconds) },
      { options: limited, target: id, extraMs: seconds * 1_000 },
    );
    return { stdout, stderr, exitCode };
  }
  async exec(request: Parameters<RuntimeService["exec"]>[0], options?: CallOptions): Promise<string> {
    assertStartable("Exec", request.containerId, request.cmd ?? []);
    return (await this.line.unary(runtime.exec, request, { options, target: request.containerId })).url;
  }
  async attach(request: Parameters<RuntimeService["attach"]>[0], options?: CallOptions): Promise<string> {
    return (await this.line.unary(runtime.attach, request, { options, target: request.containerId })).url;
  }
  async portForward(request: Parameters<RuntimeService["portForward"]>[0], options?: CallOptions): Promise<string> {
    return (await this.line.unary(runtime.portForward, request, { options, target: request.podSandboxId })).url;
  }

  containerEvents(options: CallOptions): AsyncIterable<pb.ContainerEventResponse> {
    return this.line.stream(runtime.getContainerEvents, {}, { options });
  }

  async podSandboxStats(id: string, options?: CallOptions): Promise<pb.PodSandboxStats | undefined> {
    return (await this.line.unary(runtime.podSandboxStats, { podSandboxId: id }, { options, target: id })).stats;
  }
  async listPodSandboxStats(options?: CallOptions): Promise<pb.PodSandboxStats[]> {
    return (await this.line.unary(runtime.listPodSandboxStats, {}, { options })).stats;
  }
  async containerStats(id: string, options?: CallOptions): Promise<pb.ContainerStats | undefined> {
    return (await this.line.unary(runtime.containerStats, { containerId: id }, { options, target: id })).stats;
  }
  async listContainerStats(options?: CallOptions): Promise<pb.ContainerStats[]> {
    return (await this.line.unary(runtime.listContainerStats, {}, { options })).stats;
  }

  [Symbol.dispose](): void {
    this.line[Symbol.dispose]();
  }
}

class ImageClient implements ImageService, Disposable {
  constructor(private readonly line: Connection) {}

  async listImages(options?: CallOptions): Promise<pb.Image[]> {
    return (await this.line.unary(images.listImages, {}, { options })).images;
  }
  async imageStatus(image: ImageSpecInit, options?: CallOptions): Promise<pb.Image | undefined> {
    return (await this.line.unary(images.imageStatus, { image }, { options, target: image.image })).image;
  }
  async pullImage(
    request: { image: ImageSpecInit; auth?: AuthConfigInit; sandboxConfig?: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string> {
    const calling = { options: { timeoutMs: 0, ...options }, target: request.image.image };
    return (await this.line.unary(images.pullImage, request, calling)).imageRef;
  }
  async removeImage(image: ImageSpecInit, options: MutatingOptions): Promise<void> {
    await this.line.unary(images.removeImage, { image }, { options, target: image.image });
  }
  imageFsInfo(options?: CallOptions): Promise<pb.ImageFsInfoResponse> {
    return this.line.unary(images.imageFsInfo, {}, { options });
  }

  [Symbol.dispose](): void {
    this.line[Symbol.dispose]();
  }
}

function withFilter<F>(filter: F | undefined): { filter?: F } {
  return filter === undefined ? {} : { filter };
}

/** Whole seconds, none negative: what is no number counts as none. */
function wholeSeconds(seconds: number): number {
  return Number.isFinite(seconds) ? Math.max(Math.trunc(seconds), 0) : 0;
}

function nameOf(config: { metadata?: { name?: string | undefined } | undefined }): string | undefined {
  return config.metadata?.name;
}
