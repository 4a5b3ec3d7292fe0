import type { Socket } from "node:net";

/**
 * Connections that may be idle at once: far more than honest clients keep (an API server a few, a scraper one), far
 * fewer than would take the agent's memory (an idle one over TLS about 40 KiB).
 */
export const idleLimit = 1000;

/** One connection, below TLS and above. */
interface Known {
  socket: Socket;
  /** Requests under way; an upgraded one never ends. */
  running: number;
}

/**
 * The open connections of a server, and a cap on those that do nothing. Idle is a connection without a request under way:
 * one whose handshake or first request is still to come, too. When more than the limit are idle, those that have been for
 * the longest are closed. A connection with a request, a stream or an upgrade under way is never closed for that.
 */
export class Connections {
  readonly #limit: number;
  readonly #open = new Map<string, Known>();
  /** Of those that are idle, the one that has been for the longest first. */
  readonly #idle = new Map<string, Known>();
  readonly #onClosed: (() => void) | undefined;

  /** @param options `onClosed` is told of each that was closed for being idle */
  constructor(options: { limit?: number; onClosed?: () => void } = {}) {
    this.#limit = options.limit ?? idleLimit;
    this.#onClosed = options.onClosed;
  }

  /** How many are open, and how many of those are idle. */
  get open(): number {
    return this.#open.size;
  }
  get idle(): number {
    return this.#idle.size;
  }

  /** Takes note of a connection that was accepted. */
  opened(socket: Socket): void {
    const key = keyOf(socket);
    if (key === undefined) return void socket.destroy();
    const known: Known = { socket, running: 0 };
    this.#open.set(key, known);
    this.#watch(key, known, socket);
    this.#rest(key, known);
  }

  #watch(key: string, known: Known, socket: Socket): void {
    socket.on("close", () => {
      if (this.#open.get(key) !== known) return;
      this.#open.delete(key);
      this.#idle.delete(key);
    });
  }

  /** The connection speaks TLS from now on, through this socket. */
  secured(socket: Socket): void {
    const key = keyOf(socket);
    const known = key === undefined ? undefined : this.#open.get(key);
    if (key === undefined || !known) return;
    known.socket = socket;
    this.#watch(key, known, socket);
  }

  /** A request of the connection is under way until the returned handle is disposed of. */
  busy(socket: Socket): Disposable {
    const key = keyOf(socket);
    const known = key === undefined ? undefined : this.#open.get(key);
    if (key === undefined || !known) return { [Symbol.dispose]: () => {} };
    known.running++;
    this.#idle.delete(key);
    let over = false;
    return {
      [Symbol.dispose]: () => {
        if (over) return;
        over = true;
        if (--known.running === 0 && this.#open.get(key) === known) this.#rest(key, known);
      },
    };
  }

  /** Closes every connection. */
  closeAll(): void {
    for (const { socket } of [...this.#open.values()]) socket.destroy();
  }

  #rest(key: string, known: Known): void {
    this.#idle.set(key, known);
    for (const [oldest, { socket }] of this.#idle) {
      if (this.#idle.size <= this.#limit) return;
      this.#idle.delete(oldest);
      socket.destroy();
      this.#onClosed?.();
    }
  }
}

/** Who is at the other end: the same below and above TLS. Undefined when the connection is over already. */
function keyOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remoteAddress === undefined || remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
