import type { RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Node } from "../../mod/kube/types.ts";
import type { NodeView } from "./types.ts";

/** How often a runtime that did not take the range is told it again, milliseconds. */
const retryMs = 10_000;

export interface PodCidrOptions {
  readonly runtime: Pick<RuntimeService, "updateRuntimeConfig">;
  readonly view: Pick<NodeView, "node" | "onChange">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Gives the runtime the range of pod addresses that the cluster has set aside for this node (features.md B33). */
export class PodCidr {
  readonly #o: PodCidrOptions;
  #told = "";

  constructor(options: PodCidrOptions) {
    this.#o = options;
  }

  /** Tells the runtime whenever the node's object has another range; runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { view, clock } = this.#o;
    let changed = Promise.withResolvers<void>();
    const wake = () => changed.resolve();
    using _listener = view.onChange(wake);
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        const done = view.node ? await this.#update(view.node, signal) : true;
        using _again = done ? undefined : clock.after(retryMs, wake);
        if (!signal.aborted) await changed.promise;
      }
    } finally {
      signal.removeEventListener("abort", wake);
    }
  }

  /** False when the runtime did not take the range. */
  async #update(node: Node, signal: AbortSignal): Promise<boolean> {
    const { runtime, log } = this.#o;
    const cidr = (node.spec?.podCIDRs ?? []).join(",");
    if (cidr === "" || cidr === this.#told) return true;
    try {
      await runtime.updateRuntimeConfig(cidr, {
        signal,
        because: { reason: "PodCIDR", message: `the node's pod range is ${cidr}` },
      });
      log.info("the runtime knows the node's pod range", { before: this.#told, podCIDR: cidr });
      this.#told = cidr;
      return true;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const error = messageOf(thrown);
      log.error("the runtime does not take the node's pod range; it is tried again", { podCIDR: cidr, error });
      return false;
    }
  }
}
