import type { RuntimeService } from "../../../cri/api.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Host } from "../../base/host.ts";
import { silent } from "../../base/log.ts";
import type { BoundPod, PodStatus } from "../../kube/types.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { Dispatcher } from "../dispatch.ts";
import { listen } from "../listen.ts";
import { Router } from "../router.ts";
import type { RouteGroup, ServerBackend } from "../types.ts";

/** What tests of handlers say of the agent behind them. */
export interface Scene {
  pods: BoundPod[];
  statuses?: Record<string, PodStatus>;
  observed: () => ObservedPod[] | Promise<ObservedPod[]>;
  runtime: RuntimeService;
  host: Host;
  clock?: Clock;
}

/** A backend that is a scene. */
export function sceneBackend(scene: Scene): ServerBackend {
  let last: ObservedPod[] = [];
  return {
    nodeName: "node1",
    pods: () => scene.pods.map((pod) => ({ pod, status: scene.statuses?.[pod.metadata.uid] })),
    podByName: (namespace, name) =>
      scene.pods.find((p) => p.metadata.namespace === namespace && p.metadata.name === name),
    podByUid: (uid) => scene.pods.find((p) => p.metadata.uid === uid),
    status: (uid) => scene.statuses?.[uid],
    observed: (uid) => last.find((p) => p.uid === uid),
    refresh: async (uid) => {
      last = await scene.observed();
      return last.find((p) => p.uid === uid);
    },
    allObserved: () => last,
    configz: () => ({}),
    flagz: () => ({}),
    setVerbosity: () => {},
    runtime: scene.runtime,
    host: scene.host,
    clock: scene.clock ?? systemClock,
    log: silent,
  };
}

/** Serves route groups over plain HTTP on a free port of 127.0.0.1 until it is disposed. */
export async function serve(groups: RouteGroup[]): Promise<AsyncDisposable & { port: number }> {
  const dispatcher = new Dispatcher({
    router: new Router(groups),
    buckets: new Set(groups.flatMap((g) => g.buckets)),
    clock: systemClock,
    log: silent,
  });
  return await listen({ address: "127.0.0.1", port: 0, dispatcher, clock: systemClock, log: silent });
}

const utf8 = new TextEncoder();

/** A connection of a test's client: bytes out as given, bytes in as asked for. */
export class RawClient implements Disposable {
  #connection: Deno.TcpConn | Deno.TlsConn;
  #bytes = new Uint8Array();
  #closed = false;

  private constructor(connection: Deno.TcpConn | Deno.TlsConn) {
    this.#connection = connection;
  }

  static async connect(port: number): Promise<RawClient> {
    return new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
  }

  static of(connection: Deno.TcpConn | Deno.TlsConn): RawClient {
    return new RawClient(connection);
  }

  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? utf8.encode(data) : data;
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  /** False at the end. */
  async #more(): Promise<boolean> {
    const buffer = new Uint8Array(65_536);
    const n = await this.#connection.read(buffer);
    if (n === null) return false;
    const joined = new Uint8Array(this.#bytes.length + n);
    joined.set(this.#bytes);
    joined.set(buffer.subarray(0, n), this.#bytes.length);
    this.#bytes = joined;
    return true;
  }

  /** The next so many bytes; rejects when the other side ends before. */
  async bytes(count: number): Promise<Uint8Array> {
    while (this.#bytes.length < count) {
      if (!await this.#more()) throw new Error(`the connection ended ${count - this.#bytes.length} bytes too early`);
    }
    const out = this.#bytes.slice(0, count);
    this.#bytes = this.#bytes.slice(count);
    return out;
  }

  /** What has come and not been asked for, at least something; undefined at the end. */
  async some(): Promise<Uint8Array | undefined> {
    if (this.#bytes.length === 0 && !await this.#more()) return undefined;
    const out = this.#bytes;
    this.#bytes = new Uint8Array();
    return out;
  }

  /** Up to and with a text. */
  async until(text: string): Promise<string> {
    const wanted = utf8.encode(text);
    for (let from = 0;;) {
      for (let at = from; at + wanted.length <= this.#bytes.length; at++) {
        if (wanted.every((byte, i) => this.#bytes[at + i] === byte)) {
          return new TextDecoder().decode(await this.bytes(at + wanted.length));
        }
      }
      from = Math.max(0, this.#bytes.length - wanted.length);
      if (!await this.#more()) throw new Error(`the connection ended before ${JSON.stringify(text)}`);
    }
  }

  /** All up to the end. */
  async rest(): Promise<string> {
    while (await this.#more());
    return new TextDecoder().decode(await this.bytes(this.#bytes.length));
  }

  async closeWrite(): Promise<void> {
    await this.#connection.closeWrite();
  }

  [Symbol.dispose](): void {
    if (!this.#closed) this.#connection.close();
    this.#closed = true;
  }
}

/** A WebSocket client's frame. */
export function clientFrame(
  payload: Uint8Array,
  options: { op?: number; final?: boolean; first?: number } = {},
): Uint8Array {
  const { op = 2, final = true } = options;
  const { length } = payload;
  const long = length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 0xff] : [
    127,
    0,
    0,
    0,
    0,
    (length >>> 24) & 0xff,
    (length >>> 16) & 0xff,
    (length >>> 8) & 0xff,
    length & 0xff,
  ];
  const mask = [1, 2, 3, 250];
  const head = [(final ? 0x80 : 0) | op, 0x80 | long[0]!, ...long.slice(1), ...mask];
  const frame = new Uint8Array(head.length + length);
  frame.set(head);
  for (let i = 0; i < length; i++) frame[head.length + i] = payload[i]! ^ mask[i & 3]!;
  return frame;
}

/** A server's frame as a client sees it. */
export interface ServerFrame {
  readonly op: number;
  readonly payload: Uint8Array;
}

/** A WebSocket client of a test, frames and all its own. */
export class WebSocketClient implements Disposable {
  constructor(readonly raw: RawClient, readonly head: string) {}

  /** Asks for a WebSocket; `head` of the result is the answer's, whatever it is. */
  static async open(port: number, path: string, protocols: string[]): Promise<WebSocketClient> {
    const raw = await RawClient.connect(port);
    await raw.write([
      `GET ${path} HTTP/1.1`,
      "Host: node",
      "Connection: keep-alive, Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      `Sec-WebSocket-Protocol: ${protocols.join(", ")}`,
      "",
      "",
    ].join("\r\n"));
    return new WebSocketClient(raw, await raw.until("\r\n\r\n"));
  }

  get status(): number {
    return Number(this.head.split(" ")[1]);
  }

  /** Sends a message on a channel. */
  async send(channel: number, data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? utf8.encode(data) : data;
    await this.raw.write(clientFrame(Uint8Array.of(channel, ...bytes)));
  }

  async frame(): Promise<ServerFrame> {
    const [first = 0, short = 0] = await this.raw.bytes(2);
    let length = short;
    if (short === 126 || short === 127) {
      length = 0;
      for (const byte of await this.raw.bytes(short === 126 ? 2 : 8)) length = length * 256 + byte;
    }
    return { op: first & 0x0f, payload: await this.raw.bytes(length) };
  }

  /** Reads messages of a channel until their text has this in it; returns the text. */
  async text(channel: number, wanted: string): Promise<string> {
    for (let text = "";;) {
      const { op, payload } = await this.frame();
      if (op === 8) throw new Error(`the WebSocket was closed before ${JSON.stringify(wanted)}; there was ${text}`);
      if (payload[0] === channel) text += new TextDecoder().decode(payload.subarray(1));
      if (text.includes(wanted)) return text;
    }
  }

  /** What comes on each channel until the server closes the WebSocket, or the connection. */
  async channels(): Promise<string[]> {
    const parts: Uint8Array[][] = [];
    while (true) {
      let frame: ServerFrame;
      try {
        frame = await this.frame();
      } catch (thrown) {
        if (/ended/.test(String(thrown))) break;
        throw thrown;
      }
      if (frame.op === 8) break;
      const [channel = 0] = frame.payload;
      (parts[channel] ??= []).push(frame.payload.subarray(1));
    }
    return await Promise.all(
      Array.from(parts, (list) => new Blob((list ?? []) as BlobPart[]).text()),
    );
  }

  [Symbol.dispose](): void {
    this.raw[Symbol.dispose]();
  }
}
