import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { KubeletError } from "../base/errors.ts";
import type { TokenAuthenticator } from "./authentication.ts";
import { alwaysAllow, type Authorizer } from "./authorization.ts";
import { CertificateFiles } from "./certificate_files.ts";
import { ClientCertificates } from "./client_certificates.ts";
import type { ServerConfig } from "./config.ts";
import { Dispatcher } from "./dispatch.ts";
import type { HealthCheck } from "./healthz.ts";
import { listen, type Listener } from "./listen.ts";
import { Router } from "./router.ts";
import { ownGroups } from "./routes/own_groups.ts";
import { disabledGroup } from "./routes/disabled.ts";
import { textGroup, type TextProvider } from "./routes/text.ts";
import { selfSignedFiles } from "./self_signed.ts";
import { tlsSettings } from "./tls_settings.ts";
import type { RequestMetrics, RouteGroup, ServerBackend } from "./types.ts";

/** What the node's HTTP API is made of. */
export interface ServerOptions {
  readonly config: ServerConfig;
  readonly flags: { readonly certDir: string; readonly rootDir: string };
  readonly backend: ServerBackend;
  /** The Kubernetes version that the agent shows, such as v1.36.3. */
  readonly version: string;
  /** What /logs/ serves. Default /var/log. */
  readonly logDir?: string;
  /** Asked at each request to /healthz. */
  readonly healthChecks: () => readonly HealthCheck[];
  /** Checks bearer tokens; must be given when authentication.webhook.enabled is true. */
  readonly tokens?: TokenAuthenticator;
  /** Must be given when authorization.mode is Webhook. */
  readonly authorizer?: Authorizer;
  /**
   * The file of the certificate and key that the API server signs (serverTLSBootstrap), where they will be. Nothing is
   * served over TLS before it is there.
   */
  readonly signedPair?: string;
  readonly metrics?: RequestMetrics;
  /** Connections of one port that may be idle at once; the oldest of more are closed. */
  readonly idleLimit?: number;
  /** Told of the ports that were bound, before the first request is taken. */
  readonly onListening?: (ports: { https?: number; readOnly?: number }) => void;
}

/** The node's HTTP API. */
export interface KubeletServer {
  /** Adds routes; before `run`. */
  register(group: RouteGroup): void;
  /** Adds a page of group A whose text is made at each request (metrics, statistics); before `run`. */
  registerText(path: string, provider: TextProvider): void;
  /**
   * Serves until the signal aborts. Rejects when it cannot listen or its certificates cannot be used: the process is
   * to end with 1 then (http.md section 1).
   */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes the server. Throws BadConfig when a webhook is configured that was not handed in. */
export function createServer(options: ServerOptions): KubeletServer {
  return new Server(options);
}

class Server implements KubeletServer {
  readonly #o: ServerOptions;
  readonly #groups: RouteGroup[];
  readonly #authorizer: Authorizer;

  constructor(options: ServerOptions) {
    this.#o = options;
    const { authentication, authorization } = options.config;
    if (authentication.webhook.enabled && !options.tokens) {
      throw new KubeletError("BadConfig", "authentication.webhook.enabled: no API server to ask; set it to false");
    }
    if (authorization.mode !== "AlwaysAllow" && !options.authorizer) {
      throw new KubeletError("BadConfig", "authorization.mode: no API server to ask; set it to AlwaysAllow");
    }
    this.#authorizer = authorization.mode === "AlwaysAllow" ? alwaysAllow : options.authorizer ?? alwaysAllow;
    this.#groups = ownGroups({ ...options, paths: () => this.#paths });
  }

  /** Paths of plain handlers, for /statusz. */
  get #paths(): readonly string[] {
    return this.#groups.flatMap((group) => group.routes.filter((r) => r.methods === "*").map((r) => r.path));
  }

  get #idleLimit(): { idleLimit?: number } {
    const { idleLimit } = this.#o;
    return idleLimit === undefined ? {} : { idleLimit };
  }

  register(group: RouteGroup): void {
    this.#groups.push(group);
  }

  registerText(path: string, provider: TextProvider): void {
    this.#groups.push(textGroup(path, provider));
  }

  async run(signal: AbortSignal): Promise<void> {
    const { config, backend } = this.#o;
    const { clock, log } = backend;
    const files = await this.#certificateFiles(signal);
    await using https = await this.#listenSecure(files);
    await using readOnly = config.readOnlyPort > 0 || config.readOnlyPort === ephemeral
      ? await listen({
        address: config.address,
        port: Math.max(config.readOnlyPort, 0),
        dispatcher: this.#dispatcher(),
        clock,
        log,
        ...this.#idleLimit,
      })
      : undefined;
    const ports = { https: https.port, ...(readOnly ? { readOnly: readOnly.port } : {}) };
    log.info("serving the node's API", { address: config.address, ...ports });
    this.#o.onListening?.(ports);
    await files.follow((material) => https.setMaterial(material), signal);
  }

  async #certificateFiles(signal: AbortSignal): Promise<CertificateFiles> {
    const { config, flags, backend, signedPair } = this.#o;
    const { host, clock, log } = backend;
    const given = config.tlsCertFile !== "" || config.tlsPrivateKeyFile !== "";
    if (given && (config.tlsCertFile === "" || config.tlsPrivateKeyFile === "")) {
      throw new KubeletError("BadConfig", "tlsCertFile and tlsPrivateKeyFile must be set together");
    }
    const clientCAFile = config.authentication.x509.clientCAFile;
    if (!given && config.serverTLSBootstrap && signedPair !== undefined) {
      for (let said = false; await host.stat(signedPair) === undefined; said = true) {
        if (!said) {
          log.info("the node's API waits for its signed certificate (serverTLSBootstrap)", { path: signedPair });
        }
        await clock.sleep(signedLookMs, signal);
      }
      return new CertificateFiles({ certFile: signedPair, keyFile: signedPair, clientCAFile, host, clock, log });
    }
    if (!given && config.serverTLSBootstrap) {
      log.warn("serverTLSBootstrap: there is no API server to sign a certificate; a self-signed one is used");
    }
    const pair = given ? { certFile: config.tlsCertFile, keyFile: config.tlsPrivateKeyFile } : await selfSignedFiles({
      certDir: flags.certDir,
      hostname: backend.nodeName,
      host,
      now: clock.now(),
      log,
    });
    return new CertificateFiles({ ...pair, clientCAFile, host, clock, log });
  }

  async #listenSecure(files: CertificateFiles): Promise<Listener> {
    const { config, backend } = this.#o;
    const { clock, log } = backend;
    const clients = new ClientCertificates();
    const material = await files.load();
    const settings = tlsSettings(config, log);
    return await listen({
      address: config.address,
      port: Math.max(config.port, 0),
      dispatcher: this.#dispatcher(clients),
      tls: { material, settings, clients },
      clock,
      log,
      ...this.#idleLimit,
    });
  }

  /** @param clients absent for the read-only port */
  #dispatcher(clients?: ClientCertificates): Dispatcher {
    const { config, backend, tokens, metrics } = this.#o;
    const { clock, log, nodeName } = backend;
    const debugging = clients !== undefined && config.enableDebuggingHandlers;
    const groups = this.#groups.filter((group) => group.access === "A" || debugging);
    if (!debugging) groups.push(disabledGroup);
    const { authentication } = config;
    return new Dispatcher({
      router: new Router(groups),
      buckets: new Set(groups.flatMap((group) => group.buckets)),
      ...(clients
        ? {
          auth: {
            authentication: {
              certificates: authentication.x509.clientCAFile !== "",
              anonymous: authentication.anonymous.enabled,
              ...(tokens && authentication.webhook.enabled ? { tokens } : {}),
              now: () => clock.now(),
              log,
            },
            authorizer: this.#authorizer,
            nodeName,
            peer: (request: IncomingMessage) => clients.of(request.socket as TLSSocket),
          },
        }
        : {}),
      metrics,
      clock,
      log,
    });
  }
}

/** How often it is looked whether the signed certificate has come, milliseconds. */
const signedLookMs = 500;
/** A port number that asks for any free port, for tests; 0 means none. */
const ephemeral = -1;
