import { ensureMetricsServer } from "../../scripts/cluster/programs.ts";
import { LoggedProcess } from "../../scripts/cluster/logged_process.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import type { TestCluster } from "./harness.ts";
import type { Kubectl } from "./kubectl.ts";

const name = "metrics-server", namespace = "kube-system";
const rbac = "rbac.authorization.k8s.io";
const itself = [{ kind: "ServiceAccount", name, namespace }];

/** What it may do: its own manifests give it the same. */
const rights = [
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
  {
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRole",
    metadata: { name: "system:metrics-server" },
    rules: [
      { apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] },
      { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
    ],
  },
  binding("ClusterRoleBinding", "system:metrics-server", "ClusterRole", "system:metrics-server"),
  binding("ClusterRoleBinding", "metrics-server:system:auth-delegator", "ClusterRole", "system:auth-delegator"),
  binding("RoleBinding", "metrics-server-auth-reader", "Role", "extension-apiserver-authentication-reader"),
];

function binding(kind: string, called: string, roleKind: string, role: string): object {
  return {
    apiVersion: `${rbac}/v1`,
    kind,
    metadata: { name: called, ...(kind === "RoleBinding" ? { namespace } : {}) },
    roleRef: { apiGroup: rbac, kind: roleKind, name: role },
    subjects: itself,
  };
}

/**
 * How the API server finds it: the service's name leads to this machine, as the API server takes no endpoints on
 * loopback. It is asked as `metrics-server.kube-system.svc`, under which its certificate has to be good.
 */
function registration(port: number, ca: string): object[] {
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace },
      spec: { type: "ExternalName", externalName: "localhost", ports: [{ name: "https", port }] },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1beta1.metrics.k8s.io" },
      spec: {
        service: { name, namespace, port },
        group: "metrics.k8s.io",
        version: "v1beta1",
        caBundle: btoa(ca),
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    },
  ];
}

/** The real metrics-server, as a process of this machine that a cluster with `aggregation` serves as metrics.k8s.io. */
export class MetricsServer implements AsyncDisposable {
  private constructor(private readonly process: LoggedProcess) {}

  /** Starts it with the rights of its own manifests, registers it, and waits until the API server hands requests on. */
  static async start({ plane }: TestCluster, kubectl: Kubectl, within: number): Promise<MetricsServer> {
    const program = await ensureMetricsServer();
    const port = freePort();
    await apply(kubectl, rights);
    const token = await kubectl.run("create", "token", name, "-n", namespace, "--duration=1h");
    const kubeconfig = await plane.tokenKubeconfig(name, token.trim());
    const pair = await plane.certificate(name, { name, hosts: [`${name}.${namespace}.svc`] });
    const running = await LoggedProcess.start(name, [
      program,
      `--kubeconfig=${kubeconfig}`,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--tls-cert-file=${pair.cert}`,
      `--tls-private-key-file=${pair.key}`,
      "--kubelet-preferred-address-types=InternalIP",
      "--kubelet-use-node-status-port",
      "--kubelet-request-timeout=9s",
      "--metric-resolution=10s",
      "--v=2",
    ], plane.dir);
    const server = new MetricsServer(running);
    try {
      await apply(kubectl, registration(port, plane.ca.cert));
      await running.ready(
        async () => (await plane.raw("/apis/metrics.k8s.io/v1beta1/nodes")).status === 200,
        within,
      );
      return server;
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** All that it has said. */
  async log(): Promise<string> {
    return await Deno.readTextFile(this.process.log);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.stop("SIGKILL");
  }
}

/** Creates objects, or brings them up to date. */
export async function apply(kubectl: Kubectl, items: readonly object[]): Promise<void> {
  const { code, stderr } = await kubectl.feed(
    JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    "apply",
    "-f",
    "-",
  );
  if (code !== 0) throw new Error(`kubectl apply: ${stderr}`);
}
