import { clone, create } from "@bufbuild/protobuf";
import type { ContainerConfigInit, ContainerFilterInit, SandboxConfigInit, SandboxFilterInit } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import type { StoredImage } from "./images.ts";
import type { Program } from "./program.ts";

/** A sandbox as the fake keeps it. Times are nanoseconds. */
export interface SandboxRecord {
  readonly id: string;
  readonly name: string;
  readonly config: pb.PodSandboxConfig;
  readonly handler: string;
  readonly createdAt: bigint;
  ready: boolean;
  /** Empty on the host's network, and once the sandbox has been stopped. */
  ip: string;
}

/** A container as the fake keeps it. Times are nanoseconds, 0 when not yet. */
export interface ContainerRecord {
  readonly id: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly config: pb.ContainerConfig;
  readonly logPath: string;
  readonly imageId: string;
  readonly program: Program;
  readonly createdAt: bigint;
  /** Settles when the process has ended. */
  readonly ended: PromiseWithResolvers<void>;
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  message: string;
  /** A stop signal is sent once, however often StopContainer is called. */
  signalled: boolean;
  resources: pb.LinuxContainerResources | undefined;
  timers: Disposable[];
}

const { CONTAINER_CREATED, CONTAINER_EXITED, CONTAINER_RUNNING } = pb.ContainerState;

/** The CRI state; derived from the times, as containerd does. */
export function stateOf(record: ContainerRecord): pb.ContainerState {
  if (record.finishedAt !== 0n) return CONTAINER_EXITED;
  return record.startedAt === 0n ? CONTAINER_CREATED : CONTAINER_RUNNING;
}

/** Makes a config that the fake can keep: a copy, so that its owner may change his, and frozen, so that none does. */
export function keepSandboxConfig(init: SandboxConfigInit): pb.PodSandboxConfig {
  return freeze(clone(pb.PodSandboxConfigSchema, create(pb.PodSandboxConfigSchema, init)));
}

/** The same for a container's. */
export function keepContainerConfig(init: ContainerConfigInit): pb.ContainerConfig {
  return freeze(clone(pb.ContainerConfigSchema, create(pb.ContainerConfigSchema, init)));
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value) && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) freeze(member);
  }
  return value;
}

/** The name under which containerd reserves a sandbox. */
export function sandboxName(metadata: pb.PodSandboxMetadata): string {
  return [metadata.name, metadata.namespace, metadata.uid, metadata.attempt].join("_");
}

/** The name under which containerd reserves a container. */
export function containerName(metadata: pb.ContainerMetadata, pod: pb.PodSandboxMetadata): string {
  return [metadata.name, pod.name, pod.namespace, pod.uid, metadata.attempt].join("_");
}

/** True when the sandbox asks for the node's network. */
export function onHostNetwork(config: pb.PodSandboxConfig): boolean {
  return config.linux?.securityContext?.namespaceOptions?.network === pb.NamespaceMode.NODE;
}

export function sandboxItem(record: SandboxRecord): pb.PodSandbox {
  const { config } = record;
  return create(pb.PodSandboxSchema, {
    id: record.id,
    state: sandboxState(record),
    createdAt: record.createdAt,
    labels: config.labels,
    annotations: config.annotations,
    runtimeHandler: record.handler,
    ...(config.metadata ? { metadata: config.metadata } : {}),
  });
}

function sandboxState(record: SandboxRecord): pb.PodSandboxState {
  return record.ready ? pb.PodSandboxState.SANDBOX_READY : pb.PodSandboxState.SANDBOX_NOTREADY;
}

export function sandboxStatus(record: SandboxRecord): pb.PodSandboxStatus {
  const { config } = record;
  const namespaces = config.linux?.securityContext?.namespaceOptions;
  return create(pb.PodSandboxStatusSchema, {
    id: record.id,
    state: sandboxState(record),
    createdAt: record.createdAt,
    network: { ip: record.ip },
    linux: { namespaces: namespaces ? { options: namespaces } : {} },
    labels: config.labels,
    annotations: config.annotations,
    runtimeHandler: record.handler,
    ...(config.metadata ? { metadata: config.metadata } : {}),
  });
}

export function containerItem(record: ContainerRecord, flavour: Flavour): pb.Container {
  const { config } = record;
  return create(pb.ContainerSchema, {
    id: record.id,
    podSandboxId: record.sandboxId,
    imageRef: record.imageId,
    imageId: flavour === "1.6" ? "" : record.imageId,
    state: stateOf(record),
    createdAt: record.createdAt,
    labels: config.labels,
    annotations: config.annotations,
    ...(config.metadata ? { metadata: config.metadata } : {}),
    ...(config.image ? { image: config.image } : {}),
  });
}

/** Which containerd the fake takes after. */
export type Flavour = "1.6" | "2";

export function containerStatus(
  record: ContainerRecord,
  image: StoredImage | undefined,
  flavour: Flavour,
): pb.ContainerStatus {
  const { config } = record;
  const state = stateOf(record);
  const tag = image?.repoTags[0];
  const spec = tag === undefined ? config.image : create(pb.ImageSpecSchema, { image: tag });
  const reason = state === CONTAINER_EXITED && record.reason === ""
    ? record.exitCode === 0 ? "Completed" : "Error"
    : record.reason;
  const user = config.linux?.securityContext;
  return create(pb.ContainerStatusSchema, {
    id: record.id,
    state,
    createdAt: record.createdAt,
    startedAt: record.startedAt,
    finishedAt: record.finishedAt,
    exitCode: record.exitCode,
    imageRef: image?.repoDigests[0] ?? record.imageId,
    imageId: flavour === "1.6" ? "" : record.imageId,
    reason,
    message: record.message,
    labels: config.labels,
    annotations: config.annotations,
    mounts: config.mounts,
    logPath: record.logPath,
    ...(config.metadata ? { metadata: config.metadata } : {}),
    ...(spec ? { image: spec } : {}),
    ...(record.resources ? { resources: { linux: record.resources } } : {}),
    ...(flavour === "1.6" ? {} : {
      user: {
        linux: {
          uid: user?.runAsUser?.value ?? image?.uid ?? 0n,
          gid: user?.runAsGroup?.value ?? 0n,
          supplementalGroups: user?.supplementalGroups ?? [],
        },
      },
      stopSignal: config.stopSignal === pb.Signal.RUNTIME_DEFAULT ? pb.Signal.SIGTERM : config.stopSignal,
    }),
  });
}

type Labels = Readonly<Record<string, string>>;

function labelsMatch(labels: Labels, selector: Labels | undefined): boolean {
  return selector === undefined ||
    Object.entries(selector).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

/** Containers that a filter lets through; ids may be shortened, as containerd allows. */
export function matchesContainer(record: ContainerRecord, filter: ContainerFilterInit | undefined): boolean {
  if (filter === undefined) return true;
  const { id, podSandboxId, state, labelSelector } = filter;
  return (!id || record.id.startsWith(id)) && (!podSandboxId || record.sandboxId.startsWith(podSandboxId)) &&
    (state === undefined || (state.state ?? CONTAINER_CREATED) === stateOf(record)) &&
    labelsMatch(record.config.labels, labelSelector);
}

/** Sandboxes that a filter lets through. */
export function matchesSandbox(record: SandboxRecord, filter: SandboxFilterInit | undefined): boolean {
  if (filter === undefined) return true;
  const { id, state, labelSelector } = filter;
  return (!id || record.id.startsWith(id)) &&
    (state === undefined || (state.state ?? pb.PodSandboxState.SANDBOX_READY) === sandboxState(record)) &&
    labelsMatch(record.config.labels, labelSelector);
}
