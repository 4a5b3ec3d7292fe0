import { MirrorManager } from "../../../managers/mirror/mirror_manager.ts";
import type { MirrorOwner } from "../../../managers/mirror/mirror_pod.ts";
import { ApiStatusWriter } from "../../../managers/status/api_writer.ts";
import { createInformer } from "../../kube/api/informer.ts";
import { resources } from "../../kube/api/resources.ts";
import { isStatic } from "../../kube/pod.ts";
import { ApiSource } from "../../sources/api.ts";
import type { ServedAgent } from "../agent_types.ts";
import type { ClusterContext, ClusterPart, ClusterParts } from "./types.ts";

/** The longest that a pod waits for the node to be read once more, in milliseconds. */
const fetchMs = 5000;

/** The pods of a cluster's member: watched, their statuses written, static pods mirrored. */
export function clusterPods(context: ClusterContext): ClusterPart {
  const { clients, nodeName, clock, random, log, events, scope } = context;
  let node: NodeView = { read: () => false, owner: () => undefined };
  const source = new ApiSource({
    nodeName,
    clock,
    log,
    events,
    nodeRead: () => node.read(),
    informer: (onChange) =>
      createInformer({
        client: clients.main,
        resource: resources.pods,
        fieldSelector: `spec.nodeName=${nodeName}`,
        clock,
        random,
        log,
        onChange: ({ type, object }) => {
          if (type === "deleted") context.starts?.gone(object.metadata?.uid ?? "");
          else context.starts?.seen(object);
          onChange();
        },
        onList: onChange,
      }),
  });
  const writer = new ApiStatusWriter({
    client: clients.main,
    clock,
    log,
    scope,
    known: (name) => source.get(name),
    onWritten: (_, ms) => context.onStatusWritten?.(ms),
  });
  let mirrors: MirrorManager | undefined;
  source.subscribe(() => {
    writer.heard();
    mirrors?.look();
  });
  return {
    sources: [source],
    mirrorPods: () => source.mirrors().length,
    fetchNode: (signal) => clients.main.get(resources.nodes, { name: nodeName }, { signal, timeoutMs: fetchMs }),
    onStatus: (entry) => {
      writer.status(entry);
      if (isStatic(entry.pod)) mirrors?.look();
    },
    onForgotten: (uid) => {
      writer.forget(uid);
      mirrors?.look();
    },
    start(agent, cluster): void {
      node = nodeView(cluster);
      const manager = mirrors = mirrorManager(context, source, agent, () => node.owner());
      scope.spawn("pod statuses", (signal) => writer.run(signal));
      scope.spawn("mirror pods", (signal) => manager.run(signal));
    },
  };
}

/** What pods need to know of the node's object. */
interface NodeView {
  readonly read: () => boolean;
  readonly owner: () => MirrorOwner | undefined;
}

function nodeView(cluster: ClusterParts): NodeView {
  return {
    read: () => cluster.nodeRead?.() ?? (cluster.node === undefined || cluster.node() !== undefined),
    owner: () => {
      const { name, uid, deletionTimestamp } = cluster.node?.()?.metadata ?? {};
      return name && uid && deletionTimestamp === undefined ? { name, uid } : undefined;
    },
  };
}

function mirrorManager(
  { clients, clock, log, scope }: ClusterContext,
  source: ApiSource,
  agent: ServedAgent,
  node: () => MirrorOwner | undefined,
): MirrorManager {
  const pods = (list: ReturnType<ServedAgent["pods"]>) => list.map(({ pod }) => pod).filter(isStatic);
  return new MirrorManager({
    client: clients.main,
    clock,
    log,
    scope,
    node,
    wanted: () => pods(agent.pods()),
    leaving: () => pods(agent.leaving()),
    mirrors: () => source.synced ? source.mirrors() : undefined,
    sourcesReady: () => agent.sourcesReady,
  });
}
