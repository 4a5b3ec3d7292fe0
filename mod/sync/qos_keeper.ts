import type { CgroupManager } from "../../managers/cgroups/types.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Scope } from "../base/scope.ts";
import type { BoundPod } from "../kube/types.ts";

/**
 * Keeps the QoS groups' shares as the active pods need them. Changes that come while an update runs lead to one more
 * update, not to one each; a pod that comes or goes is the only reason to look.
 */
export class QosKeeper {
  readonly #o: {
    scope: Scope;
    cgroups: Pick<CgroupManager, "updateQos">;
    log: Logger;
    active: () => readonly BoundPod[];
  };
  #running = false;
  #again = false;

  constructor(options: {
    scope: Scope;
    cgroups: Pick<CgroupManager, "updateQos">;
    log: Logger;
    active: () => readonly BoundPod[];
  }) {
    this.#o = options;
  }

  /** The set of active pods has changed. */
  mark(): void {
    this.#again = true;
    if (this.#running) return;
    this.#running = true;
    this.#o.scope.spawn("qos groups", async (signal) => {
      try {
        while (this.#again && !signal.aborted) {
          this.#again = false;
          await this.#o.cgroups.updateQos(this.#o.active());
        }
      } catch (thrown) {
        this.#o.log.warn("the QoS groups' shares could not be set", { error: messageOf(thrown) });
      } finally {
        this.#running = false;
      }
    });
  }
}
