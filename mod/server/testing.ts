import "reflect-metadata";
import http from "node:http";
import https from "node:https";
import * as x509 from "@peculiar/x509";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { systemClock } from "../base/clock.ts";
import { createDenoHost } from "../base/deno_host.ts";
import { RecordingLogger } from "../base/log.ts";
import { systemRandom } from "../base/random.ts";
import { Scope } from "../base/scope.ts";
import type { ObservedPod } from "../pod/observed.ts";
import type { ServerConfig } from "./config.ts";
import { createServer, type KubeletServer, type ServerOptions } from "./server.ts";
import type { PodWithStatus, ServerBackend } from "./types.ts";

/** A certificate and its key, PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** An authority that certifies. */
export interface TestAuthority extends Pair {
  certify(subject: string, options?: { usage?: "client" | "server"; from?: number; until?: number }): Promise<Pair>;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const day = 86_400_000;

async function pem(keys: CryptoKeyPair): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
}

/** Makes an authority. */
export async function makeAuthority(name: string): Promise<TestAuthority> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const now = Date.now();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(now - 10 * day),
    notAfter: new Date(now + 10 * day),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
    ],
  });
  return {
    cert: ca.toString("pem"),
    key: await pem(keys),
    async certify(subject, { usage = "client", from = now - day, until = now + day } = {}) {
      const own = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
      const { clientAuth, serverAuth } = x509.ExtendedKeyUsage;
      const leaf = await x509.X509CertificateGenerator.create({
        subject,
        issuer: ca.subjectName,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        notBefore: new Date(from),
        notAfter: new Date(until),
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.ExtendedKeyUsageExtension([usage === "client" ? clientAuth : serverAuth]),
          new x509.SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }]),
        ],
      });
      return { cert: leaf.toString("pem"), key: await pem(own) };
    },
  };
}

/** A configuration with the reference's defaults, on free ports of the loopback. */
export function testConfig(change: Partial<ServerConfig> = {}): ServerConfig {
  return {
    address: "127.0.0.1",
    port: -1,
    readOnlyPort: 0,
    tlsCertFile: "",
    tlsPrivateKeyFile: "",
    tlsCipherSuites: [],
    tlsCurvePreferences: [],
    tlsMinVersion: "",
    serverTLSBootstrap: false,
    authentication: { x509: { clientCAFile: "" }, webhook: { enabled: false }, anonymous: { enabled: true } },
    authorization: { mode: "AlwaysAllow" },
    enableDebuggingHandlers: true,
    enableSystemLogHandler: true,
    enableSystemLogQuery: false,
    enableProfilingHandler: true,
    enableDebugFlagsHandler: true,
    podLogsDir: "/var/log/pods",
    runtimeRequestTimeoutMs: 120_000,
    ...change,
  };
}

/** A recording logger that one can wait on: for work that real I/O ends, which no simulated clock knows of. */
export class HeardLogger extends RecordingLogger {
  readonly #waiting = new Set<{ pattern: RegExp; resolve: () => void }>();

  /** Resolves at the next line at info level or above whose message matches. */
  heard(pattern: RegExp): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add({ pattern, resolve });
    return promise;
  }
  #hear(message: string): void {
    for (const waiter of this.#waiting) {
      if (waiter.pattern.test(message) && this.#waiting.delete(waiter)) waiter.resolve();
    }
  }
  override info(...line: Parameters<RecordingLogger["info"]>): void {
    super.info(...line);
    this.#hear(line[0]);
  }
  override error(...line: Parameters<RecordingLogger["error"]>): void {
    super.error(...line);
    this.#hear(line[0]);
  }
}

/** What handlers see of an agent, over a fake runtime and the real host and clock. */
export class TestBackend implements ServerBackend {
  readonly nodeName = "node1";
  readonly runtime = new FakeRuntime({ clock: systemClock, random: systemRandom });
  readonly host = createDenoHost();
  readonly clock = systemClock;
  readonly log = new HeardLogger();
  list: PodWithStatus[] = [];
  seen: ObservedPod[] = [];
  verbosity = 0;
  pods = () => this.list;
  podByName = (namespace: string, name: string) =>
    this.list.find(({ pod: { metadata } }) => metadata.namespace === namespace && metadata.name === name)?.pod;
  podByUid = (uid: string) => this.list.find(({ pod }) => pod.metadata.uid === uid)?.pod;
  status = (uid: string) => this.list.find(({ pod }) => pod.metadata.uid === uid)?.status;
  observed = (uid: string) => this.seen.find((pod) => pod.uid === uid);
  refresh = (uid: string) => Promise.resolve(this.observed(uid));
  allObserved = () => this.seen;
  configz = () => ({ kind: "KubeletConfiguration", apiVersion: "kubelet.config.k8s.io/v1beta1" });
  flagz = () => ({ v: "2", "root-dir": "/r" });
  setVerbosity = (level: number) => void (this.verbosity = level);
}

/** A server that runs in a directory of its own until it is disposed of. */
export interface RunningServer extends AsyncDisposable {
  readonly dir: string;
  readonly backend: TestBackend;
  readonly https: number;
  readonly readOnly: number;
}

/** A directory of a test with these files; the test removes it. */
export async function dirWith(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await Deno.makeTempDir({ prefix: "server-test-" });
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${dir}/${name}`, text);
  return dir;
}

/** A serving pair that is quick to make, and its authority as `serving-ca.crt`; the agent's own takes two RSA keys. */
async function quickPair(dir: string): Promise<void> {
  const authority = await makeAuthority("node1-ca");
  const { cert, key } = await authority.certify("CN=node1", { usage: "server" });
  await Deno.mkdir(`${dir}/pki`, { recursive: true });
  await Deno.writeTextFile(`${dir}/serving-ca.crt`, authority.cert);
  await Deno.writeTextFile(`${dir}/pki/kubelet.crt`, cert);
  await Deno.writeTextFile(`${dir}/pki/kubelet.key`, key);
}

/** Starts a server. @param prepare registers routes before it runs */
export async function startServer(
  config: Partial<ServerConfig> = {},
  more: Partial<Omit<ServerOptions, "backend">> & {
    prepare?: (server: KubeletServer) => void;
    dir?: string;
    backend?: TestBackend;
  } = {},
): Promise<RunningServer> {
  const dir = more.dir ?? await Deno.makeTempDir({ prefix: "server-test-" });
  await quickPair(dir);
  const backend = more.backend ?? new TestBackend();
  const ready = Promise.withResolvers<{ https?: number; readOnly?: number }>();
  const scope = new Scope("test", { onFailure: (error) => ready.reject(error) });
  const server = createServer({
    config: testConfig(config),
    flags: { certDir: `${dir}/pki`, rootDir: dir },
    version: "v1.36.3",
    healthChecks: () => [{ name: "ping", check: () => undefined }, { name: "syncloop", check: () => undefined }],
    onListening: ready.resolve,
    ...more,
    backend,
  });
  more.prepare?.(server);
  scope.spawn("server", (signal) => server.run(signal));
  const { https = 0, readOnly = 0 } = await ready.promise.catch(async (thrown) => {
    await Deno.remove(dir, { recursive: true });
    throw thrown;
  });
  return {
    dir,
    backend,
    https,
    readOnly,
    async [Symbol.asyncDispose]() {
      await scope.close();
      await Deno.remove(dir, { recursive: true });
    },
  };
}

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Makes one request on a connection of its own (or the agent's). */
export function ask(url: string, options: https.RequestOptions & { body?: string | Uint8Array } = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { body, ...rest } = options;
  const make = url.startsWith("https:") ? https.request : http.request;
  const request = make(url, { agent: false, rejectUnauthorized: false, ...rest }, (response) => {
    const parts: Uint8Array[] = [];
    response.on("data", (part: Uint8Array) => parts.push(part));
    response.on("error", reject);
    response.on("end", () => {
      const whole = new Blob(parts as BlobPart[]);
      void whole.text().then((text) =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
      );
    });
  });
  request.on("error", reject);
  request.end(body);
  return promise;
}
