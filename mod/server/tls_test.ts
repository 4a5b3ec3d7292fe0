import assert from "@assert";
import https from "node:https";
import tls from "node:tls";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import type { Attributes } from "./authorization.ts";
import { ask, dirWith, makeAuthority, type Pair, type RunningServer, startServer, TestBackend } from "./testing.ts";
import { suiteAllowed, tlsSettings } from "./tls_settings.ts";
import type { KubeletServer } from "./server.ts";
import type { Handler } from "./types.ts";

const day = 86_400_000;
const whoami: Handler = ({ response, user }) => void response.end(`${user?.name} ${user?.groups.join(",")}`);
const prepare = (server: KubeletServer) =>
  server.register({
    name: "t",
    access: "A",
    buckets: [],
    routes: [{ methods: "*", path: "/whoami", handler: whoami }],
  });

Deno.test("who a client is: by a verified certificate, else by nothing", async () => {
  const [ours, foreign] = [await makeAuthority("ours"), await makeAuthority("foreign")];
  const now = Date.now();
  const clients: { name: string; pair?: Pair; open: string; closed: string }[] = [
    { name: "none", open: "200 system:anonymous system:unauthenticated", closed: "401 Unauthorized" },
    {
      name: "good",
      pair: await ours.certify("O=first, O=second, CN=ann"),
      open: "200 ann first,second,system:authenticated",
      closed: "200 ann first,second,system:authenticated",
    },
    {
      name: "one that tries to look like two",
      pair: await ours.certify("O=x\\0AO=system:masters, CN=eve"),
      open: "200 eve x\nO=system:masters,system:authenticated",
      closed: "200 eve x\nO=system:masters,system:authenticated",
    },
    { name: "foreign", pair: await foreign.certify("CN=ann"), open: "401 Unauthorized", closed: "401 Unauthorized" },
    {
      name: "expired",
      pair: await ours.certify("CN=ann", { from: now - 2 * day, until: now - day }),
      open: "401 Unauthorized",
      closed: "401 Unauthorized",
    },
    {
      name: "not yet valid",
      pair: await ours.certify("CN=ann", { from: now + day, until: now + 2 * day }),
      open: "401 Unauthorized",
      closed: "401 Unauthorized",
    },
    {
      name: "a server's",
      pair: await ours.certify("CN=ann", { usage: "server" }),
      open: "401 Unauthorized",
      closed: "401 Unauthorized",
    },
    {
      name: "nameless",
      pair: await ours.certify("O=first"),
      open: "200 system:anonymous system:unauthenticated",
      closed: "401 Unauthorized",
    },
  ];
  for (const enabled of [true, false]) {
    const dir = await dirWith({ "ca.crt": ours.cert });
    await using server = await startServer({
      authentication: {
        x509: { clientCAFile: `${dir}/ca.crt` },
        webhook: { enabled: false },
        anonymous: { enabled },
      },
    }, { dir, prepare });
    for (const { name, pair, open, closed } of clients) {
      const { status, body } = await ask(`https://127.0.0.1:${server.https}/whoami`, { ...pair });
      assert.equal(`${status} ${body}`, enabled ? open : closed, `${name}, anonymous ${enabled}`);
    }
  }
});

Deno.test("without a client CA, certificates and tokens say nothing", async () => {
  const foreign = await makeAuthority("foreign");
  await using server = await startServer({}, { prepare });
  const { body } = await ask(`https://127.0.0.1:${server.https}/whoami`, {
    ...await foreign.certify("CN=ann"),
    headers: { authorization: "Bearer x" },
  });
  assert.equal(body, "system:anonymous system:unauthenticated");
});

Deno.test("tokens are looked up where a webhook is there; a bad one is 401 although anonymous is on", async () => {
  const authentication = { x509: { clientCAFile: "" }, webhook: { enabled: true }, anonymous: { enabled: true } };
  const asked: string[] = [];
  const tokens = {
    authenticate: (token: string) => {
      asked.push(token);
      if (token === "down") return Promise.reject(new Error("no API server"));
      return Promise.resolve(token === "good" ? { name: "bob", groups: ["g"] } : undefined);
    },
  };
  await using server = await startServer({ authentication }, { tokens, prepare });
  const answers: string[] = [];
  for (
    const headers of [
      { authorization: "Bearer good" },
      { authorization: "bearer bad" },
      { authorization: "Bearer down" },
      { authorization: "Basic x" },
      { "sec-websocket-protocol": "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.Z29vZA" },
    ]
  ) {
    const { status, body } = await ask(`https://127.0.0.1:${server.https}/whoami`, { headers });
    answers.push(`${status} ${body}`);
  }
  assert.deepEqual(answers, [
    "200 bob g,system:authenticated",
    "401 Unauthorized",
    "401 Unauthorized",
    "200 system:anonymous system:unauthenticated",
    "200 bob g,system:authenticated",
  ]);
  assert.deepEqual(asked, ["good", "bad", "down", "good"]);
});

Deno.test("the authorizer is asked for each subresource in order; refusals have the contract's texts", async () => {
  const asked: string[] = [];
  let answer: (attributes: Attributes) => Promise<"allow" | "deny"> = () => Promise.resolve("deny");
  const authorizer = {
    authorize: (attributes: Attributes) => {
      asked.push(`${attributes.verb} ${attributes.resource}/${attributes.subresource} ${attributes.name}`);
      return answer(attributes);
    },
  };
  await using server = await startServer({ authorization: { mode: "Webhook" } }, { authorizer, prepare });
  const get = async (path: string, method = "GET") => {
    const { status, body } = await ask(`https://127.0.0.1:${server.https}${path}`, { method });
    return `${status} ${body}`;
  };
  assert.equal(
    await get("/pods/x"),
    "403 Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[pods proxy])\n",
  );
  assert.equal(
    await get("/whoami", "OPTIONS"),
    "403 Forbidden (user=system:anonymous, verb=, resource=nodes, subresource(s)=[proxy])\n",
  );
  answer = ({ subresource }) => Promise.resolve(subresource === "proxy" ? "allow" : "deny");
  assert.match(await get("/configz"), /^200 /);
  answer = () => Promise.reject(new Error("away"));
  assert.equal(
    await get("/healthz"),
    "500 Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=healthz)",
  );
  assert.deepEqual(asked, [
    "get nodes/pods node1",
    "get nodes/proxy node1",
    " nodes/proxy node1",
    "get nodes/configz node1",
    "get nodes/proxy node1",
    "get nodes/healthz node1",
  ]);
});

Deno.test("a changed client CA counts for open connections too", async () => {
  const [first, second] = [await makeAuthority("first"), await makeAuthority("second")];
  const client = await first.certify("CN=ann");
  const dir = await dirWith({ "ca.crt": first.cert });
  const backend = new TestBackend();
  const clock = new FakeClock(Date.now());
  Object.assign(backend, { clock });
  await using server: RunningServer = await startServer({
    authentication: {
      x509: { clientCAFile: `${dir}/ca.crt` },
      webhook: { enabled: false },
      anonymous: { enabled: false },
    },
  }, { dir, prepare, backend });
  const url = `https://127.0.0.1:${server.https}/whoami`;
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  const change = async (text: string) => {
    await Deno.writeTextFile(`${dir}/ca.crt`, text);
    const told = backend.log.heard(/certificate files/);
    await clock.advance(5000);
    await told;
  };
  try {
    assert.equal((await ask(url, { ...client, agent })).status, 200);
    await change(second.cert);
    assert.equal((await ask(url, { ...client, agent })).status, 401, "an open connection");
    assert.equal((await ask(url, client)).status, 401, "a new connection");
    await change(`${second.cert}\n${first.cert}\n`);
    assert.equal((await ask(url, { ...client, agent })).status, 200, "an open connection, both CAs");
    assert.equal((await ask(url, client)).status, 200);
    await change("nonsense");
    assert.equal((await ask(url, client)).status, 200, "bad content changes nothing");
    const told = backend.log.lines.findLast(({ level }) => level === "error");
    assert.match(String(told?.fields.error), /ca\.crt .*holds no PEM certificate/);
  } finally {
    agent.destroy();
  }
});

Deno.test("a resumed session is judged by the CAs in force, not by those of its first handshake", async () => {
  const [first, second] = [await makeAuthority("first"), await makeAuthority("second")];
  const client = await first.certify("CN=ann");
  const dir = await dirWith({ "ca.crt": first.cert, "client.crt": client.cert, "client.key": client.key });
  const backend = new TestBackend();
  const clock = new FakeClock(Date.now());
  Object.assign(backend, { clock });
  await using server = await startServer({
    authentication: {
      x509: { clientCAFile: `${dir}/ca.crt` },
      webhook: { enabled: false },
      anonymous: { enabled: false },
    },
  }, { dir, prepare, backend });
  const session = `${dir}/session`;
  const openssl = async (...args: string[]) => {
    const child = new Deno.Command("openssl", {
      args: ["s_client", "-connect", `127.0.0.1:${server.https}`, "-ign_eof", ...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode("GET /whoami HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    const { stdout } = await child.output();
    await writer.close().catch(() => {});
    return new TextDecoder().decode(stdout);
  };
  const certificate = ["-cert", `${dir}/client.crt`, "-key", `${dir}/client.key`];
  assert.match(await openssl(...certificate, "-sess_out", session), /HTTP\/1\.1 200/);
  const resumed = await openssl("-sess_in", session);
  assert.match(resumed, /Reused, TLS/);
  assert.match(resumed, /HTTP\/1\.1 200[^]*ann system:authenticated/);
  await Deno.writeTextFile(`${dir}/ca.crt`, second.cert);
  const told = backend.log.heard(/certificate files have changed/);
  await clock.advance(5000);
  await told;
  const after = await openssl("-sess_in", session);
  assert.match(after, /Reused, TLS/);
  assert.match(after, /HTTP\/1\.1 401/);
});

Deno.test("serverTLSBootstrap: nothing is served before the signed certificate is there, then that one is", async () => {
  const dir = await dirWith({});
  const backend = new TestBackend();
  const clock = new FakeClock(Date.now());
  Object.assign(backend, { clock });
  const signedPair = `${dir}/kubelet-server-current.pem`;
  let listening = false;
  const waits = backend.log.heard(/waits for its signed certificate/);
  const starting = startServer({ serverTLSBootstrap: true }, { dir, prepare, backend, signedPair });
  const started = starting.then((server) => {
    listening = true;
    return server;
  });
  await waits;
  await clock.advance(2000);
  assert.equal(listening, false);
  const { cert, key } = await (await makeAuthority("cluster")).certify("CN=signed", { usage: "server" });
  await Deno.writeTextFile(`${dir}/new.pem`, cert + key);
  await Deno.rename(`${dir}/new.pem`, signedPair);
  for (let i = 0; i < 200_000 && !listening; i++) {
    await clock.advance(500);
    await turn();
  }
  await using server = await started;
  const socket = tls.connect({ port: server.https, host: "127.0.0.1", rejectUnauthorized: false });
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  assert.equal(socket.getPeerCertificate().subject.CN, "signed");
  socket.destroy();
});

const suites = {
  aes128: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  aes256: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
};

Deno.test("minimum version and cipher suites hold for real handshakes", async () => {
  const pair = await (await makeAuthority("ca")).certify("CN=node1", { usage: "server" });
  const handshake = (port: number, options: tls.ConnectionOptions) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = tls.connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
    let text = "";
    socket.on("secureConnect", () => socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    socket.on("data", (data) => text += data);
    socket.on("error", () => resolve("refused"));
    socket.on("close", () => resolve(text.startsWith("HTTP/1.1 200") ? "served" : "refused"));
    return promise;
  };
  const cases: { min: string; list: string[]; client: tls.SecureVersion; outcome: string }[] = [
    { min: "", list: [], client: "TLSv1.2", outcome: "served" },
    { min: "VersionTLS13", list: [], client: "TLSv1.2", outcome: "refused" },
    { min: "VersionTLS13", list: [], client: "TLSv1.3", outcome: "served" },
    { min: "", list: [suites.aes128, suites.aes256], client: "TLSv1.2", outcome: "served" },
    { min: "", list: ["TLS_RSA_WITH_AES_128_CBC_SHA"], client: "TLSv1.2", outcome: "refused" },
    { min: "", list: ["TLS_RSA_WITH_AES_128_CBC_SHA"], client: "TLSv1.3", outcome: "served" },
  ];
  for (const { min, list, client, outcome } of cases) {
    const dir = await dirWith({ "tls.crt": pair.cert, "tls.key": pair.key });
    await using server = await startServer({
      tlsCertFile: `${dir}/tls.crt`,
      tlsPrivateKeyFile: `${dir}/tls.key`,
      tlsMinVersion: min,
      tlsCipherSuites: list,
    }, { dir });
    const got = await handshake(server.https, { minVersion: client, maxVersion: client });
    assert.equal(got, outcome, JSON.stringify({ min, list, client }));
  }
});

Deno.test("what of TLS cannot be had is told", () => {
  const settings = (change: Partial<Parameters<typeof tlsSettings>[0]>) => {
    const log = new RecordingLogger();
    const made = tlsSettings({ tlsMinVersion: "", tlsCipherSuites: [], tlsCurvePreferences: [], ...change }, log);
    return { made, told: log.lines.map(({ message }) => message) };
  };
  assert.deepEqual(settings({}).told, []);
  assert.match(settings({ tlsMinVersion: "VersionTLS11" }).told.join(), /below 1\.2 is not available/);
  assert.match(settings({ tlsCurvePreferences: [23] }).told.join(), /tlsCurvePreferences has no effect/);
  assert.match(settings({ tlsCipherSuites: ["TLS_RSA_WITH_RC4_128_SHA"] }).told.join(), /not available/);
  assert.match(settings({ tlsMinVersion: "VersionTLS13", tlsCipherSuites: ["x"] }).told.join(), /not configurable/);
  const { made } = settings({ tlsCipherSuites: ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"] });
  const chacha = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
  assert.equal(suiteAllowed(made, { protocol: "TLSv1.2", suite: chacha }), true);
  assert.equal(suiteAllowed(made, { protocol: "TLSv1.2", suite: suites.aes128 }), false);
  assert.equal(suiteAllowed(made, { protocol: "TLSv1.3", suite: "TLS_AES_128_GCM_SHA256" }), true);
});
