import type { CgroupManager } from "../../../managers/cgroups/types.ts";
import type { EnsuredImage } from "../../../managers/images/types.ts";
import type { VolumeCounts, VolumeOperation } from "../../../managers/volumes/types.ts";
import { counter, gauge, MetricSet } from "./metric_set.ts";
import { Histogram, type Numbers, usualBuckets } from "./registry.ts";
import type { MetricsPage } from "./text.ts";

/** Reasons that admission_rejections_total tells by name; all others are `Other` (metrics.md section 2). */
const rejections = new Set([
  ...["AppArmor", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InvalidNodeInfo"],
  ...["InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported", "UnexpectedAdmissionError"],
  ...["UnknownReason", "UnexpectedPredicateFailureType", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage"],
  ...["OutOfpods", "PodLevelResourcesNotSupported", "PodFeatureUnsupported", "Evicted", "SysctlForbidden"],
  ...["node(s) had taints that the pod didn't tolerate", "TopologyAffinityError", "NodeShutdown"],
  "VolumeAttachmentLimitExceeded",
]);

/** Bounds of storage operations, seconds (metrics.md section 3). */
const storageBuckets = [.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** A counter by whether pods are static, with both from the start on. */
function ofEitherOrigin(numbers: Numbers): Numbers {
  for (const origin of ["", "true"]) numbers.add({ static: origin }, 0);
  return numbers;
}

/** What the managers do, counted (metrics.md sections 2 and 3). */
export class WorkMetrics extends MetricSet {
  readonly rejections = counter("kubelet_admission_rejections_total", "Pods that the node refused, by reason", {
    vec: true,
  });
  readonly preemptions = counter("kubelet_preemptions", "Pods that made room for critical ones, by what was short", {
    vec: true,
  });
  readonly imagesRemoved = counter("kubelet_image_garbage_collected_total", "Images that were removed, by reason", {
    vec: true,
  });
  readonly ensuredImages = counter(
    "kubelet_image_manager_ensure_image_requests_total",
    "[ALPHA] Images that containers needed, by what it took to have them",
    { vec: true },
  );
  readonly imageVolumes = counter("kubelet_image_volume_requested_total", "[BETA] Image volumes that were asked for");
  readonly imageVolumesMounted = counter(
    "kubelet_image_volume_mounted_succeed_total",
    "[BETA] Image volumes that were mounted",
  );
  readonly imageVolumeErrors = counter(
    "kubelet_image_volume_mounted_errors_total",
    "[BETA] Image volumes that could not be mounted",
  );
  readonly groupSeconds = new Histogram({
    name: "kubelet_cgroup_manager_duration_seconds",
    help: "How long work on control groups took, seconds",
    buckets: usualBuckets,
  });
  readonly workerStartSeconds = new Histogram({
    name: "kubelet_pod_worker_start_duration_seconds",
    help: "From the first sight of a pod until its worker starts, seconds",
  }).begin();
  readonly terminated = counter("kubelet_terminated_containers_total", "Containers that ended", { vec: true });
  readonly restartedPods = ofEitherOrigin(
    counter("kubelet_restarted_pods_total", "Pods that were made again under their UID", { vec: true }),
  );
  readonly orphans = counter("kubelet_orphaned_runtime_pods_total", "Pods of the runtime that nobody wanted");
  readonly httpsFallbacks = counter(
    "kubelet_lifecycle_handler_http_fallbacks_total",
    "Hooks over HTTPS that were tried over HTTP",
  );
  readonly sleepsCut = counter("kubelet_sleep_action_terminated_early_total", "Sleep hooks that did not last");
  readonly relistOfOne = new Histogram({
    name: "kubelet_pleg_pod_relist_duration_seconds",
    help: "How long it took to look at one pod, seconds",
  }).begin();
  readonly storageSeconds = new Histogram({
    name: "storage_operation_duration_seconds",
    help: "How long work on volumes took, seconds",
    buckets: storageBuckets,
  });
  readonly volumeSeconds = new Histogram({
    name: "volume_operation_total_seconds",
    help: "How long work on volumes took from end to end, seconds",
    buckets: storageBuckets,
  });
  readonly rebuilt = counter("reconstruct_volume_operations_total", "Volumes that were found on disk after a start");
  readonly rebuiltErrors = counter(
    "reconstruct_volume_operations_errors_total",
    "Volumes on disk that could not be made sense of",
  );
  readonly forced = counter(
    "force_cleaned_failed_volume_operations_total",
    "Volumes that were removed although nobody knew them",
  );
  readonly forcedErrors = counter(
    "force_cleaned_failed_volume_operation_errors_total",
    "Volumes that nobody knew and that could not be removed",
  );
  readonly orphanDirs = gauge("kubelet_orphan_pod_cleaned_volumes", "Pods gone whose directories were looked after");
  readonly orphanDirErrors = gauge(
    "kubelet_orphan_pod_cleaned_volumes_errors",
    "Pods gone whose directories could not be removed",
  );
  readonly streams = counter(
    "kubelet_evented_pleg_connection_success_count",
    "Streams of the runtime's events that were opened",
  );
  readonly streamErrors = counter(
    "kubelet_evented_pleg_connection_error_count",
    "Streams of the runtime's events that broke",
  );
  readonly eventSeconds = new Histogram({
    name: "kubelet_evented_pleg_connection_latency_seconds",
    help: "From an event of the runtime's until it was heard of, seconds",
  }).begin();
  readonly memoryMin = gauge("kubelet_memory_qos_node_memory_min_bytes", "Memory that Guaranteed pods keep, bytes", {
    vec: true,
  });
  readonly memoryLow = gauge(
    "kubelet_memory_qos_node_memory_low_bytes",
    "Memory that Burstable pods keep as long as others have some to give, bytes",
    { vec: true },
  );

  /** How many volumes there are; set once there is a manager of them. */
  volumes: VolumeCounts | undefined;

  override writeTo(page: MetricsPage): void {
    super.writeTo(page);
    const name = "volume_manager_total_volumes";
    page.family(name, "gauge", "Volumes of pods, by plugin: those that should be there, and those that are");
    const put = (state: string, counts: ReadonlyMap<string, number>) => {
      for (const [plugin, count] of counts) page.sample(name, { plugin_name: plugin, state }, count);
    };
    if (!this.volumes) return;
    put("actual_state_of_world", this.volumes.mounted());
    put("desired_state_of_world", this.volumes.wanted());
  }

  rejected(reason: string): void {
    const told = rejections.has(reason) ? reason : reason.startsWith("OutOf") ? "OutOfExtendedResources" : "Other";
    this.rejections.add({ reason: told });
  }

  /** @param signal what was short, such as `cpu` */
  preempted(signal: string): void {
    this.preemptions.add({ preemption_signal: signal });
  }

  /** What groups keep for pods of the classes, bytes; told only where memory requests protect pods (gate MemoryQoS). */
  memoryKept({ min, low }: { readonly min: bigint; readonly low: bigint }): void {
    this.memoryMin.set({}, Number(min));
    this.memoryLow.set({}, Number(low));
  }

  restartedPod(isStatic: boolean): void {
    this.restartedPods.add({ static: isStatic ? "true" : "" });
  }

  orphanedPod(): void {
    this.orphans.add();
  }

  orphanVolumes(pods: number, failed: number): void {
    this.orphanDirs.set({}, pods);
    this.orphanDirErrors.set({}, failed);
  }

  httpFallback(): void {
    this.httpsFallbacks.add();
  }

  sleepCut(): void {
    this.sleepsCut.add();
  }

  foundVolume(known: boolean): void {
    this.rebuilt.add();
    if (!known) this.rebuiltErrors.add();
  }

  forcedVolume(failed: boolean): void {
    this.forced.add();
    if (failed) this.forcedErrors.add();
  }

  imageRemoved(why: "age" | "space"): void {
    this.imagesRemoved.add({ reason: why });
  }

  ensuredImage({ policy, present, pulled }: EnsuredImage): void {
    const word = (known: boolean | undefined) => known === undefined ? "unknown" : String(known);
    this.ensuredImages.add({
      present_locally: word(present),
      pull_policy: policy.toLowerCase(),
      pull_required: word(pulled),
    });
  }

  volume({ plugin, operation, seconds, failed }: VolumeOperation): void {
    const status = failed ? "fail-unknown" : "success";
    this.storageSeconds.observe({
      migrated: "false",
      operation_name: operation,
      status,
      volume_plugin: plugin,
    }, seconds);
    if (!failed) this.volumeSeconds.observe({ operation_name: operation, plugin_name: plugin }, seconds);
    if (plugin !== "kubernetes.io/image" || operation !== "volume_mount") return;
    this.imageVolumes.add();
    (failed ? this.imageVolumeErrors : this.imageVolumesMounted).add();
  }

  /** Control groups whose work is timed. */
  groups<T extends CgroupManager>(manager: T, now: () => number): T {
    const timed = async <R>(operation: string, run: () => Promise<R>): Promise<R> => {
      const began = now();
      try {
        return await run();
      } finally {
        this.groupSeconds.observe({ operation_type: operation }, (now() - began) / 1000);
      }
    };
    const made = new Set<string>();
    // The rest of the manager stays its own: it has private fields, and more methods than are timed here.
    return new Proxy(manager, {
      get: (target, name) => {
        if (name === "ensurePod") {
          return (...args: Parameters<T["ensurePod"]>) => {
            const { uid } = args[0].metadata;
            const operation = made.has(uid) ? "update" : "create";
            made.add(uid);
            return timed(operation, () => target.ensurePod(args[0]));
          };
        }
        if (name === "destroyPod") {
          return (uid: string) => {
            made.delete(uid);
            return timed("destroy", () => target.destroyPod(uid));
          };
        }
        if (name === "updateQos") {
          return (...args: Parameters<T["updateQos"]>) => timed("update", () => target.updateQos(args[0]));
        }
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
}
