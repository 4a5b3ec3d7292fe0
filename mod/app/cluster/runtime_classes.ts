import { isAborted, KubeletError } from "../../base/errors.ts";
import { createInformer } from "../../kube/api/informer.ts";
import { resources } from "../../kube/api/resources.ts";
import type { ClusterContext, ClusterPart } from "./types.ts";

/** How long a sandbox waits for the first list of runtime classes, in milliseconds. */
const firstListMs = 5_000;

/** Which handler of the runtime a pod's class names (runtime-contract.md section 4, features.md C37). */
export function runtimeClassesPart(context: ClusterContext): ClusterPart {
  const { clients, clock, random, log, scope } = context;
  const classes = createInformer({ client: clients.main, resource: resources.runtimeClasses, clock, random, log });
  return {
    runtimeHandler: async (name, signal) => {
      if (!classes.synced) {
        const limit = new AbortController();
        using _timer = clock.after(firstListMs, () => limit.abort());
        try {
          await classes.whenSynced(AbortSignal.any([signal, limit.signal]));
        } catch (thrown) {
          if (signal.aborted || !isAborted(thrown)) throw thrown;
          throw new KubeletError(
            "Network",
            `failed to lookup RuntimeClass ${name}: the API server has not been heard yet`,
          );
        }
      }
      const found = classes.get({ name });
      if (!found) throw new KubeletError("BadPod", `runtimeclass.node.k8s.io "${name}" not found`);
      return found.handler;
    },
    start(): void {
      scope.spawn("runtime classes", (signal) => classes.run(signal));
    },
  };
}
