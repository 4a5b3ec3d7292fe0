import { createClients } from "../../mod/app/cluster/clients.ts";
import { composeCluster } from "../../mod/app/cluster/cluster.ts";
import { clusterNode, type NodeNetwork } from "../../mod/app/cluster/node.ts";
import { objectsPart } from "../../mod/app/cluster/objects.ts";
import { clusterPods } from "../../mod/app/cluster/pods.ts";
import type { Cluster, ClusterContext } from "../../mod/app/cluster/types.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import type { Node } from "../../mod/kube/types.ts";
import type { Life } from "./life.ts";
import { simulatedFacts } from "./world.ts";

/** What the member of a simulated cluster is made from; the rest of its context comes from the life. */
export interface MemberOptions {
  readonly api: FakeApi;
  readonly life: Life;
  /** The node as the agent's watch shows it; the API server's when not given. */
  readonly node?: () => Node | undefined;
  /** Where the node's token is; it has one that is always known when not given. */
  readonly tokenFile?: string;
  readonly context: Omit<ClusterContext, "clients" | "facts" | "nodeName">;
}

/** The machine's network, as far as the node's addresses follow from it. */
const simulatedNetwork: NodeNetwork = {
  interfaces: () => simulatedFacts.ips.map((address) => ({ name: "eth0", address })),
  lookup: () => Promise.resolve(simulatedFacts.ips),
};

/** Registers the simulated node, once. */
export function registerNode(api: FakeApi): Node {
  const known = api.get<Node>(resources.nodes, { name: simulatedFacts.name });
  return known ?? api.create<Node>(resources.nodes, {
    metadata: { name: simulatedFacts.name, labels: { "kubernetes.io/os": "linux" } },
    status: { allocatable: simulatedFacts.allocatable },
  });
}

/** A cluster's member for one life of the agent: its pods, with a node that is registered and read already. */
export function makeMember({ api, life, context, node, tokenFile }: MemberOptions): Cluster {
  const { name } = simulatedFacts;
  const clients = createClients({
    ...context,
    kubeconfig: {
      path: "/etc/kubernetes/kubelet.conf",
      cluster: { server: "https://api.sim:6443", insecureSkipTlsVerify: false },
      user: tokenFile === undefined ? { token: "known" } : { tokenFile },
    },
    open: () => life.transport(api.transport("agent", { node: name })),
  });
  return composeCluster({
    ...context,
    clients,
    facts: simulatedFacts,
    nodeName: name,
  }, [
    // A scene that gives the node as it is seen keeps it itself; else the agent does, as in a cluster.
    (made) => node ? { node, hostIPs: () => simulatedFacts.ips } : clusterNode(made, simulatedNetwork),
    objectsPart,
    clusterPods,
  ]);
}
