import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { KubeObject, ResourceType } from "../../mod/kube/api/types.ts";
import type { Pod, ServiceAccount, TokenReview } from "../../mod/kube/types.ts";
import { repository } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { box, patience } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { privateRegistry } from "./private_registry.ts";

const { signal } = new AbortController();
const namespace = "default";
const audience = "registry-access";
const version = "credentialprovider.kubelet.k8s.io/v1";

const rbac = <T extends KubeObject>(plural: string, kind: string): ResourceType<T> => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural,
  kind,
  namespaced: false,
});

Deno.test("a credential provider plugin gets a token of the pod's service account", async () => {
  const directory = await Deno.makeTempDir({ prefix: "denolet-plugin-" });
  await using registry = await privateRegistry();
  try {
    const answer = JSON.stringify({
      kind: "CredentialProviderResponse",
      apiVersion: version,
      cacheKeyType: "Registry",
      cacheDuration: "1h",
      auth: { [registry.address]: JSON.parse(registry.user) },
    });
    const programs = {
      agent:
        `exec ${Deno.execPath()} run --quiet --no-prompt --allow-all --config ${repository}/deno.json ${repository}/main.ts "$@"`,
      provider: `cat > ${directory}/asked\ncat <<'END'\n${answer}\nEND`,
    };
    for (const [name, text] of Object.entries(programs)) {
      await Deno.writeTextFile(`${directory}/${name}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    }
    await Deno.writeTextFile(
      `${directory}/providers.json`,
      JSON.stringify({
        kind: "CredentialProviderConfig",
        apiVersion: "kubelet.config.k8s.io/v1",
        providers: [{
          name: "provider",
          matchImages: [registry.address],
          defaultCacheDuration: "0s",
          apiVersion: version,
          tokenAttributes: {
            serviceAccountTokenAudience: audience,
            requireServiceAccount: true,
            requiredServiceAccountAnnotationKeys: ["example.com/registry"],
            cacheType: "ServiceAccount",
          },
        }],
      }),
    );
    await withClusterNode({
      name: "c-plugin",
      containerd: "v2",
      program: Deno.env.get("DENOLET_TEST_PROGRAM") ?? `${directory}/agent`,
      flags: [
        `--image-credential-provider-config=${directory}/providers.json`,
        `--image-credential-provider-bin-dir=${directory}`,
      ],
      before: async ({ admin }) => {
        // A node may ask for tokens of other audiences than its pods' volumes name only where somebody allows it.
        const metadata = { name: "node-audiences" };
        const rules = [{ apiGroups: [""], resources: [audience], verbs: ["request-serviceaccounts-token-audience"] }];
        const apiVersion = "rbac.authorization.k8s.io/v1";
        const roles = rbac<KubeObject & { rules?: unknown }>("clusterroles", "ClusterRole");
        await admin.create(roles, { apiVersion, kind: "ClusterRole", metadata, rules }, { signal });
        const bindings = rbac<KubeObject & { roleRef?: unknown; subjects?: unknown }>(
          "clusterrolebindings",
          "ClusterRoleBinding",
        );
        const group = "rbac.authorization.k8s.io";
        await admin.create(bindings, {
          apiVersion,
          kind: "ClusterRoleBinding",
          metadata,
          roleRef: { apiGroup: group, kind: "ClusterRole", name: metadata.name },
          subjects: [{ apiGroup: group, kind: "Group", name: "system:nodes" }],
        }, { signal });
      },
    }, async ({ admin, agent, nodeName }) => {
      const account: ServiceAccount = {
        metadata: { name: "puller", namespace, annotations: { "example.com/registry": "team", other: "not told" } },
      };
      const { metadata: of } = await admin.create(resources.serviceAccounts, account, { signal });
      await admin.create<Pod>(resources.pods, {
        metadata: { name: "web", namespace },
        spec: {
          nodeName,
          serviceAccountName: "puller",
          terminationGracePeriodSeconds: 1,
          containers: [{ ...box("c"), image: registry.image }],
        },
      }, { signal });
      const uid = await waitFor("the pod to run", async () => {
        const { status, metadata } = await admin.get(resources.pods, { namespace, name: "web" }, { signal });
        return status?.phase === "Running" ? metadata?.uid : undefined;
      }, { within: patience });
      const asked = JSON.parse(await Deno.readTextFile(`${directory}/asked`));
      assert.equal(asked.image, registry.image.replace(/:1$/, ""));
      assert.deepEqual(asked.serviceAccountAnnotations, { "example.com/registry": "team" });
      const spec = { token: asked.serviceAccountToken, audiences: [audience] };
      const { status } = await admin.create<TokenReview>(resources.tokenReviews, { spec }, { signal });
      assert.equal(status?.user?.username, "system:serviceaccount:default:puller", status?.error);
      assert.deepEqual(status?.user?.extra?.["authentication.kubernetes.io/pod-uid"], [uid]);
      const pulled = `${agent.paths.kubelet}/image_manager/pulled`;
      const [record] = await Array.fromAsync(Deno.readDir(pulled));
      const { credentialMapping } = JSON.parse(await Deno.readTextFile(`${pulled}/${record?.name}`));
      assert.deepEqual(credentialMapping[asked.image], {
        kubernetesServiceAccounts: [{ uid: of?.uid, namespace, name: "puller" }],
      });
      await admin.delete(resources.pods, { namespace, name: "web" }, { signal });
      await waitFor("the pod to be gone", async () => {
        const { items } = await admin.list(resources.pods, { namespace, signal });
        return items.length === 0;
      }, { within: patience });
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
