import assert from "@assert";
import { makeKey, makeRequest } from "../../../managers/certificates/request.ts";
import { testAuthority } from "../../../managers/certificates/testing.ts";
import { FakeClock } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { silent } from "../../base/log.ts";
import { Scope } from "../../base/scope.ts";
import { RecordingEvents } from "../../kube/events.ts";
import { loadConfig } from "../config/load.ts";
import { joinCluster, type Joined } from "./join.ts";

const standalone = [
  "apiVersion: kubelet.config.k8s.io/v1beta1",
  "kind: KubeletConfiguration",
  "authentication: {webhook: {enabled: false}}",
  "authorization: {mode: AlwaysAllow}",
].join("\n");

function kubeconfig(user: object): string {
  return JSON.stringify({
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:9" } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });
}

async function join(files: Record<string, string>, ...argv: string[]): Promise<Joined | undefined> {
  const host = new FakeHost({ files: { "/c": standalone, ...files } });
  const clock = new FakeClock();
  const loaded = await loadConfig({ argv: ["--config=/c", ...argv], host, log: silent });
  await using scope = new Scope("test");
  return await joinCluster({
    loaded,
    nodeName: "n",
    host,
    clock,
    random: () => 0,
    log: silent,
    logEvents: new RecordingEvents(),
    scope,
  });
}

Deno.test("without --kubeconfig the agent is alone", async () => {
  assert.equal(await join({}), undefined);
});

Deno.test("with one it has clients and a sink of events, and has asked for nothing yet", async () => {
  const joined = await join({ "/k": kubeconfig({ token: "t" }) }, "--kubeconfig=/k");
  assert.equal(joined?.server, "https://127.0.0.1:9");
  assert.equal(new Set(Object.values(joined?.clients ?? {}).filter((one) => "get" in one)).size, 3);
});

const refused: [name: string, files: Record<string, string>, argv: string[], message: RegExp][] = [
  ["no file", {}, ["--kubeconfig=/k"], /kubeconfig \/k: there is no such file.*--bootstrap-kubeconfig/],
  ["a broken file", { "/k": "{}" }, ["--kubeconfig=/k"], /kubeconfig \/k: current-context is missing/],
  ["no bootstrap file", {}, ["--kubeconfig=/k", "--bootstrap-kubeconfig=/b"], /kubeconfig \/b can't be read/],
  [
    "a broken bootstrap file",
    { "/b": kubeconfig({ exec: {} }) },
    ["--kubeconfig=/k", "--bootstrap-kubeconfig=/b"],
    /kubeconfig \/b: users\[0\]\.user\.exec\.apiVersion/,
  ],
];
for (const [name, files, argv, message] of refused) {
  Deno.test(`an agent that can have no credentials ends: ${name}`, async () => {
    await assert.rejects(join(files, ...argv), message);
  });
}

Deno.test("with rotateCertificates the agent's own pair goes before the kubeconfig's certificate while it lasts", async () => {
  const clock = new FakeClock();
  const authority = await testAuthority(clock);
  const key = await makeKey();
  const request = await makeRequest(key, { commonName: "system:node:n", organizations: ["system:nodes"] });
  const pair = async (lifeMs: number) => await authority.sign(request, lifeMs) + key;
  const link = "/pki/kubelet-client-current.pem";
  const named = kubeconfig({ "client-certificate": "/other.crt", "client-key": "/other.key" });
  const cases: [name: string, lifeMs: number | undefined, rotate: boolean, used: string][] = [
    ["none yet", undefined, true, "/other.crt"],
    ["valid", 3_600_000, true, link],
    ["expired", 0, true, "/other.crt"],
    ["not asked for", 3_600_000, false, "/other.crt"],
  ];
  for (const [name, lifeMs, rotate, used] of cases) {
    const files = { "/k": named, ...(lifeMs === undefined ? {} : { [link]: await pair(lifeMs) }) };
    const joined = await join(
      files,
      "--kubeconfig=/k",
      "--cert-dir=/pki",
      ...(rotate ? ["--rotate-certificates"] : []),
    );
    assert.equal(joined?.ownPair?.initial?.certFile, used, name);
  }
});
