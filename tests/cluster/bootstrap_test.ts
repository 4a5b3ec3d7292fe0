import assert from "@assert";
import { endOf } from "../../managers/certificates/pair.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Secret } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { exists } from "../../scripts/lib/files.ts";
import { box } from "../node/support.ts";
import { type TestCluster, withClusterNode } from "./harness.ts";
import { approveServing, ClusterView, patience } from "./support.ts";

const { signal } = new AbortController();
const id = "abcdef", secret = "0123456789abcdef";

/** Lets a group do what a role of the cluster says. */
async function allow({ plane }: TestCluster, role: string, group: string): Promise<void> {
  const { status, text } = await plane.raw("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      metadata: { generateName: "bootstrap-" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group }],
    }),
  });
  assert.equal(status, 201, text);
}

/** Lets nodes ask for certificates with a bootstrap token, and the controller manager approve their clients'. */
async function allowBootstrap(cluster: TestCluster): Promise<void> {
  const { plane, admin } = cluster;
  const token: Secret = {
    metadata: { name: `bootstrap-token-${id}`, namespace: "kube-system" },
    type: "bootstrap.kubernetes.io/token",
    stringData: {
      "token-id": id,
      "token-secret": secret,
      "usage-bootstrap-authentication": "true",
    },
  };
  await admin.create(resources.secrets, token, { signal });
  await allow(cluster, "system:node-bootstrapper", "system:bootstrappers");
  await allow(cluster, "system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:bootstrappers");
  await Deno.writeTextFile(
    `${plane.dir}/bootstrap.kubeconfig`,
    JSON.stringify({
      clusters: [{ name: "c", cluster: { server: plane.server, "certificate-authority": `${plane.dir}/ca.crt` } }],
      users: [{ name: "u", user: { token: `${id}.${secret}` } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      "current-context": "c",
    }),
  );
}

Deno.test("a node without credentials gets its certificates from the cluster", async (t) => {
  const name = "bootstrap";
  const root = `/var/lib/denolet-agent.${name}`;
  await withClusterNode({
    name,
    start: false,
    before: allowBootstrap,
    config: { serverTLSBootstrap: true, rotateCertificates: true },
  }, async (member) => {
    const { plane, admin, agent } = member;
    const view = new ClusterView(member);
    const kubeconfig = `${root}/made.kubeconfig`;
    agent.start([
      `--kubeconfig=${kubeconfig}`,
      `--bootstrap-kubeconfig=${plane.dir}/bootstrap.kubeconfig`,
      `--cert-dir=${root}/pki`,
    ]);
    await agent.healthy();

    await t.step("the kubeconfig is written, and the node joins with a certificate of its own", async () => {
      await view.nodeCondition("Ready", "True");
      assert(await exists(kubeconfig));
      assert(await exists(`${root}/pki/kubelet-client-current.pem`));
      await view.createPod("web", { containers: [box("main")] });
      await view.ready("web");
      await view.deletePod("web", 0);
      await view.gone("web");
    });

    await t.step("its serving certificate is used as soon as somebody approves it", async () => {
      await approveServing(admin);
      await waitFor("the certificate's file", () => exists(`${root}/pki/kubelet-server-current.pem`), {
        within: patience,
      });
    });

    await t.step("a restart needs the bootstrap identity no more", async () => {
      await agent.kill();
      await Deno.remove(`${plane.dir}/bootstrap.kubeconfig`);
      agent.start([`--kubeconfig=${kubeconfig}`, `--cert-dir=${root}/pki`]);
      await agent.healthy();
      await view.createPod("again", { containers: [box("main")] });
      await view.ready("again");
      await view.deletePod("again", 0);
      await view.gone("again");
    });
  });
});

Deno.test("a node whose certificate ends while it runs gets another one from the cluster, and its pods go on", async (t) => {
  const name = "rebootstrap";
  const root = `/var/lib/denolet-agent.${name}`;
  const current = `${root}/pki/kubelet-client-current.pem`;
  const within = 90_000 + patience;
  await withClusterNode({
    name,
    start: false,
    before: allowBootstrap,
    // Longer than the minute that watches may wait before they are tried again.
    controllerFlags: ["--cluster-signing-duration=90s"],
    config: { rotateCertificates: false },
  }, async (member) => {
    const { plane, agent } = member;
    const view = new ClusterView(member);
    const bootstrapFile = `${plane.dir}/bootstrap.kubeconfig`;
    const ended = async () => (endOf(await Deno.readTextFile(current)) ?? 0) <= Date.now();
    const renewed = async (before: string) =>
      await waitFor(
        "another certificate that lasts",
        async () => await Deno.readLink(current) !== before && !await ended(),
        { within },
      );
    const runsPods = async (pod: string) => {
      await view.createPod(pod, { containers: [box("main")] });
      await view.ready(pod);
      await view.deletePod(pod, 0);
      await view.gone(pod);
    };
    agent.start([
      `--kubeconfig=${root}/made.kubeconfig`,
      `--bootstrap-kubeconfig=${bootstrapFile}`,
      `--cert-dir=${root}/pki`,
    ]);
    await agent.healthy();
    await view.nodeCondition("Ready", "True");
    await view.createPod("stays", { containers: [box("main")] });
    const { status } = await view.ready("stays");

    await t.step("while the API server is there", async () => {
      await renewed(await Deno.readLink(current));
      await runsPods("first");
    });

    await t.step("when it was away for longer than the certificate's life", async () => {
      const before = await Deno.readLink(current);
      await plane.stopComponent("kube-controller-manager");
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await waitFor("the certificate's end", ended, { within });
      await plane.startComponent("kube-apiserver");
      await plane.startComponent("kube-controller-manager");
      await renewed(before);
      await runsPods("second");
    });

    await t.step("as soon as there is a bootstrap identity again", async () => {
      await Deno.rename(bootstrapFile, `${bootstrapFile}.away`);
      await waitFor(
        "the log to name the missing file",
        async () => (await Deno.readTextFile(agent.paths.log)).includes(`kubeconfig ${bootstrapFile} can't be read`),
        { within },
      );
      const before = await Deno.readLink(current);
      await Deno.rename(`${bootstrapFile}.away`, bootstrapFile);
      await renewed(before);
      await runsPods("third");
    });

    const { status: now } = await view.ready("stays");
    assert.deepEqual(
      now?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
      status?.containerStatuses?.map(({ containerID }) => [containerID, 0]),
    );
  });
});

Deno.test("a certificate that the kubeconfig names is renewed in the agent's own files, and those are used from then on", async () => {
  const name = "renewed";
  const root = `/var/lib/denolet-agent.${name}`;
  const current = `${root}/pki/kubelet-client-current.pem`;
  await withClusterNode({
    name,
    start: false,
    before: (cluster) =>
      allow(cluster, "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"),
    config: { rotateCertificates: true },
  }, async (member) => {
    const { plane, agent } = member;
    const view = new ClusterView(member);
    const subject = { name: `system:node:${name}`, groups: ["system:nodes"], lifetimeMs: 60_000 };
    const kubeconfig = await plane.kubeconfig("short", subject);
    const end = endOf(await Deno.readTextFile(`${plane.dir}/short.crt`)) ?? 0;
    const flags = [`--kubeconfig=${kubeconfig}`, `--cert-dir=${root}/pki`];
    agent.start(flags);
    await agent.healthy();
    await view.nodeCondition("Ready", "True");
    await waitFor("a certificate of the agent's own", () => exists(current), { within: 60_000 + patience });
    await waitFor("the end of the kubeconfig's", () => Promise.resolve(Date.now() > end), {
      within: 60_000 + patience,
    });
    const works = async (pod: string) => {
      await view.createPod(pod, { containers: [box("main")] });
      await view.ready(pod);
      await view.deletePod(pod, 0);
      await view.gone(pod);
    };
    await works("after");
    await agent.kill();
    agent.start(flags);
    await agent.healthy();
    await works("restarted");
  });
});
