import type { ContainerConfigInit, SandboxConfigInit } from "../../cri/api.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import type { PodContainer } from "../../mod/kube/pod.ts";
import type { BoundPod, Container, PodStatus } from "../../mod/kube/types.ts";
import type { EnvObjects } from "../../mod/pod/config/env.ts";
import type { MountedVolume } from "../volumes/types.ts";

/** Waiting reasons of a failed start (runtime-contract.md section 15). */
export type StartReason =
  | "CreateContainerConfigError"
  | "CreateContainerError"
  | "PreCreateHookError"
  | "RunContainerError"
  | "PostStartHookError";

/** A container could not be started; `reason` is what its status shows. */
export class StartError extends KubeletError {
  override readonly name = "StartError";
  constructor(readonly reason: StartReason | string, message: string, options?: { cause?: unknown }) {
    super("Runtime", message, options);
  }
}

/** What a start needs to know of the pod besides its spec. */
export interface PodSituation {
  readonly volumes: ReadonlyMap<string, MountedVolume>;
  /** The pod's addresses, primary first. */
  readonly podIPs: readonly string[];
  /** The status as last published: restart counts go on from it. */
  readonly status: PodStatus | undefined;
}

/** Where a container's variables come from besides its pod's own fields. */
export interface EnvSource {
  /**
   * Reads what the container's variables refer to. What is missing or cannot be read is told by the answer's own
   * functions, so that it matters only to a variable that is not optional. Rejects when nothing can be told at all.
   */
  read(request: {
    pod: BoundPod;
    container: Container;
    volumes: ReadonlyMap<string, MountedVolume>;
    signal: AbortSignal;
  }): Promise<{ readonly objects: EnvObjects; readonly services: ReadonlyMap<string, string> }>;
}

/** Builds what CRI is given for a pod, and prepares the files that a container needs on the node. */
export interface PodBuilder {
  /** The runtime's handler for a new sandbox, by the pod's class. @throws KubeletError when there is no such class */
  handlerOf(pod: BoundPod, signal: AbortSignal): Promise<string>;
  /** @throws StartError or KubeletError when the pod asks for what cannot be given */
  sandbox(pod: BoundPod, attempt: number, handler: string): Promise<SandboxConfigInit>;
  container(request: {
    pod: BoundPod;
    container: PodContainer;
    restartCount: number;
    image: { imageRef: string; uid?: number; username?: string };
    /** By volume name: the reference of each image that the container mounts, which is there. */
    imageVolumes: ReadonlyMap<string, string>;
    situation: PodSituation;
    /** The sandbox's. */
    handler: string;
    /** The running container whose namespaces an ephemeral one shares. */
    targetContainerId: string | undefined;
    signal: AbortSignal;
  }): Promise<ContainerConfigInit>;
}

/** Files of a container's logs. */
export interface ContainerLogFiles {
  /** Makes the pod's and the container's log directory. */
  prepare(pod: BoundPod, container: string): Promise<void>;
  /** The number that the next log file gets, when only the files tell: highest + 1, or 0. */
  nextRestartCount(pod: BoundPod, container: string): Promise<number>;
  /** Makes the legacy link below /var/log/containers. */
  link(pod: BoundPod, container: string, containerId: string, restartCount: number): Promise<void>;
}
