import { messageOf } from "../../mod/base/errors.ts";
import type { ApiClient } from "../../mod/kube/api/types.ts";
import { clientsOf } from "../../scripts/cluster/clients.ts";
import { ControlPlane, type ControlPlaneOptions } from "../../scripts/cluster/control_plane.ts";
import { ensureControlPlane } from "../../scripts/cluster/programs.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { withNode } from "../node/harness.ts";
import type { NodeOptions, TestNode } from "../node/harness.ts";

/** A control plane with its administrator. */
export interface TestCluster {
  readonly plane: ControlPlane;
  readonly admin: ApiClient;
}

export type ClusterOptions = Pick<
  ControlPlaneOptions,
  "name" | "controllers" | "apiServerFlags" | "controllerFlags" | "aggregation"
>;

/** Runs a test against a real control plane and removes it again; a failed test's error has the end of its log. */
export async function withCluster(
  options: ClusterOptions,
  test: (cluster: TestCluster) => Promise<void>,
): Promise<void> {
  const programs = await ensureControlPlane();
  await using plane = await ControlPlane.start({ ...options, programs });
  using clients = await clientsOf(plane.adminKubeconfig);
  try {
    await test({ plane, admin: clients.main });
  } catch (thrown) {
    const log = await plane.logEnd("kube-apiserver", 10);
    const error = new Error(`${messageOf(thrown)}\n--- end of the API server's log:\n${log}`, { cause: thrown });
    if (thrown instanceof Error && thrown.stack) error.stack = `${error.message}\n${thrown.stack}`;
    throw error;
  }
}

/** A node with its agent that is a member of a cluster. */
export interface ClusterNode extends TestCluster, TestNode {
  /** The node's name, which is the test's. */
  readonly nodeName: string;
}

export interface ClusterNodeOptions extends NodeOptions, ClusterOptions {
  readonly name: string;
  /** Prepares the cluster before the agent starts. */
  readonly before?: (cluster: TestCluster) => Promise<void>;
}

/** Runs a test with a real control plane, a private containerd, and an agent that has joined, or is about to. */
export async function withClusterNode(
  options: ClusterNodeOptions,
  test: (node: ClusterNode) => Promise<void>,
): Promise<void> {
  await withCluster(options, async (cluster) => {
    const { plane } = cluster;
    const kubeconfig = await plane.nodeKubeconfig(options.name);
    await options.before?.(cluster);
    await withNode({
      ...options,
      config: {
        enableServer: true,
        address: "0.0.0.0",
        port: freePort(),
        authentication: {
          anonymous: { enabled: false },
          webhook: { enabled: true },
          x509: { clientCAFile: `${plane.dir}/ca.crt` },
        },
        authorization: { mode: "Webhook" },
        ...options.config,
      },
      flags: [`--kubeconfig=${kubeconfig}`, `--cert-dir=${plane.dir}/pki-${options.name}`, ...options.flags ?? []],
    }, (node) => test({ ...cluster, ...node, nodeName: options.name }));
  });
}
