import type { Because, Journal } from "../mod/base/journal.ts";
import type { ImageService, MutatingOptions, RuntimeService } from "./api.ts";

/** Carries out one mutating call and leaves exactly one record of it. */
type Act = <T>(
  method: string,
  options: MutatingOptions,
  target: string | undefined,
  run: () => Promise<T>,
) => Promise<T>;

function actOn(journal: Journal): Act {
  return (method, options, target, run) => journal.act(method, because(options), target, run);
}

/** The reason alone: an options object must not carry a signal or credentials into a record. */
function because(options: MutatingOptions): Because {
  return options.because;
}

/**
 * A runtime service whose mutating calls each leave one journal record: the CRI method, the reason given with the call,
 * what it acted on, how long it took and its error (invariant 7). Questions pass through unrecorded.
 */
export function journaledRuntime(runtime: RuntimeService, journal: Journal): RuntimeService {
  const act = actOn(journal);
  return {
    version: (options) => runtime.version(options),
    status: (request, options) => runtime.status(request, options),
    runtimeConfig: (options) => runtime.runtimeConfig(options),
    updateRuntimeConfig: (podCidr, options) =>
      act("UpdateRuntimeConfig", options, podCidr, () => runtime.updateRuntimeConfig(podCidr, options)),

    // A new object has no id yet: its record tells the name that was asked for.
    runPodSandbox: (config, handler, options) =>
      act("RunPodSandbox", options, config.metadata?.name, () => runtime.runPodSandbox(config, handler, options)),
    stopPodSandbox: (id, options) => act("StopPodSandbox", options, id, () => runtime.stopPodSandbox(id, options)),
    removePodSandbox: (id, options) =>
      act("RemovePodSandbox", options, id, () => runtime.removePodSandbox(id, options)),
    podSandboxStatus: (id, options) => runtime.podSandboxStatus(id, options),
    listPodSandboxes: (filter, options) => runtime.listPodSandboxes(filter, options),
    updatePodSandboxResources: (request, options) =>
      act(
        "UpdatePodSandboxResources",
        options,
        request.id,
        () => runtime.updatePodSandboxResources(request, options),
      ),

    createContainer: (request, options) =>
      act(
        "CreateContainer",
        options,
        request.config.metadata?.name,
        () => runtime.createContainer(request, options),
      ),
    startContainer: (id, options) => act("StartContainer", options, id, () => runtime.startContainer(id, options)),
    stopContainer: (id, graceSeconds, options) =>
      act("StopContainer", options, id, () => runtime.stopContainer(id, graceSeconds, options)),
    removeContainer: (id, options) => act("RemoveContainer", options, id, () => runtime.removeContainer(id, options)),
    listContainers: (filter, options) => runtime.listContainers(filter, options),
    containerStatus: (id, options) => runtime.containerStatus(id, options),
    updateContainerResources: (id, resources, options) =>
      act(
        "UpdateContainerResources",
        options,
        id,
        () => runtime.updateContainerResources(id, resources, options),
      ),
    reopenContainerLog: (id, options) =>
      act("ReopenContainerLog", options, id, () => runtime.reopenContainerLog(id, options)),
    checkpointContainer: (id, location, timeoutSeconds, options) =>
      act(
        "CheckpointContainer",
        options,
        id,
        () => runtime.checkpointContainer(id, location, timeoutSeconds, options),
      ),

    execSync: (id, command, timeoutSeconds, options) => runtime.execSync(id, command, timeoutSeconds, options),
    exec: (request, options) => runtime.exec(request, options),
    attach: (request, options) => runtime.attach(request, options),
    portForward: (request, options) => runtime.portForward(request, options),
    containerEvents: (options) => runtime.containerEvents(options),
    podSandboxStats: (id, options) => runtime.podSandboxStats(id, options),
    listPodSandboxStats: (options) => runtime.listPodSandboxStats(options),
    containerStats: (id, options) => runtime.containerStats(id, options),
    listContainerStats: (options) => runtime.listContainerStats(options),
  };
}

/** An image service whose pulls and removals each leave one journal record; credentials are never in it. */
export function journaledImages(images: ImageService, journal: Journal): ImageService {
  const act = actOn(journal);
  return {
    listImages: (options) => images.listImages(options),
    imageStatus: (image, options) => images.imageStatus(image, options),
    pullImage: (request, options) =>
      act("PullImage", options, request.image.image, () => images.pullImage(request, options)),
    removeImage: (image, options) => act("RemoveImage", options, image.image, () => images.removeImage(image, options)),
    imageFsInfo: (options) => images.imageFsInfo(options),
  };
}
