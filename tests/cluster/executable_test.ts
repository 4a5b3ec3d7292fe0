import assert from "@assert";
import { makeExecutable } from "../../scripts/compile.ts";
import { remove, repository } from "../../scripts/lib/files.ts";
import { box } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView } from "./support.ts";

Deno.test("the executable joins with a credential plugin, whose right to run the plan gives", async () => {
  const cache = await Deno.makeTempDir({ prefix: "denolet-cluster-executable-" });
  try {
    await Deno.chmod(cache, 0o755);
    await makeExecutable("launcher");
    await withClusterNode({
      name: "executable",
      program: `${repository}/dist/kubelet`,
      env: { DENOLET_CACHE: cache },
      start: false,
    }, async (member) => {
      const { plane, agent, nodeName } = member;
      const view = new ClusterView(member);
      const { cert, key } = await plane.ca.issue({ name: `system:node:${nodeName}`, groups: ["system:nodes"] });
      const credential = {
        apiVersion: "client.authentication.k8s.io/v1",
        kind: "ExecCredential",
        status: { clientCertificateData: cert, clientKeyData: key },
      };
      await Deno.writeTextFile(`${plane.dir}/credential.json`, JSON.stringify(credential));
      await Deno.writeTextFile(`${plane.dir}/login`, `#!/bin/sh\nexec cat ${plane.dir}/credential.json\n`, {
        mode: 0o700,
      });
      const kubeconfig = {
        clusters: [{ name: "c", cluster: { server: plane.server, "certificate-authority": "ca.crt" } }],
        users: [{ name: "u", user: { exec: { apiVersion: credential.apiVersion, command: "./login" } } }],
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
        "current-context": "c",
      };
      await Deno.writeTextFile(`${plane.dir}/plugin.kubeconfig`, JSON.stringify(kubeconfig));
      agent.start([`--kubeconfig=${plane.dir}/plugin.kubeconfig`]);
      await agent.healthy();
      await view.nodeCondition("Ready", "True");
      await view.createPod("web", { containers: [box("main")] });
      const web = await view.ready("web");
      assert.equal(web.spec?.nodeName, nodeName);
      await view.deletePod("web");
      await view.gone("web");
    });
  } finally {
    await remove(cache);
  }
});
