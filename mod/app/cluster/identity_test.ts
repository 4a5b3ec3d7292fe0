import assert from "@assert";
import { FakeSigning, testAuthority } from "../../../managers/certificates/testing.ts";
import { FakeClock, turnUntil } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger } from "../../base/log.ts";
import type { Kubeconfig, KubeconfigUser } from "../../kube/api/kubeconfig.ts";
import type { ApiClient } from "../../kube/api/types.ts";
import { loadConfig } from "../config/load.ts";
import { NodeIdentity, showsCertificateOnly } from "./identity.ts";

const hour = 3_600_000;

const bootstrapFile = (token: string) =>
  JSON.stringify({
    clusters: [{ name: "c", cluster: { server: "https://10.0.0.9:6443" } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });

Deno.test("a running node whose kubeconfig's own certificate has expired is known by the agent's pair from then on", async () => {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const host = new FakeHost({
    clock,
    files: { "/c": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" },
  });
  const argv = ["--config=/c", "--kubeconfig=/etc/kubelet.conf", "--bootstrap-kubeconfig=/b", "--cert-dir=/pki"];
  const loaded = await loadConfig({ argv, host, log });
  const api = new FakeSigning();
  const authority = await testAuthority(clock);
  const shown: Pick<KubeconfigUser, "certificate">[] = [];
  const tokens: (string | undefined)[] = [];
  const kubeconfig: Kubeconfig = {
    path: "/etc/kubelet.conf",
    cluster: { server: "https://10.0.0.9:6443", insecureSkipTlsVerify: false },
    user: { certificate: { path: "/old.pem" }, key: { path: "/old.pem" } },
  };
  const identity = new NodeIdentity({
    loaded,
    kubeconfig,
    credentials: { refusedSince: undefined, useCertificate: (user) => void shown.push(user) },
    nodeName: "n1",
    host,
    clock,
    random: () => 0,
    log,
    clientsOf: ({ user }) => {
      tokens.push(user.token);
      return { main: api as unknown as ApiClient, [Symbol.dispose]: () => {} };
    },
  });
  assert.deepEqual(identity.initial, { certFile: "/old.pem", keyFile: "/old.pem" });
  const stop = new AbortController();
  const running = identity.run(stop.signal).catch(() => {});

  // The file is not there yet: it is looked for again, and its token is that of the moment.
  await turnUntil(() => log.lines.some(({ level }) => level === "error"));
  assert.match(JSON.stringify(log.lines), /kubeconfig \/b can't be read/);
  await host.write("/b", bootstrapFile("fresh"), {});
  await clock.advance(2_000);
  await turnUntil(() => api.requests.size === 1);
  assert.deepEqual(tokens, ["fresh"]);
  api.answer(api.last, { certificate: btoa(await authority.sign(atob(api.last.spec.request), hour)) });
  await turnUntil(() => shown.length === 1);
  const link = "/pki/kubelet-client-current.pem";
  assert.deepEqual(shown, [{ certificate: { path: link }, key: { path: link } }]);
  assert.match(await host.readText("/etc/kubelet.conf"), /kubelet-client-current\.pem/);

  await clock.advance(hour - 20_000);
  assert.equal(api.requests.size, 1);
  await clock.advance(40_000);
  await turnUntil(() => api.requests.size === 2);
  stop.abort();
  await running;
});

Deno.test("only who is known by a certificate alone can lose it", () => {
  const pair = { certificate: { path: "/c" }, key: { path: "/c" } };
  const exec = { apiVersion: "v1", command: "x", args: [], env: {}, installHint: "", provideClusterInfo: false };
  const users: [KubeconfigUser, boolean][] = [
    [pair, true],
    [{}, false],
    [{ ...pair, token: "t" }, false],
    [{ ...pair, tokenFile: "/t" }, false],
    [{ ...pair, username: "u", password: "p" }, false],
    [{ ...pair, exec }, false],
  ];
  for (const [user, only] of users) assert.equal(showsCertificateOnly(user), only, JSON.stringify(user));
});
