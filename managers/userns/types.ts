import type { BoundPod } from "../../mod/kube/types.ts";
import type { UserNamespaceInit } from "../../mod/pod/config/init.ts";

/** Gives pods user namespaces (features.md C35). */
export interface UserNamespaces {
  /**
   * What the runtime is told of the pod's user namespace: the node's own, or ids of its own that stay the same for the
   * life of the pod's directory. Rejects with BadPod when the runtime cannot do it, with BadConfig when the node has no
   * ids to give.
   * @param handler the runtime handler, "" for the default one
   */
  of(pod: BoundPod, handler: string): Promise<UserNamespaceInit>;
}
