import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Because } from "../mod/base/journal.ts";
import { KubeletError, messageOf } from "../mod/base/errors.ts";
import type * as pb from "./gen/runtime_pb.ts";

/** Options of every call: abort, and a deadline other than the client's own (runtimeRequestTimeout). */
export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds; 0 means no deadline. */
  timeoutMs?: number;
}

/** Options of a call that changes something: the reason that its one journal record will carry. */
export interface MutatingOptions extends CallOptions {
  because: Because;
}

export type SandboxConfigInit = MessageInitShape<typeof pb.PodSandboxConfigSchema>;
export type ContainerConfigInit = MessageInitShape<typeof pb.ContainerConfigSchema>;
export type SandboxFilterInit = MessageInitShape<typeof pb.PodSandboxFilterSchema>;
export type ContainerFilterInit = MessageInitShape<typeof pb.ContainerFilterSchema>;
export type ResourcesInit = MessageInitShape<typeof pb.LinuxContainerResourcesSchema>;
export type ImageSpecInit = MessageInitShape<typeof pb.ImageSpecSchema>;
export type AuthConfigInit = MessageInitShape<typeof pb.AuthConfigSchema>;

/** Status codes of gRPC that the agent tells apart. */
export const grpcCode = {
  Cancelled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
} as const;

/** A failed CRI call: which one, on what, the runtime's status and words. */
export class RuntimeError extends KubeletError {
  override readonly name = "RuntimeError";
  constructor(readonly call: string, readonly status: number, readonly details: string, options?: {
    target?: string;
    cause?: unknown;
  }) {
    const code = status === grpcCode.Unavailable
      ? "RuntimeUnavailable"
      : status === grpcCode.DeadlineExceeded
      ? "Timeout"
      : status === grpcCode.Cancelled
      ? "Aborted"
      : "Runtime";
    super(code, `${call}${options?.target ? ` ${options.target}` : ""}: ${details}`, { cause: options?.cause });
  }
}

/** Why the runtime does not answer, without the name of the call, which is any call's; for a sentence that says so. */
export function silenceOf(thrown: unknown): string {
  return thrown instanceof RuntimeError ? thrown.details : messageOf(thrown);
}

/** True when the runtime says that the object of the call does not exist. */
export function isNotFound(thrown: unknown): boolean {
  return thrown instanceof RuntimeError && thrown.status === grpcCode.NotFound;
}

/** True when the runtime does not have the call. */
export function isUnimplemented(thrown: unknown): boolean {
  return thrown instanceof RuntimeError && thrown.status === grpcCode.Unimplemented;
}

export interface ExecSyncResult {
  stdout: Uint8Array;
  stderr: Uint8Array;
  exitCode: number;
}

/** The CRI v1 runtime service. Rejections are RuntimeErrors, or Aborted when the caller's signal aborted. */
export interface RuntimeService {
  version(options?: CallOptions): Promise<pb.VersionResponse>;
  status(request: { verbose: boolean }, options?: CallOptions): Promise<pb.StatusResponse>;
  runtimeConfig(options?: CallOptions): Promise<pb.RuntimeConfigResponse>;
  updateRuntimeConfig(podCidr: string, options: MutatingOptions): Promise<void>;

  /** Returns the new sandbox's id. */
  runPodSandbox(config: SandboxConfigInit, handler: string, options: MutatingOptions): Promise<string>;
  stopPodSandbox(id: string, options: MutatingOptions): Promise<void>;
  removePodSandbox(id: string, options: MutatingOptions): Promise<void>;
  podSandboxStatus(id: string, options?: CallOptions): Promise<pb.PodSandboxStatusResponse>;
  listPodSandboxes(filter?: SandboxFilterInit, options?: CallOptions): Promise<pb.PodSandbox[]>;
  updatePodSandboxResources(
    request: { id: string; overhead: ResourcesInit; resources: ResourcesInit },
    options: MutatingOptions,
  ): Promise<void>;

  /** Returns the new container's id. */
  createContainer(
    request: { sandboxId: string; config: ContainerConfigInit; sandboxConfig: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string>;
  startContainer(id: string, options: MutatingOptions): Promise<void>;
  /** @param graceSeconds seconds between the stop signal and SIGKILL; the deadline is extended by as much */
  stopContainer(id: string, graceSeconds: number, options: MutatingOptions): Promise<void>;
  removeContainer(id: string, options: MutatingOptions): Promise<void>;
  listContainers(filter?: ContainerFilterInit, options?: CallOptions): Promise<pb.Container[]>;
  containerStatus(id: string, options?: CallOptions & { verbose?: boolean }): Promise<pb.ContainerStatusResponse>;
  updateContainerResources(id: string, resources: ResourcesInit, options: MutatingOptions): Promise<void>;
  reopenContainerLog(id: string, options: MutatingOptions): Promise<void>;
  checkpointContainer(id: string, location: string, timeoutSeconds: number, options: MutatingOptions): Promise<void>;

  /** Runs a command in a container. @param timeoutSeconds 0 means none; a run over it rejects with code Timeout */
  execSync(id: string, command: string[], timeoutSeconds: number, options?: CallOptions): Promise<ExecSyncResult>;
  /** Each returns the URL of the runtime's streaming server. */
  exec(request: MessageInitShape<typeof pb.ExecRequestSchema>, options?: CallOptions): Promise<string>;
  attach(request: MessageInitShape<typeof pb.AttachRequestSchema>, options?: CallOptions): Promise<string>;
  portForward(request: MessageInitShape<typeof pb.PortForwardRequestSchema>, options?: CallOptions): Promise<string>;

  /** Container events until the signal aborts; rejects with Unimplemented on a runtime without them. */
  containerEvents(options: CallOptions): AsyncIterable<pb.ContainerEventResponse>;

  podSandboxStats(id: string, options?: CallOptions): Promise<pb.PodSandboxStats | undefined>;
  listPodSandboxStats(options?: CallOptions): Promise<pb.PodSandboxStats[]>;
  containerStats(id: string, options?: CallOptions): Promise<pb.ContainerStats | undefined>;
  listContainerStats(options?: CallOptions): Promise<pb.ContainerStats[]>;
}

/** The CRI v1 image service. */
export interface ImageService {
  listImages(options?: CallOptions): Promise<pb.Image[]>;
  /** Undefined when the runtime does not have the image. */
  imageStatus(image: ImageSpecInit, options?: CallOptions): Promise<pb.Image | undefined>;
  /** Returns the image's reference. The default deadline is none: a pull takes as long as it takes. */
  pullImage(
    request: { image: ImageSpecInit; auth?: AuthConfigInit; sandboxConfig?: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string>;
  removeImage(image: ImageSpecInit, options: MutatingOptions): Promise<void>;
  imageFsInfo(options?: CallOptions): Promise<pb.ImageFsInfoResponse>;
}
