import { KubeletError } from "../../base/errors.ts";
import { awaitFirstList } from "../../kube/api/first_list.ts";
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
      const late = `failed to lookup RuntimeClass ${name}: the API server has not been heard yet`;
      await awaitFirstList(classes, { clock, ms: firstListMs, signal, late });
      const found = classes.get({ name });
      if (!found) throw new KubeletError("BadPod", `runtimeclass.node.k8s.io "${name}" not found`);
      return found.handler;
    },
    start(): void {
      scope.spawn("runtime classes", (signal) => classes.run(signal));
    },
  };
}
