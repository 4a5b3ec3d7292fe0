import type { Duplex } from "node:stream";
import { connect as connectTls, TLSSocket } from "node:tls";
import { KubeletError } from "../../base/errors.ts";

/** A connection as bytes both ways. Each direction ends by itself; one that fails does not end the other. */
export interface ByteStream {
  /** What has come, or undefined at the end. One read at a time. */
  read(): Promise<Uint8Array | undefined>;
  /** Resolves when the bytes are on their way: the next may be written. One write at a time. */
  write(bytes: Uint8Array): Promise<void>;
  /** Tells the other side that no more bytes come. */
  closeWrite(): Promise<void>;
  /** Ends both directions at once; reads and writes under way reject or end. Safe to call twice. */
  close(): void;
}

/** Bytes that one read gives at most. */
const readSize = 64 * 1024;

/** A TCP connection. Unlike a Node socket, it can still be read when writing has failed. */
class TcpStream implements ByteStream {
  readonly #connection: Deno.TcpConn;
  #open = true;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  async read(): Promise<Uint8Array | undefined> {
    const buffer = new Uint8Array(readSize);
    const length = await this.#connection.read(buffer);
    return length === null ? undefined : buffer.subarray(0, length);
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  async closeWrite(): Promise<void> {
    await this.#connection.closeWrite();
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#connection.close();
  }
}

interface TcpHandle {
  readStart(): unknown;
  readStop(): unknown;
}

/**
 * The TCP handle below a TLS socket. Deno's TLS sockets go on reading while they are paused, and would pile up in memory
 * all that a client sends and nobody takes, unless the connection below is stopped itself. Undefined for other streams.
 */
function tcpBelow(socket: Duplex): TcpHandle | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const { _parent: parent } = socket as { _parent?: { _handle?: Partial<TcpHandle> | null } };
  const handle = parent?._handle;
  return handle?.readStart && handle.readStop ? handle as TcpHandle : undefined;
}

/** A Node stream, such as the socket of an upgrade request, with what had already been read of it. */
class NodeStream implements ByteStream {
  readonly #socket: Duplex;
  /** What has come and was not asked for yet: a piece or two, as the socket is paused when one comes. */
  readonly #pieces: Uint8Array[] = [];
  #error: Error | undefined;
  #over = false;
  #wake = () => {};

  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    if (head.length > 0) this.#pieces.push(head);
    socket.pause();
    socket.on("data", (bytes: Uint8Array) => {
      socket.pause();
      tcpBelow(socket)?.readStop();
      this.#pieces.push(bytes);
      this.#wake();
    });
    socket.on("end", () => this.#finish());
    socket.on("close", () => this.#finish());
    socket.on("error", (error: Error) => {
      this.#error ??= error;
      this.#finish();
    });
  }

  #finish(): void {
    this.#over = true;
    this.#wake();
  }

  async read(): Promise<Uint8Array | undefined> {
    while (true) {
      const piece = this.#pieces.shift();
      if (piece) return piece;
      if (this.#error) throw this.#error;
      if (this.#over || this.#socket.readableEnded || this.#socket.destroyed) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      this.#socket.resume();
      tcpBelow(this.#socket)?.readStart();
      await promise;
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const closed = () => reject(new KubeletError("Network", "the connection was closed"));
    if (this.#socket.destroyed) closed();
    else {
      this.#socket.once("close", closed);
      this.#socket.write(bytes, (error) => {
        this.#socket.off("close", closed);
        if (error) reject(error);
        else resolve();
      });
    }
    return promise;
  }

  closeWrite(): Promise<void> {
    if (!this.#socket.destroyed) this.#socket.end();
    return Promise.resolve();
  }

  close(): void {
    this.#socket.destroy();
    this.#finish();
  }
}

/** The bytes of a Node stream; `head` is what was already read of it. */
export function nodeStream(socket: Duplex, head: Uint8Array = new Uint8Array()): ByteStream {
  return new NodeStream(socket, head);
}

/**
 * Connects to where a URL points (http or https). A certificate is not looked at: the runtime that names the URL is
 * this node's own, and signs for itself. Rejects with code Network.
 */
export async function dial(url: URL, signal: AbortSignal): Promise<ByteStream> {
  const secure = url.protocol === "https:";
  if (!secure && url.protocol !== "http:") {
    throw new KubeletError("Runtime", `the runtime's streaming URL ${url.origin} is neither http nor https`);
  }
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port || (secure ? 443 : 80));
  try {
    if (!secure) return new TcpStream(await Deno.connect({ hostname, port, signal }));
    const socket = connectTls({ host: hostname, port, rejectUnauthorized: false });
    const abort = () => socket.destroy(new Error("called off"));
    signal.addEventListener("abort", abort, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once("secureConnect", resolve);
        socket.once("error", reject);
      });
    } finally {
      signal.removeEventListener("abort", abort);
    }
    return nodeStream(socket);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new KubeletError("Network", `dial tcp ${url.host}: ${why}`, { cause: thrown });
  }
}

/** Copies all that comes from one stream to another. Resolves at the end; rejects when one of the two fails. */
export async function copy(from: ByteStream, to: ByteStream): Promise<void> {
  for (let bytes = await from.read(); bytes; bytes = await from.read()) {
    if (bytes.length > 0) await to.write(bytes);
  }
}
