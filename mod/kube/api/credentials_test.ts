import "reflect-metadata";
import { X509CertificateGenerator } from "@peculiar/x509";
import assert from "@assert";
import { FakeClock, turn } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger } from "../../base/log.ts";
import { Credentials } from "./credentials.ts";
import { ExecPlugin, type PluginCertificate } from "./exec_plugin.ts";
import type { KubeconfigCluster, KubeconfigUser } from "./kubeconfig.ts";

const { signal } = new AbortController();
const pem = (word: string) => `-----BEGIN ${word}-----\n`;
const cluster: KubeconfigCluster = { server: "https://api:6443", insecureSkipTlsVerify: false };

function setUp(
  user: KubeconfigUser,
  files: Record<string, string>,
  more: { cluster?: Partial<KubeconfigCluster>; plugin?: ExecPlugin; clock?: FakeClock } = {},
) {
  const clock = more.clock ?? new FakeClock();
  const host = new FakeHost({ files, clock });
  const log = new RecordingLogger();
  const kubeconfig = { path: "/k", cluster: { ...cluster, ...more.cluster }, user };
  const { plugin } = more;
  const credentials = new Credentials({ kubeconfig, host, clock, log, ...(plugin ? { plugin } : {}) });
  let changes = 0;
  credentials.onChange(() => changes++);
  return { clock, host, log, credentials, changes: () => changes, now: () => credentials.current(signal) };
}

const pair: KubeconfigUser = { certificate: { path: "/c" }, key: { path: "/c" } };

Deno.test("certificate, key and authority; a new file is seen within seconds and told once", async () => {
  const { clock, host, credentials, changes, now } = setUp(pair, { "/c": pem("one"), "/ca": pem("ca") }, {
    cluster: { certificateAuthority: { path: "/ca" } },
  });
  const first = await now();
  assert.deepEqual(first.tls, { ca: pem("ca"), cert: pem("one"), key: pem("one") });
  assert.equal(first.authorization, undefined);
  assert.equal((await now()).version, first.version);
  await clock.advance(1000);
  await host.write("/c", pem("other"), { atomic: true });
  assert.equal((await now()).tls.cert, pem("one"), "it was looked at a moment ago");
  await clock.advance(1000);
  const [a, b] = await Promise.all([now(), credentials.current(signal)]);
  assert.equal(a.tls.cert, pem("other"));
  assert.equal(a.version, b.version);
  assert(a.version > first.version);
  assert.equal(changes(), 1);
});

Deno.test("a file that is gone or broken later leaves what was read before", async () => {
  const { clock, host, log, now, changes } = setUp(pair, { "/c": pem("one") });
  await now();
  for (const breakIt of [() => host.write("/c", "no PEM", { atomic: true }), () => host.remove("/c")]) {
    await clock.advance(5000);
    await breakIt();
    assert.equal((await now()).tls.cert, pem("one"));
    assert.match(log.lines.at(-1)?.message ?? "", /cannot be read again; the last ones go on/);
  }
  await clock.advance(5000);
  await host.write("/c", pem("two"), {});
  assert.equal((await now()).tls.cert, pem("two"));
  assert.equal(changes(), 1);
});

Deno.test("a file that was never there is told with the kubeconfig's field, and used once it comes", async () => {
  const { host, clock, now } = setUp(pair, {});
  await assert.rejects(now(), /kubeconfig \/k: client-(certificate|key) can't be read/);
  await host.write("/c", pem("one"));
  await clock.advance(2000);
  assert.equal((await now()).tls.cert, pem("one"));
  const broken = setUp({ certificate: { text: "x" }, key: { text: "y" } }, {});
  await assert.rejects(broken.now(), /client-certificate-data holds no PEM/);
});

Deno.test("a token file is read again each minute, at once when the server refused, and goes before the token", async () => {
  const { clock, host, log, credentials, now } = setUp({ token: "old", tokenFile: "/t" }, { "/t": "one\n" });
  assert.equal((await now()).authorization, "Bearer one");
  await host.write("/t", "two");
  assert.equal((await now()).authorization, "Bearer one");
  await clock.advance(60_000);
  assert.equal((await now()).authorization, "Bearer two");
  await host.write("/t", "three");
  credentials.refused();
  assert.equal((await now()).authorization, "Bearer three");
  await host.remove("/t");
  await clock.advance(60_000);
  assert.equal((await now()).authorization, "Bearer three");
  assert.match(log.lines.at(-1)?.message ?? "", /the last token goes on/);
  const without = setUp({ tokenFile: "/t" }, { "/t": " \n" });
  await assert.rejects(without.now(), /the token file \/t is empty/);
});

Deno.test("a token in the file itself; a name with a password", async () => {
  assert.equal((await setUp({ token: "t" }, {}).now()).authorization, "Bearer t");
  const { authorization } = await setUp({ username: "ä", password: "b" }, {}).now();
  assert.equal(authorization, `Basic ${new TextEncoder().encode("ä:b").toBase64()}`);
});

Deno.test("requests that come in any order around a change all show the new certificate afterwards", async () => {
  const { clock, host, credentials, now } = setUp(pair, { "/c": pem("one") });
  await now();
  await clock.advance(5000);
  await host.write("/c", pem("two"), { atomic: true });
  // Each of them begins some turns after the one before, so that one looks just as another has read.
  const all: Promise<unknown>[] = [];
  for (let i = 0; i < 40; i++) {
    all.push(credentials.current(signal));
    await Promise.resolve();
  }
  await Promise.all(all);
  const { version, tls } = await now();
  assert.equal(tls.cert, pem("two"));
  await clock.advance(5000);
  assert.equal((await now()).version, version);
});

Deno.test("another certificate is shown from the next request on, and how long the server has known nobody is told", async () => {
  const { clock, credentials, changes, now } = setUp(pair, { "/c": pem("one"), "/d": pem("two") });
  const first = await now();
  credentials.useCertificate({ certificate: { path: "/d" }, key: { path: "/d" } });
  const second = await now();
  assert.deepEqual([second.tls.cert, second.tls.key], [pem("two"), pem("two")]);
  assert(second.version > first.version);
  assert.equal(changes(), 1);
  assert.equal(credentials.refusedSince, undefined);
  const since = clock.now();
  credentials.refused();
  await clock.advance(1000);
  credentials.refused();
  assert.equal(credentials.refusedSince, since);
  credentials.accepted();
  assert.equal(credentials.refusedSince, undefined);
});

const v1 = "client.authentication.k8s.io/v1";

/** A plugin whose answers are given one after another. */
function pluginOf(answers: (object | string | { code: number })[], provideClusterInfo = false) {
  const clock = new FakeClock();
  const calls: { env: Record<string, string> | undefined }[] = [];
  const outcomes: string[] = [];
  const certificates: PluginCertificate[] = [];
  const host = new FakeHost({
    files: { "/ca": pem("ca") },
    run: (_command, _args, { env }) => {
      calls.push({ env });
      const answer = answers.shift();
      if (answer === undefined) return undefined;
      if (typeof answer === "object" && "code" in answer) {
        return Promise.resolve({ code: Number(answer.code), stdout: "", stderr: "no luck" });
      }
      const stdout = typeof answer === "string" ? answer : JSON.stringify({
        apiVersion: v1,
        kind: "ExecCredential",
        status: answer,
      });
      return Promise.resolve({ code: 0, stdout, stderr: "" });
    },
  });
  const plugin = new ExecPlugin({
    exec: {
      apiVersion: v1,
      command: "/login",
      args: ["-x"],
      env: { A: "b" },
      installHint: "install it",
      provideClusterInfo,
    },
    cluster: { ...cluster, certificateAuthority: { path: "/ca" } },
    host,
    clock,
    onCall: (outcome, code) => outcomes.push(`${outcome} ${code}`),
    onCertificate: (told) => certificates.push(told),
  });
  return { clock, calls, outcomes, certificates, plugin, now: () => plugin.current(signal) };
}

Deno.test("a plugin is run once for all who wait, again when what it gave expires or is refused", async () => {
  const expires = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
  const { plugin, now, calls, clock, outcomes } = pluginOf([
    { token: "one", expirationTimestamp: expires(100) },
    { token: "two" },
    { token: "three" },
  ]);
  assert.deepEqual(await Promise.all([now(), now()]), [{ token: "one" }, { token: "one" }]);
  assert.equal(calls.length, 1);
  assert.equal(calls[0]?.env?.A, "b");
  assert.deepEqual(JSON.parse(calls[0]?.env?.KUBERNETES_EXEC_INFO ?? ""), {
    apiVersion: v1,
    kind: "ExecCredential",
    spec: { interactive: false },
  });
  await clock.advance(99_000);
  assert.deepEqual(await now(), { token: "one" });
  await clock.advance(1000);
  assert.deepEqual(await now(), { token: "two" });
  plugin.forget();
  assert.deepEqual(await now(), { token: "three" });
  assert.deepEqual(outcomes, ["no_error 0", "no_error 0", "no_error 0"]);
});

/** A certificate that holds for an hour from a time on. */
async function certificateFrom(ms: number): Promise<string> {
  const signingAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(signingAlgorithm, true, ["sign", "verify"]);
  const [notBefore, notAfter] = [new Date(ms), new Date(ms + 3_600_000)];
  const made = await X509CertificateGenerator.createSelfSigned({ keys, signingAlgorithm, notBefore, notAfter });
  return made.toString("pem");
}

Deno.test("each certificate of a plugin is told: when it ends, and how old the one before was; each call with its exit code", async () => {
  const at = Date.UTC(2026, 0, 1);
  const [first, second] = [await certificateFrom(at), await certificateFrom(at + 1000)];
  const give = (clientCertificateData: string) => ({ clientCertificateData, clientKeyData: "key" });
  const answers = [give(first), give(first), give(second), give("no certificate"), { code: 7 }];
  const { plugin, now, certificates, outcomes, clock } = pluginOf(answers);
  for (const _ of answers.slice(1)) {
    await now();
    plugin.forget();
    await clock.advance(10_000);
  }
  await assert.rejects(now(), /exit code 7/);
  const ends = at + 3_600_000;
  assert.deepEqual(certificates, [
    { notAfter: ends, replacedAgeMs: undefined },
    { notAfter: ends + 1000, replacedAgeMs: 20_000 },
  ]);
  assert.equal(outcomes.at(-1), "plugin_execution_error 7");
});

Deno.test("a plugin that wants to know is told of the cluster", async () => {
  const { now, calls } = pluginOf([{ token: "t" }], true);
  await now();
  assert.deepEqual(JSON.parse(calls[0]?.env?.KUBERNETES_EXEC_INFO ?? "").spec.cluster, {
    server: "https://api:6443",
    "certificate-authority-data": btoa(pem("ca")),
  });
});

const refused: [name: string, answer: object | string | undefined, message: RegExp][] = [
  ["is not there", undefined, /the credential plugin \/login can't be run.*; install it/],
  ["fails", { code: 3 }, /ended with exit code 3: no luck/],
  ["prints no JSON", "hello", /printed no JSON/],
  ["prints another kind", JSON.stringify({ kind: "Pod" }), /not an ExecCredential/],
  ["prints nothing to use", {}, /neither a token nor a certificate/],
  ["prints half a pair", { clientCertificateData: "x" }, /without its key/],
  ["prints no time", { token: "t", expirationTimestamp: "soon" }, /is no time/],
];
for (const [name, answer, message] of refused) {
  Deno.test(`a plugin that ${name} is told of by its name, and not run again at once`, async () => {
    const { now, calls, clock } = pluginOf(answer === undefined ? [] : [answer, { token: "later" }]);
    await assert.rejects(now(), message);
    await assert.rejects(now(), message);
    assert.equal(calls.length, 1);
    await clock.advance(1000);
    if (answer !== undefined) assert.deepEqual(await now(), { token: "later" });
  });
}

for (const [what, user] of [["certificate", pair], ["token", { tokenFile: "/t" }]] as const) {
  Deno.test(`a file of a ${what} that hangs holds calls no longer than their time, and is read once for all`, async () => {
    const { host, credentials } = setUp(user, { "/c": pem("one"), "/t": "t" });
    let reads = 0;
    const go = Promise.withResolvers<void>();
    const readText = host.readText.bind(host);
    host.readText = async (path, ...more) => {
      reads++;
      await go.promise;
      return await readText(path, ...more);
    };
    const control = new AbortController();
    const late = new Error("late");
    const calls = [1, 2, 3].map(() => assert.rejects(credentials.current(control.signal), late));
    await turn();
    control.abort(late);
    await Promise.all(calls);
    const next = credentials.current(signal);
    go.resolve();
    const { authorization, tls } = await next;
    assert.equal(authorization ?? tls.cert, what === "token" ? "Bearer t" : pem("one"));
    assert.equal(reads, 1, "certificate and key are one read of one file");
  });
}

Deno.test("a plugin that failed is run again at once when the clock was put back", async () => {
  const { plugin, calls, clock } = pluginOf([{ code: 1 }, { token: "t" }]);
  await assert.rejects(plugin.current(signal));
  const { now } = clock;
  clock.now = () => now.call(clock) - 3_600_000;
  assert.deepEqual(await plugin.current(signal), { token: "t" });
  assert.equal(calls.length, 2);
});

Deno.test("a plugin's certificate is the identity, a new one means new connections", async () => {
  const { plugin, clock } = pluginOf([
    { clientCertificateData: "c1", clientKeyData: "k1" },
    { clientCertificateData: "c2", clientKeyData: "k2" },
  ]);
  const { now, credentials, changes } = setUp({}, {}, { plugin, clock });
  assert.deepEqual((await now()).tls, { cert: "c1", key: "k1" });
  credentials.refused();
  assert.deepEqual((await now()).tls, { cert: "c2", key: "k2" });
  assert.equal(changes(), 1);
});
