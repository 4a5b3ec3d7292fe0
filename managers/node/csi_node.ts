import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { CSINode, Node } from "../../mod/kube/types.ts";

/** Waits between two tries, in milliseconds. */
const firstWaitMs = 500;
const longestWaitMs = 30_000;

/** Says which volumes of the tree's own plugins are given by CSI drivers: all that there ever were. */
const migratedAnnotation = "storage.alpha.kubernetes.io/migrated-plugins";
const migratedPlugins = ["aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume"]
  .map((name) => `kubernetes.io/${name}`).join(",");

export interface CsiNodeOptions {
  readonly client: ApiClient;
  /** The node's own object, which the other one belongs to. */
  readonly node: (signal: AbortSignal) => Promise<Node>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Makes sure that there is a CSINode of this node, which the scheduler looks for; drivers are not entered into it yet
 * (features.md H17). Tries until it has succeeded; rejects only with Aborted.
 */
export async function ensureCsiNode(options: CsiNodeOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  for (let wait = firstWaitMs, said = false;; wait = Math.min(wait * 2, longestWaitMs)) {
    const node = await options.node(signal);
    try {
      return await ensure(options.client, node, signal);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      if (!said) log.warn("the node's CSINode cannot be made sure of; it is tried again", { error: messageOf(thrown) });
      said = true;
      await clock.sleep(wait, signal);
    }
  }
}

async function ensure(client: ApiClient, node: Node, signal: AbortSignal): Promise<void> {
  const name = node.metadata?.name ?? "", uid = node.metadata?.uid ?? "";
  const annotations = { [migratedAnnotation]: migratedPlugins };
  let existing: CSINode;
  try {
    existing = await client.get(resources.csiNodes, { name }, { signal });
  } catch (thrown) {
    if (!isApiNotFound(thrown)) throw thrown;
    await client.create(resources.csiNodes, {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { name, annotations, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }] },
      spec: { drivers: [] },
    }, { signal });
    return;
  }
  if (existing.metadata?.annotations?.[migratedAnnotation] === migratedPlugins) return;
  await client.patch(resources.csiNodes, { name }, { metadata: { annotations } }, { signal, type: "merge" });
}
