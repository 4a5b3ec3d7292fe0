import { configMirror } from "../../kube/pod.ts";
import type { Pod, PodSpec, PodStatus, Volume } from "../../kube/types.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { gauge, MetricSet } from "./metric_set.ts";
import { Histogram } from "./registry.ts";

/** Bounds of start durations, seconds (metrics.md section 2). */
export const startBuckets = [
  .5,
  1,
  2,
  3,
  4,
  5,
  6,
  8,
  10,
  20,
  30,
  45,
  60,
  120,
  180,
  240,
  300,
  360,
  480,
  600,
  900,
  1200,
  1800,
  2700,
  3600,
];
const pullBuckets = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];

const mib = 1024 ** 2, gib = 1024 ** 3;
/** Sizes of images as the label of their pulls tells them: more than so many bytes. */
const sizes: readonly (readonly [above: number, label: string])[] = [
  [100 * gib, "GT100GB"],
  [60 * gib, "60GB-100GB"],
  [40 * gib, "40GB-60GB"],
  [30 * gib, "30GB-40GB"],
  [20 * gib, "20GB-30GB"],
  [10 * gib, "10GB-20GB"],
  [5 * gib, "5GB-10GB"],
  [gib, "1GB-5GB"],
  [500 * mib, "500MB-1GB"],
  [100 * mib, "100MB-500MB"],
  [10 * mib, "10MB-100MB"],
  [0, "0-10MB"],
];

/** Volumes with these keep nothing beyond the life of their pod. */
const passing = ["secret", "configMap", "downwardAPI", "emptyDir", "projected"] as const satisfies (keyof Volume)[];

/** A pod on its way to run, milliseconds since the epoch. */
interface Start {
  /** Pulls that go on, the oldest first. */
  readonly pulling: number[];
  readonly pulls: { readonly from: number; readonly until: number }[];
}

/**
 * How long pods of the API server took to start (metrics.md section 2): only those that this life of the agent has
 * started, and of which the scheduler never had to wait for room.
 */
export class StartMetrics extends MetricSet {
  readonly sli = new Histogram({
    name: "kubelet_pod_start_sli_duration_seconds",
    help: "From a pod's making until it runs, without pulls and init containers, seconds",
    buckets: startBuckets,
  });
  readonly whole = new Histogram({
    name: "kubelet_pod_start_total_duration_seconds",
    help: "From a pod's making until it runs, seconds",
    buckets: startBuckets,
  });
  readonly firstNetwork = gauge(
    "kubelet_first_network_pod_start_sli_duration_seconds",
    "How long the first pod with a network of its own took to start, seconds",
  );
  readonly pullSeconds = new Histogram({
    name: "kubelet_image_pull_duration_seconds",
    help: "How long pulls of images took, seconds",
    buckets: pullBuckets,
  });
  /** What the runtime has of a pod; set once there is an agent. */
  observed: (uid: string) => Pick<ObservedPod, "containers"> | undefined = () => undefined;
  readonly #now: () => number;
  readonly #starts = new Map<string, Start>();
  /** Pods that had to wait for room; whatever becomes of them is not for these figures. */
  readonly #waited = new Set<string>();
  #anyNetwork = false;

  /** @param now milliseconds since the epoch */
  constructor(now: () => number) {
    super();
    this.#now = now;
  }

  /** The API server shows a pod, a new one or one that has changed. */
  seen(pod: Pod): void {
    const { metadata: { uid, annotations } = {}, spec, status = {} } = pod;
    if (!uid || !spec || annotations?.[configMirror] !== undefined) return;
    const ended = status.phase === "Failed" || status.phase === "Succeeded";
    const waits = status.conditions?.some(({ type, status }) => type === "PodScheduled" && status === "False") ?? false;
    if (waits && !ended) this.#waited.add(uid);
    if (ended || waits) {
      this.#starts.delete(uid);
      return;
    }
    const start = this.#starts.get(uid);
    if (!start) {
      if (!status.startTime && !this.#waited.has(uid)) this.#starts.set(uid, { pulling: [], pulls: [] });
    } else if (allRun(status)) {
      this.#starts.delete(uid);
      this.#started(uid, start, { made: Date.parse(pod.metadata?.creationTimestamp ?? ""), spec });
    }
  }

  /** The API server has the pod no more. */
  gone(uid: string): void {
    this.#starts.delete(uid);
    this.#waited.delete(uid);
  }

  /** A pod begins to wait for the pull of an image. */
  pulling(uid: string): void {
    this.#starts.get(uid)?.pulling.push(this.#now());
  }

  /** A pull has worked. A pull that failed goes on until a later one works. @param ms with what it waited */
  pulled(uid: string, { ms, size }: { readonly ms: number; readonly size: bigint }): void {
    const bytes = Number(size);
    const label = sizes.find(([above]) => bytes > above)?.[1] ?? "N/A";
    this.pullSeconds.observe({ image_size_in_bytes: label }, ms / 1000);
    this.present(uid);
  }

  /** An image that a pod may have waited for is there. */
  present(uid: string): void {
    const start = this.#starts.get(uid);
    const from = start?.pulling.shift();
    if (from !== undefined) start?.pulls.push({ from, until: this.#now() });
  }

  #started(uid: string, start: Start, { made, spec }: { made: number; spec: PodSpec }): void {
    if (!Number.isFinite(made)) return;
    const whole = Math.max(0, this.#now() - made) / 1000;
    this.whole.observe({}, whole);
    if (spec.volumes?.some((volume) => passing.every((source) => volume[source] === undefined))) return;
    const sli = Math.max(0, whole - (covered(start.pulls) + this.#initMs(uid, spec)) / 1000);
    this.sli.observe({}, sli);
    if (spec.hostNetwork || this.#anyNetwork) return;
    this.#anyNetwork = true;
    this.firstNetwork.set({}, sli);
  }

  /** How long init containers ran, those apart that go on beside the others. */
  #initMs(uid: string, { initContainers = [] }: PodSpec): number {
    const names = new Set(initContainers.filter(({ restartPolicy }) => restartPolicy !== "Always").map((c) => c.name));
    let ms = 0;
    for (const { name, state, startedAt, finishedAt } of this.observed(uid)?.containers ?? []) {
      if (names.has(name) && state === "exited" && startedAt > 0) ms += Math.max(0, finishedAt - startedAt);
    }
    return ms;
  }
}

/** Whether every container of the pod runs. */
function allRun({ containerStatuses = [] }: PodStatus): boolean {
  return containerStatuses.length > 0 && containerStatuses.every(({ state }) => state?.running?.startedAt);
}

/** The time that is in any of the spans, milliseconds; spans begin in their order. */
function covered(spans: Start["pulls"]): number {
  let sum = 0, end = -Infinity;
  for (const { from, until } of spans.toSorted((a, b) => a.from - b.from)) {
    sum += Math.max(0, until - Math.max(from, end));
    end = Math.max(end, until);
  }
  return sum;
}
