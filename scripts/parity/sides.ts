import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound } from "../../mod/kube/api/types.ts";
import { ensureKubelet } from "../cluster/programs.ts";
import type { ControlPlane } from "../cluster/control_plane.ts";
import { run } from "../lib/command.ts";
import { AgentNode } from "../node/agent_node.ts";
import type { Containerd } from "../node/containerd.ts";

/** Which kubelet. */
export type Side = "reference" | "ours";

/** What both are started with. */
export interface SideOptions {
  readonly plane: ControlPlane;
  readonly admin: ApiClient;
  readonly containerd: Containerd;
  readonly nodeName: string;
  /** The port of the node's API: the same for both. */
  readonly port: number;
  /** Our executable; scripts/agent.sh when not given. */
  readonly program?: string;
  readonly log: (line: string) => void;
  /** Where its log is kept, as SIDE.log. */
  readonly save?: string | undefined;
}

const signal = new AbortController().signal;

/**
 * Starts a kubelet on a node without any past, lets `work` be done, and wipes all that is left: the node's object, its
 * lease, events, directories, control groups, and what the runtime has of pods.
 */
export async function withSide<T>(
  side: Side,
  options: SideOptions,
  work: (agent: AgentNode) => Promise<T>,
): Promise<T> {
  const { plane, containerd, nodeName, port, log } = options;
  const kubeconfig = await plane.nodeKubeconfig(nodeName);
  await wiped(options);
  const program = side === "reference" ? await referenceProgram(options) : options.program;
  const agent = await AgentNode.prepare({
    name: nodeName,
    containerd,
    config: {
      enableServer: true,
      address: "0.0.0.0",
      port,
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: `${plane.dir}/ca.crt` },
      },
      authorization: { mode: "Webhook" },
    },
    flags: [`--kubeconfig=${kubeconfig}`, `--cert-dir=${plane.dir}/pki-${side}`],
    ...(program === undefined ? {} : { program }),
    log,
  });
  try {
    if (side === "reference") await sharedRoot(agent.paths.root);
    agent.start();
    await agent.healthy(90_000);
    return await work(agent);
  } catch (thrown) {
    log(`end of the log of ${side}:\n${await agent.logEnd()}`);
    throw thrown;
  } finally {
    await agent.kill();
    if (options.save !== undefined) await Deno.copyFile(agent.paths.log, `${options.save}/${side}.log`);
    await containerd.removePods();
    await agent.clean();
    await wiped(options);
  }
}

/** Mounts below the directory reach the runtime, from whichever mount namespace. */
async function sharedRoot(root: string): Promise<void> {
  await run(["mount", "--bind", root, root]);
  await run(["mount", "--make-shared", root]);
}

/**
 * The kubelet in a mount namespace of its own, in which the places that it knows by heart are its own: it empties
 * /var/lib/kubelet/device-plugins, and looks for containerd's statistics at /run/containerd/containerd.sock only.
 * The host sees nothing of what is mounted there: others may use those places just now.
 */
async function referenceProgram({ plane, containerd, log }: SideOptions): Promise<string> {
  const kubelet = await ensureKubelet({ log });
  const [inside, outside] = [`${plane.dir}/kubelet-inside.sh`, `${plane.dir}/kubelet.sh`];
  await Deno.writeTextFile(
    inside,
    `set -eu
for at in / /var /var/lib /var/lib/kubelet /run /run/containerd; do
  mkdir -p $at
  if mountpoint -q $at; then mount --make-private $at; fi
done
for at in /var/lib/kubelet /run/containerd; do
  if [ "$(findmnt --noheadings --output PROPAGATION --target $at | tail -n 1)" != private ]; then
    echo "what is mounted over $at would be seen by the host" >&2
    exit 1
  fi
  mount -t tmpfs tmpfs $at
done
ln -s ${containerd.socket} /run/containerd/containerd.sock
exec ${kubelet} "$@"
`,
  );
  const text = `#!/bin/sh\nexec unshare --mount --propagation unchanged sh ${inside} "$@"\n`;
  await Deno.writeTextFile(outside, text, { mode: 0o755 });
  return outside;
}

/** Removes what a kubelet left on the API server. */
async function wiped({ admin, plane, nodeName }: SideOptions): Promise<void> {
  const { items } = await admin.list(resources.pods, { signal });
  for (const { metadata } of items) {
    const name = { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
    await unlessGone(admin.delete(resources.pods, name, { signal, gracePeriodSeconds: 0 }));
  }
  await unlessGone(admin.delete(resources.nodes, { name: nodeName }, { signal }));
  const lease = { namespace: "kube-node-lease", name: nodeName };
  await unlessGone(admin.delete(resources.leases, lease, { signal }));
  for (const namespace of ["default", "kube-node-lease"]) {
    await plane.raw(`/api/v1/namespaces/${namespace}/events`, { method: "DELETE" });
  }
}

async function unlessGone(answer: Promise<void>): Promise<void> {
  try {
    await answer;
  } catch (thrown) {
    if (!isApiNotFound(thrown)) throw thrown;
  }
}
