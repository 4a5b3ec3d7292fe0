import type { RuntimeService } from "../../cri/api.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Node } from "../../mod/kube/types.ts";

/** Gives the runtime the range of pod addresses that the cluster has set aside for this node (features.md B33). */
export class PodCidr {
  readonly #runtime: Pick<RuntimeService, "updateRuntimeConfig">;
  readonly #log: Logger;
  #told = "";

  constructor(options: { runtime: Pick<RuntimeService, "updateRuntimeConfig">; log: Logger }) {
    this.#runtime = options.runtime;
    this.#log = options.log;
  }

  /** Tells the runtime when the range is another one than it has; a failure is logged, and the next look tries again. */
  async update(node: Node, signal: AbortSignal): Promise<void> {
    const cidr = (node.spec?.podCIDRs ?? []).join(",");
    if (cidr === "" || cidr === this.#told) return;
    try {
      await this.#runtime.updateRuntimeConfig(cidr, {
        signal,
        because: { reason: "PodCIDR", message: `the node's pod range is ${cidr}` },
      });
      this.#log.info("the runtime knows the node's pod range", { before: this.#told, podCIDR: cidr });
      this.#told = cidr;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#log.error("the runtime does not take the node's pod range; it is tried again", {
        podCIDR: cidr,
        error: messageOf(thrown),
      });
    }
  }
}
