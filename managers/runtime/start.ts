import { RuntimeError, type RuntimeService, type SandboxConfigInit } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { Deadline } from "../../mod/base/deadline.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Because } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { containerPath, type PodContainer, podRef } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { StartContainer, Why } from "../../mod/pod/actions.ts";
import { newest, type ObservedPod } from "../../mod/pod/observed.ts";
import { effectiveResources } from "../../mod/pod/resize/needs.ts";
import type { ActuatedResources } from "../allocation/types.ts";
import type { ImageManager } from "../images/types.ts";
import type { HookRunner } from "../lifecycle/types.ts";
import type { ExitWatch } from "./exit_watch.ts";
import type { Killer } from "./kill.ts";
import { imageVolumesOf } from "./image_volumes.ts";
import { type ContainerLogFiles, type PodBuilder, type PodSituation, StartError } from "./types.ts";

export interface StarterOptions {
  runtime: Pick<RuntimeService, "createContainer" | "startContainer">;
  images: ImageManager;
  builder: PodBuilder;
  hooks: HookRunner;
  killer: Killer;
  logs: ContainerLogFiles;
  clock: Clock;
  events: EventSink;
  log: Logger;
  /** Tells that a container has ended: its postStart hook is then waited for no longer. */
  exits: ExitWatch;
  /** Keeps the resources that containers are made with; nothing is kept without it. */
  actuated?: ActuatedResources | undefined;
  /** Owns what goes on after a start, such as the legacy log link. */
  scope: Scope;
}

export interface StartRequest {
  readonly pod: BoundPod;
  readonly container: PodContainer;
  readonly start: StartContainer;
  readonly observed: ObservedPod;
  readonly sandboxId: string;
  readonly sandboxConfig: SandboxConfigInit;
  readonly handler: string;
  readonly situation: PodSituation;
  readonly signal: AbortSignal;
}

/**
 * Starts one container: image, restart count, configuration, create, start, link, postStart
 * (runtime-contract.md section 7). Rejects with ImageError or StartError, whose reason the container's status shows.
 */
export class Starter {
  readonly #o: StarterOptions;

  constructor(options: StarterOptions) {
    this.#o = options;
  }

  async start(request: StartRequest): Promise<void> {
    const { pod, container } = request;
    const image = await this.#image(request, container.spec);
    const imageVolumes = new Map<string, string>();
    for (const volume of imageVolumesOf(pod, container)) {
      imageVolumes.set(volume.name, (await this.#image(request, volume)).imageRef);
    }
    const restartCount = await this.#restartCount(request);
    const id = await this.#create(request, restartCount, image, imageVolumes);
    await this.#launch(request, id);
    const name = container.spec.name;
    this.#o.scope.spawn(`log link ${id}`, async () => {
      try {
        await this.#o.logs.link(pod, name, id, restartCount);
      } catch (thrown) {
        this.#o.log.warn("the legacy log link cannot be made", { container: name, error: messageOf(thrown) });
      }
    });
    await this.#postStart(request, id);
  }

  async #image(
    request: StartRequest,
    wanted: Parameters<ImageManager["ensure"]>[0]["container"],
  ): ReturnType<ImageManager["ensure"]> {
    const { pod, sandboxConfig, handler, signal } = request;
    try {
      return await this.#o.images.ensure({
        pod,
        container: wanted,
        sandboxConfig,
        runtimeHandler: handler,
        signal,
      });
    } catch (thrown) {
      const reason = reasonOf(thrown);
      if (reason !== undefined) this.#event(request, "Warning", "Failed", `Error: ${reason}`);
      throw thrown;
    }
  }

  /** Previous status + 1; without a status, from the log files (section 5). */
  async #restartCount({ pod, container, observed, situation }: StartRequest): Promise<number> {
    const { name } = container.spec;
    const last = newest(observed, name);
    const statuses = [
      ...situation.status?.initContainerStatuses ?? [],
      ...situation.status?.containerStatuses ?? [],
      ...situation.status?.ephemeralContainerStatuses ?? [],
    ];
    const status = statuses.find((s) => s.name === name);
    // A status without any instance (never started) has nothing to count from.
    const counted = status && (status.containerID || status.lastState?.terminated) ? status.restartCount : undefined;
    // One that was made and never started has been removed: the next one stands in for it.
    if (last?.state === "created") return Math.max(last.restartCount, counted ?? 0);
    if (last) return Math.max(last.restartCount, counted ?? 0) + 1;
    // Every instance is gone from the runtime. A status that shows the end of one has not counted that loss yet.
    const next = (counted ?? 0) + (status?.state?.terminated?.containerID ? 1 : 0);
    return Math.max(await this.#o.logs.nextRestartCount(pod, name), next);
  }

  async #create(
    request: StartRequest,
    restartCount: number,
    image: { imageRef: string; uid?: number; username?: string },
    imageVolumes: ReadonlyMap<string, string>,
  ): Promise<string> {
    const { pod, container, signal, observed } = request;
    const target = container.kind === "ephemeral"
      ? pod.spec.ephemeralContainers?.find((c) => c.name === container.spec.name)?.targetContainerName
      : undefined;
    const targetContainer = target ? newest(observed, target) : undefined;
    let config;
    try {
      await this.#o.logs.prepare(pod, container.spec.name);
      config = await this.#o.builder.container({
        pod,
        container,
        restartCount,
        image,
        imageVolumes,
        situation: request.situation,
        handler: request.handler,
        targetContainerId: targetContainer?.state === "running" ? targetContainer.id : undefined,
        signal,
      });
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      throw this.#failed(request, "CreateContainerConfigError", messageOf(thrown), thrown);
    }
    const { actuated } = this.#o;
    if (actuated && container.kind !== "ephemeral") {
      const { spec } = container;
      await actuated.setContainer(pod, spec.name, effectiveResources(spec, pod, actuated.gates));
    }
    try {
      const id = await this.#o.runtime.createContainer({
        sandboxId: request.sandboxId,
        config,
        sandboxConfig: request.sandboxConfig,
      }, { because: this.#because(request), signal });
      this.#event(request, "Normal", "Created", "Container created");
      return id;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      throw this.#failed(request, "CreateContainerError", runtimeWords(thrown), thrown);
    }
  }

  async #launch(request: StartRequest, id: string): Promise<void> {
    try {
      await this.#o.runtime.startContainer(id, { because: this.#because(request), signal: request.signal });
      this.#event(request, "Normal", "Started", "Container started");
    } catch (thrown) {
      if (request.signal.aborted) throw thrown;
      throw this.#failed(request, "RunContainerError", runtimeWords(thrown), thrown);
    }
  }

  async #postStart(request: StartRequest, id: string): Promise<void> {
    const { pod, container, signal, situation } = request;
    const handler = container.spec.lifecycle?.postStart;
    if (!handler) return;
    // A hook has no time limit of its own, and the runtime may never answer for a container that has ended meanwhile.
    using limit = new Deadline({ clock: this.#o.clock, signal });
    using _exit = this.#o.exits.when(id, () => limit.end());
    try {
      await this.#o.hooks.run({
        handler,
        pod,
        containerName: container.spec.name,
        containerId: id,
        podIP: situation.podIPs[0],
        signal: limit.signal,
      });
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#event(request, "Warning", "FailedPostStartHook", "PostStartHook failed");
      const cause = limit.signal.aborted ? "the container ended before it" : messageOf(thrown);
      const why: Why = { reason: "FailedPostStartHook", message: `the postStart hook failed: ${cause}` };
      await this.#o.killer.kill({
        pod,
        containers: [{ id, name: container.spec.name }],
        why,
        eventText: "FailedPostStartHook",
        podIP: situation.podIPs[0],
        signal,
      });
      throw new StartError("PostStartHookError", why.message, { cause: thrown });
    }
  }

  #because({ pod, container, start }: StartRequest): Because {
    return { pod: podRef(pod), container: container.spec.name, reason: start.reason, message: start.message };
  }

  #event({ pod, container }: StartRequest, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#o.events.pod({ pod, type, reason, message, fieldPath: containerPath(container) });
  }

  #failed(request: StartRequest, reason: string, message: string, cause: unknown): StartError {
    this.#event(request, "Warning", "Failed", `Error: ${message}`);
    return new StartError(reason, message, { cause });
  }
}

/** The waiting reason that an error of the agent carries: ImageErrors and StartErrors do. */
function reasonOf(thrown: unknown): string | undefined {
  return thrown instanceof KubeletError && "reason" in thrown && typeof thrown.reason === "string"
    ? thrown.reason
    : undefined;
}

/** What the runtime said, without which call of which container it was: that the event and the status tell. */
function runtimeWords(thrown: unknown): string {
  return thrown instanceof RuntimeError ? thrown.details : messageOf(thrown);
}

/** The waiting reason and message that a failed start shows. */
export function startFailure(thrown: unknown): { reason: string; message: string } {
  return { reason: reasonOf(thrown) ?? "RunContainerError", message: messageOf(thrown) };
}
