import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { turn } from "../../mod/base/fake_clock.ts";
import { systemRandom } from "../../mod/base/random.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { createInformer } from "../../mod/kube/api/informer.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError, isAlreadyExists, isApiNotFound, isConflict, type WatchEvent } from "../../mod/kube/api/types.ts";
import type { ConfigMap, Lease, Namespace, Pod, Secret, ServiceAccount, TokenRequest } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { clientsOf } from "../../scripts/cluster/clients.ts";
import { type TestCluster, withCluster } from "./harness.ts";

const { signal } = new AbortController();
const within = Number(Deno.env.get("DENOLET_TEST_PATIENCE") ?? 60_000);
const namespace = "default";

const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { name, namespace },
  data,
});

const podOf = (name: string): Pod => ({
  metadata: { name, namespace },
  spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], automountServiceAccountToken: false },
});

const refuses = (status: number, reason: string) => (thrown: unknown) =>
  thrown instanceof ApiError && thrown.status === status && thrown.reason === reason;

Deno.test("the client and a real API server", async (t) => {
  await withCluster({ name: "client", controllers: false }, async (cluster) => {
    const { plane, admin } = cluster;
    // Nobody else makes it while the controllers are away.
    const account: ServiceAccount = { metadata: { name: "default", namespace } };
    await admin.create(resources.serviceAccounts, account, { signal });

    await t.step("objects: create, get, replace with a stale version, delete with another UID", async () => {
      const made = await admin.create(resources.configMaps, configMap("a", { k: "1" }), { signal });
      assert.equal((await admin.get(resources.configMaps, { namespace, name: "a" }, { signal })).data?.k, "1");
      await assert.rejects(admin.create(resources.configMaps, configMap("a"), { signal }), isAlreadyExists);
      await admin.replace(resources.configMaps, { ...made, data: { k: "2" } }, { signal });
      await assert.rejects(admin.replace(resources.configMaps, made, { signal }), isConflict);
      const name = { namespace, name: "a" };
      await assert.rejects(admin.delete(resources.configMaps, name, { signal, uid: "other" }), isConflict);
      await admin.delete(resources.configMaps, name, { signal, uid: made.metadata?.uid ?? "" });
      await assert.rejects(admin.get(resources.configMaps, name, { signal }), isApiNotFound);
    });

    await t.step("patches: strategic of a status, merge, operations", async () => {
      await admin.create(resources.pods, podOf("p"), { signal });
      const name = { namespace, name: "p" };
      const condition = (type: string, status: string) => ({ type, status });
      const patch = (conditions: unknown[], uid?: string) =>
        admin.patch(resources.pods, name, { metadata: uid ? { uid } : {}, status: { conditions } }, {
          type: "strategic-merge",
          subresource: "status",
          signal,
        });
      await patch([condition("a", "True"), condition("b", "True")]);
      const both = await patch([condition("b", "False")]);
      assert.deepEqual(both.status?.conditions?.map(({ type, status }) => `${type}=${status}`).sort(), [
        "a=True",
        "b=False",
      ]);
      // Where a replacement would be a conflict, a patch is taken for one that changes the UID.
      await assert.rejects(patch([], "00000000-0000-4000-8000-000000000000"), refuses(422, "Invalid"));
      const labelled = await admin.patch(resources.pods, name, { metadata: { labels: { x: "y" } } }, {
        type: "merge",
        signal,
      });
      assert.equal(labelled.metadata?.labels?.x, "y");
      await admin.patch(resources.pods, name, [{ op: "remove", path: "/metadata/labels/x" }], { type: "json", signal });
    });

    await t.step("graceful deletion of a pod leaves it for its node", async () => {
      const name = { namespace, name: "p" };
      await admin.delete(resources.pods, name, { signal });
      const marked = await admin.get(resources.pods, name, { signal });
      assert.equal(marked.metadata?.deletionGracePeriodSeconds, 30);
      await admin.delete(resources.pods, name, { signal, gracePeriodSeconds: 0, uid: marked.metadata?.uid ?? "" });
      await assert.rejects(admin.get(resources.pods, name, { signal }), isApiNotFound);
    });

    await t.step("a list of more than one page is whole, and its members say what they are", async () => {
      const names = Array.from({ length: 620 }, (_, i) => `many-${i}`);
      const left = [...names];
      const worker = async () => {
        for (let name; (name = left.pop()) !== undefined;) {
          await admin.create(resources.configMaps, configMap(name), { signal });
        }
      };
      await Promise.all(Array.from({ length: 20 }, worker));
      const { items, resourceVersion } = await admin.list(resources.configMaps, { namespace, signal });
      assert.deepEqual(
        items.map(({ metadata }) => metadata?.name).filter((name) => name?.startsWith("many-")).sort(),
        names.sort(),
      );
      assert(items.every(({ kind, apiVersion }) => kind === "ConfigMap" && apiVersion === "v1"));
      assert(Number(resourceVersion) > 0);
    });

    await t.step("a Secret of 1 MiB comes whole, by call and by watch", async () => {
      const data = { big: new Uint8Array(2 ** 20 - 100).toBase64() };
      const { resourceVersion } = await admin.list(resources.secrets, { namespace, signal });
      const secret: Secret = { metadata: { name: "big", namespace }, data };
      await admin.create(resources.secrets, secret, { signal });
      assert.equal((await admin.get(resources.secrets, { namespace, name: "big" }, { signal })).data?.big, data.big);
      for await (const event of admin.watch(resources.secrets, { namespace, resourceVersion, signal })) {
        assert(event.type === "ADDED" && event.object.data?.big === data.big);
        break;
      }
    });

    await t.step("a watch begins after its version, ends in its time", async () => {
      const { resourceVersion } = await admin.list(resources.leases, { namespace, signal });
      const lease: Lease = { metadata: { name: "l", namespace }, spec: { holderIdentity: "a" } };
      const made = await admin.create(resources.leases, lease, { signal });
      await admin.replace(resources.leases, { ...made, spec: { holderIdentity: "b" } }, { signal });
      await admin.delete(resources.leases, { name: "l", namespace }, { signal });
      const seen: string[] = [];
      const watch: AsyncIterable<WatchEvent<Lease>> = admin.watch(resources.leases, {
        namespace,
        resourceVersion,
        timeoutSeconds: 1,
        signal,
      });
      for await (const event of watch) if (event.type !== "BOOKMARK") seen.push(event.type);
      assert.deepEqual(seen, ["ADDED", "MODIFIED", "DELETED"]);
    });

    await t.step("a token of a service account", async () => {
      const { status } = await admin.post<TokenRequest, TokenRequest>(
        resources.serviceAccounts,
        { namespace, name: "default" },
        "token",
        { spec: { audiences: [], expirationSeconds: 600 } },
        { signal },
      );
      assert.match(status?.token ?? "", /^ey/);
    });

    await t.step("a node is told what it may not see", async () => {
      using node = await clientsOf(await plane.nodeKubeconfig("n1"));
      await assert.rejects(node.main.list(resources.secrets, { namespace, signal }), refuses(403, "Forbidden"));
      await assert.rejects(node.main.list(resources.pods, { signal }), refuses(403, "Forbidden"));
      await node.main.list(resources.pods, { fieldSelector: "spec.nodeName=n1", signal });
    });

    await t.step("more watches than one connection takes at once leave room for calls", async () => {
      const scope = new Scope("watches");
      const { resourceVersion } = await admin.list(resources.secrets, { namespace, signal });
      let ended = 0;
      for (let i = 0; i < 150; i++) {
        scope.spawn(`watch ${i}`, async (s) => {
          const options = { namespace, fieldSelector: `metadata.name=s${i}`, resourceVersion, signal: s };
          for await (const _ of admin.watch(resources.secrets, options)) { /* until it is called off */ }
          ended++;
        });
      }
      await systemClock.sleep(500);
      await admin.list(resources.namespaces, { signal, timeoutMs: within });
      assert.equal(ended, 0);
      await scope.close();
    });

    await t.step("an expired or a foreign certificate is refused; a call that takes too long is told", async () => {
      const expired = await plane.kubeconfig("expired", { name: "x", lifetimeMs: -3_600_000 });
      using late = await clientsOf(expired);
      await assert.rejects(late.main.list(resources.namespaces, { signal }), refuses(401, "Unauthorized"));
      await assert.rejects(admin.list(resources.namespaces, { signal, timeoutMs: 0 }), { code: "Timeout" });
      using nowhere = await clientsOf(await plane.kubeconfig("nowhere", { name: "x" }, "https://127.0.0.1:9"));
      await assert.rejects(nowhere.main.list(resources.namespaces, { signal }), { code: "Network" });
    });

    await t.step("a new certificate in the kubeconfig's files means new connections", async () => {
      const kubeconfig = await plane.kubeconfig("rotated", { name: "one", groups: ["system:masters"] });
      using clients = await clientsOf(kubeconfig);
      const { resourceVersion } = await clients.main.list(resources.namespaces, { signal });
      let broken: unknown;
      const watch = (async () => {
        for await (const _ of clients.main.watch(resources.namespaces, { resourceVersion, signal })) { /* none */ }
      })().catch((thrown) => broken = thrown);
      await plane.kubeconfig("rotated", { name: "two" });
      await waitFor("the new identity to be refused", async () => {
        try {
          await clients.heartbeat.list(resources.namespaces, { signal });
          return false;
        } catch (thrown) {
          return thrown instanceof ApiError && thrown.message.includes('"two"');
        }
      }, { within });
      await watch;
      assert.equal((broken as { code?: string }).code, "Network", "the watch of the old identity was broken off");
    });

    await informs(t, cluster);
  });
});

/** The informer against a server that is restarted, compacted and stands still. */
async function informs(t: Deno.TestContext, { plane }: TestCluster): Promise<void> {
  using clients = await clientsOf(plane.adminKubeconfig, { heartbeatMs: 1000 });
  const { main, heartbeat } = clients;
  const scope = new Scope("informer");
  const told: string[] = [];
  let lists = 0;
  const informer = createInformer<Namespace>({
    client: main,
    resource: resources.namespaces,
    labelSelector: "test=informer",
    clock: systemClock,
    random: systemRandom,
    log: silent,
    onChange: ({ type, object }) => told.push(`${type} ${object.metadata?.name}`),
    onList: () => lists++,
  });
  const make = (name: string) =>
    main.create(resources.namespaces, { metadata: { name, labels: { test: "informer" } } }, { signal });
  const until = (what: string) => waitFor(what, () => told.includes(what), { within });
  scope.spawn("informer", (s) => informer.run(s));
  try {
    await informer.whenSynced(signal);
    await t.step("the informer follows what happens", async () => {
      await make("one");
      await until("added one");
    });
    await t.step("a restart of the API server is survived", async () => {
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await turn();
      assert.deepEqual(informer.all().map(({ metadata }) => metadata?.name), ["one"], "what is known stays known");
      await plane.startComponent("kube-apiserver");
      await make("two");
      await until("added two");
    });
    await t.step("a store that has forgotten the version makes a new list", async () => {
      const before = lists;
      await make("three");
      await until("added three");
      // The informer's selector hides this one, so its version stays behind.
      await main.create(resources.namespaces, { metadata: { name: "unseen" } }, { signal });
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await plane.compact();
      await plane.startComponent("kube-apiserver");
      await make("four");
      await until("added four");
      assert(lists > before);
      await assert.rejects(async () => {
        for await (const _ of main.watch(resources.namespaces, { resourceVersion: "2", signal })) break;
      }, refuses(410, "Expired"));
      assert.equal(told.filter((one) => one === "added one").length, 1, "what had not changed is not told again");
    });
    await t.step("a server that stands still is left by a heartbeat without an answer, and found again", async () => {
      plane.freeze("kube-apiserver", true);
      await assert.rejects(heartbeat.list(resources.namespaces, { signal }), { code: "Timeout" });
      plane.freeze("kube-apiserver", false);
      await waitFor("the server to answer", () => heartbeat.list(resources.namespaces, { signal }), { within });
      await make("five");
      await until("added five");
    });
  } finally {
    plane.freeze("kube-apiserver", false);
    await scope.close();
  }
}
