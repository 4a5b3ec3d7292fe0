import { withDefaults } from "../../defaults/pod.ts";
import type { Pod } from "../../types.ts";
import type { KubeObject, ResourceType } from "../types.ts";
import { qualified } from "./failures.ts";

/** What a server does with a kind beyond storing it. */
export interface KindRules {
  /** Whether the kind counts changes of its spec. */
  readonly generation: boolean;
  /** Whether a replacement must say which version it replaces. */
  readonly versionNeeded: boolean;
  /** The object as it is stored first. */
  created(object: KubeObject): KubeObject;
  /** What of a request is taken: the subresource decides. */
  updated(before: KubeObject, given: KubeObject, subresource: string | undefined): KubeObject;
  /** Whether its objects are marked before they go, also those that go at once. */
  readonly graceful: boolean;
  /** Seconds that a deleted object has to end; 0 for at once. */
  grace(object: KubeObject, asked: number | undefined): number;
}

type Whole = KubeObject & { spec?: unknown; status?: unknown };

/** A kind with nothing special: `status` belongs to its subresource, all else to the object. */
const plain: KindRules = {
  generation: false,
  versionNeeded: false,
  graceful: false,
  created: (object) => object,
  updated(before, given, subresource) {
    return subresource === "status" ? withSpecOf(before, given) : given;
  },
  grace: () => 0,
};

/** Kinds whose status is written through the subresource only. */
const withStatus: KindRules = {
  ...plain,
  updated(before, given, subresource) {
    return subresource === "status" ? withSpecOf(before, given) : withStatusOf(before, given);
  },
};

const pods: KindRules = {
  ...withStatus,
  generation: true,
  graceful: true,
  created(object) {
    const made: Pod = { ...withDefaults(object), status: { phase: "Pending" } };
    if (made.spec && (made.spec.terminationGracePeriodSeconds ?? 0) < 0) made.spec.terminationGracePeriodSeconds = 1;
    return made;
  },
  updated(before, given, subresource) {
    switch (subresource) {
      case "status": {
        const kept = withSpecOf(before, given);
        const owners = before.metadata?.ownerReferences;
        const metadata = { ...kept.metadata, ...(owners ? { ownerReferences: owners } : {}) };
        if (!owners) delete metadata.ownerReferences;
        return { ...withAddresses(kept), metadata };
      }
      case "ephemeralcontainers": {
        const { ephemeralContainers } = (given as Pod).spec ?? {};
        const spec = { ...(before as Pod).spec, ...(ephemeralContainers ? { ephemeralContainers } : {}) };
        return { ...before, spec } as KubeObject;
      }
      case "resize":
        return { ...before, spec: (given as Pod).spec } as KubeObject;
      default:
        return withStatusOf(before, given);
    }
  },
  grace(object, asked) {
    const { spec, status } = object as Pod;
    const ended = status?.phase === "Succeeded" || status?.phase === "Failed";
    if (!spec?.nodeName || ended) return 0;
    const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 30;
    return seconds < 0 ? 1 : seconds;
  },
};

/** The one address and the first of all are the same; where a request says otherwise, the one counts. */
function withAddresses(pod: Pod): Pod {
  const { podIP, podIPs = [] } = pod.status ?? {};
  const first = podIPs[0]?.ip;
  if (podIP === first) return pod;
  return {
    ...pod,
    status: podIP ? { ...pod.status, podIPs: [{ ip: podIP }] } : { ...pod.status, ...(first ? { podIP: first } : {}) },
  };
}

const rulesByKind: ReadonlyMap<string, KindRules> = new Map([
  ["pods", pods],
  ["nodes", withStatus],
  ["services", withStatus],
  ["persistentvolumes", withStatus],
  ["persistentvolumeclaims", withStatus],
  ["volumeattachments.storage.k8s.io", withStatus],
  ["certificatesigningrequests.certificates.k8s.io", withStatus],
  ["leases.coordination.k8s.io", { ...plain, versionNeeded: true }],
  ["csinodes.storage.k8s.io", { ...plain, versionNeeded: true }],
]);

/** The rules of a kind. */
export function kindRules(resource: ResourceType): KindRules {
  return rulesByKind.get(qualified(resource)) ?? plain;
}

function withSpecOf(before: KubeObject, given: KubeObject): KubeObject {
  return withFieldOf(before, given, "spec");
}

function withStatusOf(before: KubeObject, given: KubeObject): KubeObject {
  return withFieldOf(before, given, "status");
}

/** The given object with one field as it was before. */
function withFieldOf(before: KubeObject, given: KubeObject, field: "spec" | "status"): KubeObject {
  const result: Whole = { ...given };
  const kept = (before as Whole)[field];
  if (kept === undefined) delete result[field];
  else result[field] = kept;
  return result;
}
