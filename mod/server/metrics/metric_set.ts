import { Histogram, Numbers } from "./registry.ts";
import type { MetricsPage } from "./text.ts";

/** Something that puts families into a page: what other parts of the agent count is added to `AgentMetrics.more`. */
export interface MetricSource {
  writeTo(page: MetricsPage): void;
}

/** Metrics that belong together: every counter, gauge and histogram among its fields is told. */
export abstract class MetricSet implements MetricSource {
  writeTo(page: MetricsPage): void {
    for (const each of Object.values(this)) {
      if (each instanceof Numbers || each instanceof Histogram) each.writeTo(page);
    }
  }
}

/** A counter; without labels it is there from the start, as the reference's are. */
export function counter(name: string, help: string, options: { vec?: boolean } = {}): Numbers {
  const numbers = new Numbers({ name, help, type: "counter" });
  if (!options.vec) numbers.add({}, 0);
  return numbers;
}

/** A gauge, as `counter`. */
export function gauge(name: string, help: string, options: { vec?: boolean } = {}): Numbers {
  const numbers = new Numbers({ name, help, type: "gauge" });
  if (!options.vec) numbers.set({}, 0);
  return numbers;
}
