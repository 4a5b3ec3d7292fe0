import type { Buffer } from "node:buffer";
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { KubeletError, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { waitAtMost } from "../base/within.ts";
import type { TlsMaterial } from "./certificate_files.ts";
import type { ClientCertificates } from "./client_certificates.ts";
import { Connections } from "./connections.ts";
import { Exchange } from "./dispatch.ts";
import { suiteAllowed, type TlsSettings } from "./tls_settings.ts";
import { Turns } from "./turns.ts";

/** Limits of both servers (http.md section 1), milliseconds and bytes. */
const limits = {
  /** Request line and headers; more gets 431. */
  maxHeaderSize: 1 << 20,
  keepAliveTimeout: 90_000,
  /**
   * The reference gives the first headers 4 h, and so lets slow clients hold connections; no honest client needs more
   * than an idle connection is given.
   */
  headersTimeout: 90_000,
  requestTimeout: 4 * 3_600_000,
  connectionsCheckingInterval: 10_000,
} as const;
const handshakeTimeoutMs = 30_000;
/** How long requests may take to notice that the server ends. */
const settleMs = 5000;

/** TLS of a server, as it is at start. */
export interface ServerTls {
  readonly material: TlsMaterial;
  readonly settings: TlsSettings;
  readonly clients: ClientCertificates;
}

/** A server that listens. */
export interface Listener extends AsyncDisposable {
  readonly port: number;
  /** Puts another certificate and other client CAs in force for new connections; those that stand are kept. */
  setMaterial(material: TlsMaterial): void;
}

/** What answers the requests of a listener. */
export interface Answering {
  /** Answers one request; never rejects. */
  dispatch(exchange: Exchange): Promise<void>;
  /** Resolves when no request runs any more. */
  settled(): Promise<void>;
}

/** Starts a server; HTTPS when `tls` is given. Rejects with a Network error when it cannot listen. */
export async function listen(options: {
  address: string;
  port: number;
  dispatcher: Answering;
  tls?: ServerTls;
  clock: Clock;
  log: Logger;
  /** Connections that may be idle at once. */
  idleLimit?: number;
}): Promise<Listener> {
  const { address, port, dispatcher, tls, clock, log } = options;
  const server = tls ? secureServer(tls, log) : http.createServer({ ...limits });
  const connections = new Connections({
    ...(options.idleLimit === undefined ? {} : { limit: options.idleLimit }),
    onClosed: () => log.detail(2, "too many idle connections: the oldest of them was closed"),
  });
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => {}); // a client that resets its connection concerns nobody else
    connections.opened(socket);
  });
  server.on("secureConnection", (socket: TLSSocket) => connections.secured(socket));
  server.on("clientError", (error: Error, socket: Duplex) => refuse(error, socket));
  const turns = new Turns();
  server.on("request", (request, response) => {
    const exchange = new Exchange(request, response, undefined);
    const busy = connections.busy(request.socket);
    response.on("close", () => busy[Symbol.dispose]());
    turns.take(request.socket, () => dispatcher.dispatch(exchange), isHealth(request.url));
  });
  server.on("upgrade", (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {});
    connections.busy(request.socket);
    const response = new http.ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    void dispatcher.dispatch(new Exchange(request, response, { socket, head: new Uint8Array(head) }));
  });
  await start(server, address, port);
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : port,
    setMaterial(material) {
      if (!tls || !(server instanceof https.Server)) return;
      server.setSecureContext(secureContext(material, tls.settings));
      tls.clients.setAuthorities(material.authorities);
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      connections.closeAll();
      await waitAtMost({ clock, ms: settleMs }, Promise.all([closed, dispatcher.settled()]));
    },
  };
}

/** Whether is asked how the agent is: such a question waits for no other connection's turn. */
function isHealth(url: string | undefined): boolean {
  return url !== undefined && /^\/healthz(?:[/?]|$)/.test(url);
}

function secureContext({ cert, key, clientCA }: TlsMaterial, { minVersion }: TlsSettings) {
  return { cert, key, minVersion, ...(clientCA === undefined ? {} : { ca: clientCA }) };
}

function secureServer({ material, settings, clients }: ServerTls, log: Logger): https.Server {
  clients.setAuthorities(material.authorities);
  const server = https.createServer({
    ...limits,
    ...secureContext(material, settings),
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: handshakeTimeoutMs,
    ALPNProtocols: ["http/1.1"],
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => {});
    const suite = socket.getCipher()?.standardName ?? "";
    if (suiteAllowed(settings, { protocol: socket.getProtocol(), suite })) return clients.connected(socket);
    log.detail(2, "a connection was dropped: its cipher suite is not in tlsCipherSuites", { suite });
    socket.destroy();
  });
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    log.detail(4, "a TLS handshake failed", { error: error.message });
    socket.destroy();
  });
  return server;
}

function start(server: http.Server | https.Server, address: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (cause: Error) =>
    reject(
      new KubeletError(
        "Network",
        `cannot listen on ${address} port ${port}: ${messageOf(cause)}; free the port or configure another one`,
        { cause },
      ),
    );
  server.once("error", failed);
  server.listen({ host: address, port }, () => {
    server.off("error", failed);
    server.on("error", () => {});
    resolve();
  });
  return promise;
}

/** Answers what could not be read as a request, in the words of the reference, and ends the connection. */
function refuse(error: Error & { code?: string }, socket: Duplex): void {
  if (socket.destroyed || !socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const status = error.code === "HPE_HEADER_OVERFLOW"
    ? "431 Request Header Fields Too Large"
    : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
    ? "408 Request Timeout"
    : "400 Bad Request";
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${status}`,
  );
}
