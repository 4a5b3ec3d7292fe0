import { type ImageService, isUnimplemented, type RuntimeService } from "../../../cri/api.ts";

/** Told of each call to the runtime when it has ended. */
export interface RuntimeMeter {
  /** @param operation as the contract names it (metrics.md section 2) */
  operation(operation: string, seconds: number, failed: boolean): void;
  /** @param handler the runtime handler that was asked for */
  sandbox(handler: string, userNamespace: boolean, seconds: number, failed: boolean): void;
  /** The runtime lacks what later versions of Kubernetes need. @param version the first of those */
  lacking?(version: string): void;
}

/** The version of Kubernetes from which on a runtime must tell its cgroup driver. */
const needsRuntimeConfig = "1.37.0";

interface Metered {
  readonly meter: RuntimeMeter;
  readonly now: () => number;
}

/** Calls, and tells how it ended and how long it took. */
async function timed<T>(
  { now }: Metered,
  call: () => Promise<T>,
  ended: (seconds: number, failed: boolean) => void,
): Promise<T> {
  const began = now();
  let failed = true;
  try {
    const answer = await call();
    failed = false;
    return answer;
  } finally {
    ended((now() - began) / 1000, failed);
  }
}

function meterOf(metered: Metered) {
  return <A extends unknown[], R>(operation: string, call: (...args: A) => Promise<R>) => (...args: A): Promise<R> =>
    timed(metered, () => call(...args), (seconds, failed) => metered.meter.operation(operation, seconds, failed));
}

/** A runtime service whose calls are counted; everything else about them stays. */
export function meteredRuntime(runtime: RuntimeService, metered: Metered): RuntimeService {
  const of = meterOf(metered);
  const { meter } = metered;
  const runPodSandbox = of("run_podsandbox", runtime.runPodSandbox.bind(runtime));
  const runtimeConfig = of("runtime_config", runtime.runtimeConfig.bind(runtime));
  return {
    version: of("version", runtime.version.bind(runtime)),
    status: of("status", runtime.status.bind(runtime)),
    runtimeConfig: async (options) => {
      try {
        return await runtimeConfig(options);
      } catch (thrown) {
        if (isUnimplemented(thrown)) meter.lacking?.(needsRuntimeConfig);
        throw thrown;
      }
    },
    updateRuntimeConfig: of("update_runtime_config", runtime.updateRuntimeConfig.bind(runtime)),
    runPodSandbox: (config, handler, options) =>
      timed(metered, () => runPodSandbox(config, handler, options), (seconds, failed) => {
        const mode = config.linux?.securityContext?.namespaceOptions?.usernsOptions;
        meter.sandbox(handler, (mode?.uids?.length ?? 0) > 0, seconds, failed);
      }),
    stopPodSandbox: of("stop_podsandbox", runtime.stopPodSandbox.bind(runtime)),
    removePodSandbox: of("remove_podsandbox", runtime.removePodSandbox.bind(runtime)),
    podSandboxStatus: of("podsandbox_status", runtime.podSandboxStatus.bind(runtime)),
    listPodSandboxes: of("list_podsandbox", runtime.listPodSandboxes.bind(runtime)),
    updatePodSandboxResources: of("update_podsandbox_resources", runtime.updatePodSandboxResources.bind(runtime)),
    createContainer: of("create_container", runtime.createContainer.bind(runtime)),
    startContainer: of("start_container", runtime.startContainer.bind(runtime)),
    stopContainer: of("stop_container", runtime.stopContainer.bind(runtime)),
    removeContainer: of("remove_container", runtime.removeContainer.bind(runtime)),
    listContainers: of("list_containers", runtime.listContainers.bind(runtime)),
    containerStatus: of("container_status", runtime.containerStatus.bind(runtime)),
    updateContainerResources: of("update_container", runtime.updateContainerResources.bind(runtime)),
    reopenContainerLog: of("reopen_container_log", runtime.reopenContainerLog.bind(runtime)),
    checkpointContainer: of("checkpoint_container", runtime.checkpointContainer.bind(runtime)),
    execSync: of("exec_sync", runtime.execSync.bind(runtime)),
    exec: of("exec", runtime.exec.bind(runtime)),
    attach: of("attach", runtime.attach.bind(runtime)),
    portForward: of("port_forward", runtime.portForward.bind(runtime)),
    containerEvents: runtime.containerEvents.bind(runtime),
    podSandboxStats: of("podsandbox_stats", runtime.podSandboxStats.bind(runtime)),
    listPodSandboxStats: of("list_podsandbox_stats", runtime.listPodSandboxStats.bind(runtime)),
    containerStats: of("container_stats", runtime.containerStats.bind(runtime)),
    listContainerStats: of("list_container_stats", runtime.listContainerStats.bind(runtime)),
  };
}

/** An image service whose calls are counted. */
export function meteredImages(images: ImageService, metered: Metered): ImageService {
  const of = meterOf(metered);
  return {
    listImages: of("list_images", images.listImages.bind(images)),
    imageStatus: of("image_status", images.imageStatus.bind(images)),
    pullImage: of("pull_image", images.pullImage.bind(images)),
    removeImage: of("remove_image", images.removeImage.bind(images)),
    imageFsInfo: of("image_fs_info", images.imageFsInfo.bind(images)),
  };
}
