import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import type { ServiceAccount, TokenRequest } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { clientsOf } from "../../scripts/cluster/clients.ts";
import { type TestCluster, withCluster } from "./harness.ts";
import { TcpProxy } from "./tcp_proxy.ts";

const { signal } = new AbortController();
const within = Number(Deno.env.get("DENOLET_TEST_PATIENCE") ?? 60_000);

interface Parts {
  readonly cluster?: Record<string, unknown>;
  readonly user?: Record<string, unknown>;
}

/** Writes a kubeconfig; the administrator's own certificate unless `user` says otherwise. */
async function kubeconfig({ plane }: TestCluster, file: string, { cluster, user }: Parts): Promise<string> {
  const path = `${plane.dir}/${file}`;
  const pair = { "client-certificate": "admin.crt", "client-key": "admin.key" };
  await Deno.writeTextFile(
    path,
    JSON.stringify({
      clusters: [{ name: "c", cluster: { server: plane.server, "certificate-authority": "ca.crt", ...cluster } }],
      users: [{ name: "u", user: user ?? pair }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      "current-context": "c",
    }),
  );
  return path;
}

const who = /system:serviceaccount:default:(\w+)/;

Deno.test("ways to an API server", async (t) => {
  await withCluster({ name: "connections", controllers: false }, async (cluster) => {
    const { plane, admin } = cluster;
    const token = async (name: string): Promise<string> => {
      const account: ServiceAccount = { metadata: { name, namespace: "default" } };
      await admin.create(resources.serviceAccounts, account, { signal });
      const { status } = await admin.post<TokenRequest, TokenRequest>(
        resources.serviceAccounts,
        { namespace: "default", name },
        "token",
        { spec: { audiences: [] } },
        { signal },
      );
      return status?.token ?? "";
    };
    /** Lists and watches with a kubeconfig. */
    const works = async (parts: Parts) => {
      using clients = await clientsOf(await kubeconfig(cluster, "x.kubeconfig", parts));
      const { items, resourceVersion } = await clients.main.list(resources.namespaces, { signal });
      assert(items.length > 0);
      const name = `n${crypto.randomUUID()}`;
      await admin.create(resources.namespaces, { metadata: { name } }, { signal });
      for await (const event of clients.main.watch(resources.namespaces, { resourceVersion, signal })) {
        assert(event.type === "ADDED" && event.object.metadata?.name === name);
        break;
      }
      const control = new AbortController();
      const watch = clients.main.watch(resources.secrets, { resourceVersion, signal: control.signal });
      const end = assert.rejects(watch[Symbol.asyncIterator]().next(), { code: "Aborted" });
      control.abort();
      await end;
    };
    /** Whose name the server gives in its refusal. */
    const nameOf = async (clients: Awaited<ReturnType<typeof clientsOf>>) => {
      try {
        await clients.main.list(resources.namespaces, { signal });
        return "nobody";
      } catch (thrown) {
        return thrown instanceof ApiError ? who.exec(thrown.message)?.[1] ?? thrown.message : String(thrown);
      }
    };

    await t.step("another name than the URL's, which must be the certificate's", async () => {
      await works({ cluster: { "tls-server-name": "kubernetes.default.svc" } });
      await assert.rejects(works({ cluster: { "tls-server-name": "elsewhere.example" } }), { code: "Network" });
    });
    await t.step(
      "no check of the certificate, when that is wished; otherwise one that nobody vouches for",
      async () => {
        await works({ cluster: { "certificate-authority": undefined, "insecure-skip-tls-verify": true } });
        await assert.rejects(works({ cluster: { "certificate-authority": undefined } }), { code: "Network" });
      },
    );
    await t.step("through a proxy", async () => {
      using proxy = new TcpProxy(plane.server, { connect: true });
      await works({ cluster: { "proxy-url": `http://127.0.0.1:${proxy.port}` } });
      assert(proxy.made > 0);
    });
    await t.step("a token file, and the next one after a refusal", async () => {
      const file = `${plane.dir}/token`;
      await Deno.writeTextFile(file, await token("one"));
      using clients = await clientsOf(await kubeconfig(cluster, "token.kubeconfig", { user: { tokenFile: file } }));
      assert.equal(await nameOf(clients), "one");
      await Deno.writeTextFile(file, "stale");
      using stale = await clientsOf(await kubeconfig(cluster, "token.kubeconfig", { user: { tokenFile: file } }));
      await assert.rejects(stale.main.list(resources.namespaces, { signal }), /Unauthorized/);
      await Deno.writeTextFile(file, await token("two"));
      assert.equal(await nameOf(stale), "two");
    });
    await t.step("a credential plugin", async () => {
      const credential = {
        apiVersion: "client.authentication.k8s.io/v1",
        kind: "ExecCredential",
        status: { token: await token("three") },
      };
      await Deno.writeTextFile(`${plane.dir}/login`, `#!/bin/sh\ncat <<'EOF'\n${JSON.stringify(credential)}\nEOF\n`, {
        mode: 0o700,
      });
      const exec = { apiVersion: credential.apiVersion, command: "./login", interactiveMode: "Never" };
      using clients = await clientsOf(await kubeconfig(cluster, "exec.kubeconfig", { user: { exec } }));
      assert.equal(await nameOf(clients), "three");
    });
    await t.step("a path that carries nothing any more is left for a new one after one heartbeat", async () => {
      using proxy = new TcpProxy(plane.server);
      const server = `https://127.0.0.1:${proxy.port}`;
      const path = await kubeconfig(cluster, "cut.kubeconfig", { cluster: { server } });
      using clients = await clientsOf(path, { heartbeatMs: 1000 });
      const { main, heartbeat } = clients;
      await heartbeat.list(resources.namespaces, { signal });
      const { resourceVersion } = await main.list(resources.namespaces, { signal });
      const watch = (async () => {
        for await (const _ of main.watch(resources.secrets, { resourceVersion, signal })) { /* none */ }
      })().then(() => "ended", (thrown) => thrown.code);
      await waitFor("the watch to be open", () => proxy.made >= 3, { within });
      proxy.cut();
      await assert.rejects(heartbeat.list(resources.namespaces, { signal }), { code: "Timeout" });
      assert.equal(await watch, "Network", "the watch does not wait for its watchdog");
      await heartbeat.list(resources.namespaces, { signal });
      await main.list(resources.namespaces, { signal });
    });
  });
});
