import assert from "@assert";
import { FakeClock, turn, turnUntil } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { bootstrap } from "./bootstrap.ts";
import { CertificateStore } from "./store.ts";
import { FakeSigning, testAuthority } from "./testing.ts";

const cluster = { server: "https://10.0.0.9:6443", certificateAuthorityData: "Q0E=" };
const kubeconfig = "/etc/kubernetes/kubelet.conf";

async function scene() {
  const clock = new FakeClock();
  const host = new FakeHost({ files: {} });
  const log = new RecordingLogger();
  const store = new CertificateStore({ dir: "/pki", prefix: "kubelet-client", host, log });
  const api = new FakeSigning();
  const authority = await testAuthority(clock);
  const start = (signal = new AbortController().signal) => {
    let failed: unknown;
    const done = bootstrap({ client: api, cluster, kubeconfig, store, nodeName: "n1", host, clock, log, signal })
      .catch((thrown) => failed = thrown);
    return { done, failed: () => failed };
  };
  return { clock, host, log, store, api, authority, start };
}

Deno.test("bootstrap: a certificate is asked for with the node's name, and the kubeconfig points at it", async () => {
  const { host, store, api, authority, start } = await scene();
  const { done, failed } = start();
  await turnUntil(() => api.requests.size === 1);
  const { metadata, spec } = api.last;
  assert.match(metadata?.name ?? "", /^node-csr-[a-z0-9]+$/);
  assert.deepEqual(spec.usages, ["digital signature", "client auth"]);
  assert.equal(spec.signerName, "kubernetes.io/kube-apiserver-client-kubelet");
  assert.equal((await host.stat("/pki/kubelet-client.key.tmp"))?.mode, 0o600);
  api.answer(api.last, { certificate: btoa(await authority.sign(atob(spec.request), 3_600_000)) });
  await done;
  assert.equal(failed(), undefined);
  assert.equal((await store.load())?.subject, "O=system:nodes\nCN=system:node:n1");
  assert.equal(await host.stat("/pki/kubelet-client.key.tmp"), undefined);
  assert.equal((await host.stat(kubeconfig))?.mode, 0o600);
  const written = JSON.parse(await host.readText(kubeconfig));
  assert.deepEqual(written.clusters[0].cluster, { server: cluster.server, "certificate-authority-data": "Q0E=" });
  const link = "/pki/kubelet-client-current.pem";
  assert.deepEqual(written.users[0].user, { "client-certificate": link, "client-key": link });
});

Deno.test("bootstrap: a restart waits for the same request; a denied one is made anew", async () => {
  const { host, api, start } = await scene();
  const stop = new AbortController();
  const first = start(stop.signal);
  await turnUntil(() => api.requests.size === 1);
  const name = api.last.metadata?.name;
  for (let i = 0; i < 20; i++) await turn();
  stop.abort();
  await first.done;
  const second = start();
  for (let i = 0; i < 2000; i++) await turn();
  assert.deepEqual([...api.requests.keys()], [name]);
  api.answer(api.last, { conditions: [{ type: "Denied", status: "True", message: "unknown machine" }] });
  await second.done;
  assert.match(String(second.failed()), /was denied: unknown machine/);
  assert.equal(await host.stat(kubeconfig), undefined);
  start();
  await turnUntil(() => api.requests.size === 2);
  assert.notEqual(api.last.metadata?.name, name);
});

Deno.test("bootstrap: an API server that is away is waited for, for a minute", async () => {
  const { clock, api, start } = await scene();
  api.faults.push(...Array.from({ length: 60 }, () => new KubeletError("Network", "refused")));
  const { failed } = start();
  for (let i = 0; i < 29; i++) {
    await turnUntil(() => clock.pending > 0);
    await clock.advance(2_000);
    assert.equal(failed(), undefined);
  }
  for (let i = 0; i < 3 && !failed(); i++) {
    for (let j = 0; j < 50; j++) await turn();
    await clock.advance(2_000);
  }
  await turnUntil(() => failed() !== undefined);
  assert.match(String(failed()), /refused/);
});

Deno.test("bootstrap: an answer of long ago is no certificate; the next request has a key of its own", async () => {
  const { clock, host, api, authority, start } = await scene();
  const stop = new AbortController();
  const first = start(stop.signal);
  await turnUntil(() => api.requests.size === 1);
  const old = await authority.sign(atob(api.last.spec.request), 3_600_000);
  stop.abort();
  await first.done;
  api.answer(api.last, { certificate: btoa(old) });
  await clock.advance(2 * 3_600_000);
  const second = start();
  await second.done;
  assert.match(String(second.failed()), /ended at .* already: look at the clocks/);
  assert.equal(await host.stat(kubeconfig), undefined);
  const third = start();
  await turnUntil(() => api.requests.size === 2);
  api.answer(api.last, { certificate: btoa(await authority.sign(atob(api.last.spec.request), 3_600_000)) });
  await third.done;
  assert.equal(third.failed(), undefined);
});
