import assert from "@assert";
import { KubeletError } from "../../base/errors.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { namedByKubeconfig, parseKubeconfig, readKubeconfig } from "./kubeconfig.ts";

interface Parts {
  cluster?: Record<string, unknown>;
  user?: Record<string, unknown>;
  root?: Record<string, unknown>;
}

function config({ cluster = {}, user = {}, root = {} }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "other", cluster: {} }, {
      name: "c",
      cluster: { server: "https://10.0.0.1:6443/", ...cluster },
    }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
    ...root,
  });
}

const read = (parts?: Parts) => parseKubeconfig(config(parts), "/etc/k/kubelet.conf");

Deno.test("files are taken relative to the kubeconfig, inline data goes before them", () => {
  const data = btoa("PEM");
  const { cluster, user, path } = read({
    cluster: { "certificate-authority": "pki/ca.crt", "tls-server-name": "api", "proxy-url": "http://p:3128" },
    user: { "client-certificate": "/abs/c.pem", "client-key": "x", "client-key-data": data, tokenFile: "t" },
  });
  assert.equal(path, "/etc/k/kubelet.conf");
  assert.deepEqual(cluster, {
    server: "https://10.0.0.1:6443",
    insecureSkipTlsVerify: false,
    certificateAuthority: { path: "/etc/k/pki/ca.crt" },
    tlsServerName: "api",
    proxyUrl: "http://p:3128",
  });
  assert.deepEqual(user, {
    certificate: { path: "/abs/c.pem" },
    key: { text: "PEM" },
    tokenFile: "/etc/k/t",
  });
});

Deno.test("an exec plugin: a bare name is for PATH, another path is the file's", () => {
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./login", args: ["-x"] };
  const found = read({ user: { exec: { ...exec, env: [{ name: "A", value: "b" }], provideClusterInfo: true } } });
  assert.deepEqual(found.user.exec, {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "/etc/k/login",
    args: ["-x"],
    env: { A: "b" },
    installHint: "",
    provideClusterInfo: true,
  });
  assert.deepEqual(namedByKubeconfig(found), { files: [], programs: ["/etc/k/login"] });
  assert.equal(read({ user: { exec: { ...exec, command: "login" } } }).user.exec?.command, "login");
});

Deno.test("YAML as kubeadm writes it; every named file is told", () => {
  const text = [
    "apiVersion: v1",
    "kind: Config",
    "clusters:",
    "- cluster:",
    "    certificate-authority: ca.crt",
    "    server: https://h:6443",
    "  name: k",
    "contexts:",
    "- context: {cluster: k, user: node}",
    "  name: n@k",
    "current-context: n@k",
    "users:",
    "- name: node",
    "  user:",
    "    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem",
    "    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem",
  ].join("\n");
  assert.deepEqual(namedByKubeconfig(parseKubeconfig(text, "/k/c")).files, [
    "/k/ca.crt",
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
  ]);
});

const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "x" };
const wrong: [name: string, Parts, RegExp][] = [
  ["no context", { root: { "current-context": "" } }, /current-context is missing/],
  ["a context that is not there", { root: { "current-context": "y" } }, /contexts has no entry named "y"/],
  ["a cluster that is not there", { root: { clusters: [] } }, /clusters has no entry named "c"/],
  ["no server", { cluster: { server: "" } }, /clusters\[1\]\.cluster\.server is missing/],
  ["a server that is no URL", { cluster: { server: "ftp://x" } }, /cluster\.server is no http/],
  ["a server with a password", { cluster: { server: "https://a:b@x" } }, /must hold no user/],
  ["text that is none", { cluster: { server: 5 } }, /cluster\.server is no text/],
  [
    "base64 that is none",
    { cluster: { "certificate-authority-data": "*" } },
    /certificate-authority-data is no base64/,
  ],
  ["trust without checks", { cluster: { "certificate-authority": "a", "insecure-skip-tls-verify": true } }, /exclude/],
  ["a proxy that is none", { cluster: { "proxy-url": "x" } }, /proxy-url is no/],
  ["a certificate without its key", { user: { "client-certificate": "a" } }, /users\[0\]\.user\.client-key is missing/],
  ["another version of plugins", { user: { exec: { ...exec, apiVersion: "v9" } } }, /exec\.apiVersion must be/],
  ["a plugin that asks", { user: { exec: { ...exec, interactiveMode: "Always" } } }, /interactiveMode is Always/],
  ["two ways at once", { user: { token: "t", exec } }, /exec and other credentials/],
  ["what is not supported", { user: { "auth-provider": {} } }, /auth-provider is not supported/],
  ["a list that is none", { root: { users: {} } }, /users is no list/],
  ["prototype names are names", { root: { "current-context": "__proto__" } }, /no entry named "__proto__"/],
];
for (const [name, parts, message] of wrong) {
  Deno.test(`what cannot be used is told by file and field: ${name}`, () => {
    assert.throws(
      () => read(parts),
      (thrown: unknown) =>
        thrown instanceof KubeletError && thrown.code === "BadConfig" && message.test(thrown.message) &&
        thrown.message.includes("/etc/k/kubelet.conf"),
    );
  });
}

Deno.test("a file that is missing, empty or no object is told by its name", async () => {
  const host = new FakeHost({ files: { "/list": "[]", "/empty": "" } });
  await assert.rejects(readKubeconfig(host, "/none"), /kubeconfig \/none can't be read: there is no such file/);
  await assert.rejects(readKubeconfig(host, "/list"), /kubeconfig \/list: the file is no object/);
  await assert.rejects(readKubeconfig(host, "/empty"), /kubeconfig \/empty/);
});
