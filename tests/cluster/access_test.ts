import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { KubeObject, ResourceType } from "../../mod/kube/api/types.ts";
import type { TokenRequest } from "../../mod/kube/types.ts";
import { ask } from "../../mod/server/testing.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView, patience } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";

interface Role extends KubeObject {
  rules: readonly { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}
interface Binding extends KubeObject {
  roleRef: { apiGroup: string; kind: string; name: string };
  subjects: readonly { kind: string; name: string; namespace: string }[];
}
const rbac = { group: "rbac.authorization.k8s.io", version: "v1", namespaced: false };
const roles: ResourceType<Role> = { ...rbac, plural: "clusterroles", kind: "ClusterRole" };
const bindings: ResourceType<Binding> = { ...rbac, plural: "clusterrolebindings", kind: "ClusterRoleBinding" };

Deno.test("the node's API asks a real API server who a caller is and what he may", async (t) => {
  await withClusterNode({ name: "access" }, async (member) => {
    const { admin } = member;
    const node = await new ClusterView(member).nodeCondition("Ready", "True");
    const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port;
    const get = async (path: string, token?: string) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const { status, body } = await ask(`https://127.0.0.1:${port}${path}`, { headers });
      return { status, body };
    };
    const account = async (name: string): Promise<string> => {
      await admin.create(resources.serviceAccounts, { metadata: { name, namespace } }, { signal });
      const request = { spec: { audiences: [], expirationSeconds: 600 } } as unknown as TokenRequest;
      const at = { name, namespace };
      const made = await admin.post<TokenRequest, TokenRequest>(resources.serviceAccounts, at, "token", request, {
        signal,
      });
      return made.status?.token ?? "";
    };

    await waitFor("the node's API", async () => (await get("/healthz")).status > 0, { within: patience });
    await t.step("nobody, and somebody with a bad token, are turned away", async () => {
      assert.deepEqual(await get("/metrics"), { status: 401, body: "Unauthorized" });
      assert.deepEqual(await get("/metrics", "nonsense"), { status: 401, body: "Unauthorized" });
    });

    await t.step("a token without rights is forbidden, by name", async () => {
      const { status, body } = await get("/metrics", await account("stranger"));
      assert.equal(status, 403);
      const user = "system:serviceaccount:default:stranger";
      assert.equal(body, `Forbidden (user=${user}, verb=get, resource=nodes, subresource(s)=[metrics])\n`);
    });

    await t.step("rights hold for their subresource only", async () => {
      await admin.create(roles, {
        metadata: { name: "scraper" },
        rules: [{ apiGroups: [""], resources: ["nodes/metrics", "nodes/pods"], verbs: ["get"] }],
      }, { signal });
      await admin.create(bindings, {
        metadata: { name: "scraper" },
        roleRef: { apiGroup: rbac.group, kind: "ClusterRole", name: "scraper" },
        subjects: [{ kind: "ServiceAccount", name: "scraper", namespace }],
      }, { signal });
      const token = await account("scraper");
      for (const path of ["/metrics", "/metrics/resource", "/pods"]) {
        assert.equal((await get(path, token)).status, 200, path);
      }
      for (const path of ["/stats/summary", "/configz", "/run/default/p/c?cmd=id", "/logs/"]) {
        assert.equal((await get(path, token)).status, 403, path);
      }
    });
  });
});
