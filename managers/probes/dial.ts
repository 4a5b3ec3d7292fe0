import net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../mod/base/clock.ts";
import { Deadline } from "../../mod/base/deadline.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { hostPort } from "./request.ts";

/**
 * Runs `work` with a signal that aborts after `ms` milliseconds (0: never) or with the outer signal. On the time limit
 * the signal's reason is a KubeletError of code Timeout; on the outer abort, Aborted.
 */
export async function withDeadline<T>(
  options: { clock: Clock; ms: number; signal?: AbortSignal | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, ms, signal } = options;
  using deadline = new Deadline({ clock, signal, what: "no answer", ...(ms > 0 ? { ms } : {}) });
  deadline.signal.throwIfAborted();
  return await work(deadline.signal);
}

/** What a failed connect says, in the words users know from the kubelet. */
function dialError(host: string, port: number, error: Error): KubeletError {
  const code = "code" in error ? String(error.code) : "";
  const words: Record<string, string> = {
    ECONNREFUSED: "connect: connection refused",
    EHOSTUNREACH: "connect: no route to host",
    ENETUNREACH: "connect: network is unreachable",
    ETIMEDOUT: "connect: connection timed out",
    ECONNRESET: "connect: connection reset by peer",
  };
  const text = code === "ENOTFOUND"
    ? `dial tcp: lookup ${host}: no such host`
    : `dial tcp ${hostPort(host, port)}: ${Object.hasOwn(words, code) ? words[code] : error.message}`;
  return new KubeletError("Network", text, { cause: error });
}

/** True when a TLS handshake failed because the server answered in plain text. */
export function isPlainText(error: unknown): boolean {
  return error instanceof Error && ("code" in error && error.code === "ERR_SSL_WRONG_VERSION_NUMBER" ||
    /InvalidContentType/.test(error.message));
}

/**
 * Opens a TCP connection, with TLS (not verified) on top when asked for. The socket dies with the signal; otherwise
 * the caller closes it with `closed`. Rejects with code Network, or with the signal's reason.
 */
export async function dial(
  options: { host: string; port: number; secure?: boolean; signal: AbortSignal },
): Promise<net.Socket> {
  const { host, port, signal } = options;
  if (signal.aborted) throw signal.reason;
  const { promise, resolve, reject } = Promise.withResolvers<net.Socket>();
  const socket = options.secure
    ? tls.connect({ host, port, rejectUnauthorized: false, ...(net.isIP(host) ? {} : { servername: host }) })
    : net.connect({ host, port });
  const onAbort = () => {
    socket.destroy();
    reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("close", () => {
    signal.removeEventListener("abort", onAbort);
    reject(new KubeletError("Network", "EOF"));
  });
  // Stays for the socket's life: an error after the connect reaches the reader, and must not be an unhandled event.
  socket.on("error", (error: Error) => reject(isPlainText(error) ? error : dialError(host, port, error)));
  socket.once(options.secure ? "secureConnect" : "connect", () => resolve(socket));
  try {
    return await promise;
  } catch (thrown) {
    await closed(socket);
    throw thrown;
  }
}

/** Closes a socket and waits until it is gone. */
export async function closed(socket: net.Socket): Promise<void> {
  if (socket.closed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once("close", () => resolve());
  socket.destroy();
  await promise;
}
