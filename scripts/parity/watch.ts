import { systemClock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { ApiClient } from "../../mod/kube/api/types.ts";
import type { Event, Pod } from "../../mod/kube/types.ts";
import type { Seen, Step } from "./scenario.ts";

const namespace = "default";

/** Every version of the pods of `default` and the node's events about them, as the API server tells them. */
export class PodWatch {
  readonly #pods = new Map<string, { pod: Pod; deleted: boolean }>();
  #events: readonly Event[] = [];
  readonly #looks = new Set<() => void>();

  constructor(private readonly admin: ApiClient, scope: Scope, private readonly log: (line: string) => void) {
    scope.spawn("watch pods", (signal) => this.#watch(signal));
    scope.spawn("list events", (signal) => this.#listEvents(signal));
  }

  /** The events that the node itself told until now. */
  get events(): readonly Event[] {
    return this.#events;
  }

  seen(name: string): Seen | undefined {
    const known = this.#pods.get(name);
    return known && { ...known, events: this.#events.filter((one) => one.involvedObject.name === name) };
  }

  /**
   * Waits until a step has come and lets `restMs` pass; the newest version that fits. When it does not come within the
   * time, `reached` is false, with what was seen last.
   */
  async until(name: string, step: Step["until"], times: { withinMs: number; restMs: number }): Promise<{
    readonly reached: boolean;
    readonly seen: Seen | undefined;
  }> {
    const deadline = systemClock.now() + times.withinMs;
    let fits: Seen | undefined;
    const look = () => {
      const seen = this.seen(name);
      if (seen && step(seen)) fits = seen;
    };
    this.#looks.add(look);
    try {
      for (look(); !fits && systemClock.now() < deadline;) await systemClock.sleep(100);
      if (fits) await systemClock.sleep(times.restMs);
      return { reached: fits !== undefined, seen: fits ?? this.seen(name) };
    } finally {
      this.#looks.delete(look);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const { items, resourceVersion } = await this.admin.list(resources.pods, { namespace, signal });
        const names = new Set(items.map(({ metadata }) => metadata?.name));
        for (const [name, known] of this.#pods) if (!names.has(name)) known.deleted = true;
        for (const pod of items) this.#take(pod, false);
        for await (const event of this.admin.watch(resources.pods, { namespace, resourceVersion, signal })) {
          if (event.type !== "BOOKMARK") this.#take(event.object, event.type === "DELETED");
        }
      } catch (thrown) {
        if (signal.aborted) return;
        this.log(`the watch of pods: ${messageOf(thrown)}`);
        await systemClock.sleep(500, signal);
      }
    }
  }

  #take(pod: Pod, deleted: boolean): void {
    this.#pods.set(pod.metadata?.name ?? "", { pod, deleted });
    for (const look of this.#looks) look();
  }

  async #listEvents(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const { items } = await this.admin.list(resources.events, { namespace, signal });
        this.#events = items.filter(({ source, reportingComponent }) =>
          source?.component === "kubelet" || reportingComponent === "kubelet"
        );
        for (const look of this.#looks) look();
      } catch (thrown) {
        if (signal.aborted) return;
        this.log(`the list of events: ${messageOf(thrown)}`);
      }
      await systemClock.sleep(700, signal).catch(() => {});
    }
  }
}
