import { KubeletError } from "../../base/errors.ts";
import { certificatesPart } from "./certificates.ts";
import { clusterNode } from "./node.ts";
import { objectsPart } from "./objects.ts";
import { clusterPods } from "./pods.ts";
import { runtimeClassesPart } from "./runtime_classes.ts";
import type { Cluster, ClusterContext, ClusterPart, ClusterParts } from "./types.ts";

/** Builds one part from the context; does no I/O. */
export type PartFactory = (context: ClusterContext) => ClusterPart;

/** The parts of a cluster's member, each from a file of its own beside this one; they start in this order. */
const standardParts: readonly PartFactory[] = [
  (context) => clusterNode(context),
  certificatesPart,
  objectsPart,
  runtimeClassesPart,
  clusterPods,
];

/** Puts the parts together. Throws with code Internal when two parts give what there can be only one of. */
export function composeCluster(context: ClusterContext, factories: readonly PartFactory[] = standardParts): Cluster {
  const parts = factories.map((make) => make(context));
  const merged = merge(parts);
  return {
    ...merged,
    start(agent): void {
      for (const part of parts) part.start?.(agent, merged);
    },
  };
}

function merge(parts: readonly ClusterParts[]): ClusterParts {
  return {
    sources: parts.flatMap(({ sources = [] }) => sources),
    volumePlugins: parts.flatMap(({ volumePlugins = [] }) => volumePlugins),
    projections: parts.flatMap(({ projections = [] }) => projections),
    onStatus: (entry) => {
      for (const part of parts) part.onStatus?.(entry);
    },
    ...single(parts, "podObjects"),
    ...single(parts, "environment"),
    ...single(parts, "keyring"),
    ...single(parts, "serviceAccounts"),
    ...single(parts, "hostIPs"),
    ...single(parts, "node"),
    ...single(parts, "runtimeHandler"),
    ...single(parts, "nodeRead"),
    ...single(parts, "fetchNode"),
    ...single(parts, "mirrorPods"),
    ...single(parts, "volumesInUse"),
    nodeTroubles: () => parts.flatMap((part) => part.nodeTroubles?.() ?? []),
    onForgotten: (uid) => {
      for (const part of parts) part.onForgotten?.(uid);
    },
  };
}

function single<K extends keyof ClusterParts>(parts: readonly ClusterParts[], key: K): Pick<ClusterParts, K> {
  const given = parts.filter((part) => part[key] !== undefined);
  const [one, another] = given;
  if (another) throw new KubeletError("Internal", `two parts of the cluster's member give ${key}`);
  return (one ? { [key]: one[key] } : {}) as Pick<ClusterParts, K>;
}
