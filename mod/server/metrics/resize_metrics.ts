import { counter, MetricSet } from "./metric_set.ts";
import { Histogram } from "./registry.ts";
import type { MetricsPage } from "./text.ts";

/** Bounds of a resize, milliseconds (metrics.md). */
const buckets = [10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/** How many pods wait for other resources, by reason, and how many are getting them. */
export interface ResizeCounts {
  readonly pending: ReadonlyMap<string, number>;
  readonly progress: number;
}

/** Resizes in place, counted. */
export class ResizeMetrics extends MetricSet {
  readonly requested = counter(
    "kubelet_container_requested_resizes_total",
    "Resizes of containers that were asked for",
    {
      vec: true,
    },
  );
  readonly infeasibleResizes = counter("kubelet_pod_infeasible_resizes_total", "Resizes that the node can never do", {
    vec: true,
  });
  readonly accepted = counter(
    "kubelet_pod_deferred_accepted_resizes_total",
    "Resizes that waited for room and got it",
    {
      vec: true,
    },
  );
  readonly duration = new Histogram({
    name: "kubelet_pod_resize_duration_milliseconds",
    help: "How long it took to carry a resize out, milliseconds",
    buckets,
  });
  /** Asked when a page is made. */
  counts: (() => ResizeCounts) | undefined;

  /** @param operation what becomes of the figure: `add`, `remove`, `increase` or `decrease` */
  asked(resource: "cpu" | "memory", requirement: "requests" | "limits", operation: string): void {
    this.requested.add({ resource, requirement, operation });
  }

  infeasible(detail: string): void {
    this.infeasibleResizes.add({ reason_detail: detail });
  }

  deferredAccepted(trigger: string): void {
    this.accepted.add({ retry_trigger: trigger });
  }

  done({ success, ms }: { readonly success: boolean; readonly ms: number }): void {
    this.duration.observe({ success: String(success) }, ms);
  }

  override writeTo(page: MetricsPage): void {
    super.writeTo(page);
    const { pending, progress } = this.counts?.() ?? { pending: new Map<string, number>(), progress: 0 };
    if (pending.size > 0) {
      page.family("kubelet_pod_pending_resizes", "gauge", "Pods whose resize waits");
      for (const [reason, count] of pending) page.sample("kubelet_pod_pending_resizes", { reason }, count);
    }
    page.family("kubelet_pod_in_progress_resizes", "gauge", "Pods that are being resized");
    page.sample("kubelet_pod_in_progress_resizes", {}, progress);
  }
}
