import assert from "@assert";
import { type ClusterTrustBundle, clusterTrustBundles } from "../../managers/objects/trust_bundles.ts";
import { podCertificateRequests } from "../../managers/pod_certificates/types.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Pod, VolumeProjection } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { box, patience } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";

const { signal } = new AbortController();
const namespace = "default";
const gates = ["ClusterTrustBundle", "ClusterTrustBundleProjection", "PodCertificateRequest"];

Deno.test("trust bundles and pod certificates with a real API server that has them", async (t) => {
  await withClusterNode({
    name: "c-project",
    containerd: "v2",
    apiServerFlags: [
      `--feature-gates=${gates.map((gate) => `${gate}=true`).join(",")}`,
      "--runtime-config=certificates.k8s.io/v1beta1=true",
    ],
    config: { featureGates: Object.fromEntries(gates.map((gate) => [gate, true])) },
  }, async ({ admin, agent, plane, nodeName }) => {
    await waitFor("the default service account", async () => {
      const { items } = await admin.list(resources.serviceAccounts, { namespace, signal });
      return items.length > 0;
    }, { within: patience });
    const create = async (name: string, source: VolumeProjection) => {
      const made = await admin.create<Pod>(resources.pods, {
        metadata: { name, namespace },
        spec: {
          nodeName,
          terminationGracePeriodSeconds: 1,
          containers: [box("c", { volumeMounts: [{ name: "v", mountPath: "/v" }] })],
          volumes: [{ name: "v", projected: { sources: [source] } }],
        },
      }, { signal });
      return made.metadata?.uid ?? "";
    };
    const remove = async (name: string) => {
      await admin.delete(resources.pods, { namespace, name }, { signal });
      await waitFor(`${name} to be gone`, async () => {
        const { items } = await admin.list(resources.pods, { namespace, signal });
        return !items.some(({ metadata }) => metadata?.name === name);
      }, { within: patience });
    };

    await t.step("a trust bundle is in the pod, as soon as there is one", async () => {
      const uid = await create("trusting", { clusterTrustBundle: { name: "ours", path: "ca.pem" } });
      await waitFor("the pod to wait for it", async () => {
        const { items } = await admin.list(resources.events, { namespace, signal });
        return items.some(({ message = "" }) => /while getting ClusterTrustBundle: .*"ours" not found/.test(message));
      }, { within: patience });
      const trustBundle = await Deno.readTextFile(`${plane.dir}/ca.crt`);
      await admin.create<ClusterTrustBundle>(
        clusterTrustBundles,
        { metadata: { name: "ours" }, spec: { trustBundle } },
        {
          signal,
        },
      );
      await waitFor("the pod to run", async () => {
        const { status } = await admin.get(resources.pods, { namespace, name: "trusting" }, { signal });
        return status?.phase === "Running";
      }, { within: patience });
      const file = `${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~projected/v/ca.pem`;
      assert.equal((await Deno.readTextFile(file)).trim(), trustBundle.trim());
      await remove("trusting");
    });

    await t.step("a pod's certificate is asked for by its node; a refusal is told", async () => {
      const podCertificate = {
        signerName: "example.com/none",
        keyType: "ECDSAP256",
        credentialBundlePath: "bundle.pem",
      };
      const uid = await create("certified", { podCertificate });
      const request = await waitFor("the request", async () => {
        const { items } = await admin.list(podCertificateRequests, { namespace, signal });
        return items.find(({ spec }) => spec?.podUID === uid);
      }, { within: patience });
      assert.equal(request.spec?.nodeName, nodeName);
      assert.equal(request.spec?.signerName, "example.com/none");
      const condition = {
        type: "Denied",
        status: "True",
        reason: "NotForYou",
        message: "no",
        lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, "Z"),
      };
      const name = { namespace, name: request.metadata?.name ?? "" };
      const patch = { status: { conditions: [condition] } };
      await admin.patch(podCertificateRequests, name, patch, { type: "merge", subresource: "status", signal });
      await waitFor("the refusal to be told", async () => {
        const { items } = await admin.list(resources.events, { namespace, signal });
        return items.some((e) => e.reason === "Denied" && /was denied, reason="NotForYou"/.test(e.message ?? ""));
      }, { within: patience });
      await remove("certified");
    });
  });
});
