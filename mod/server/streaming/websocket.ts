import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { concatBytes } from "../../base/bytes.ts";

/** What comes of a client's frames. Messages come in pieces: none is ever held whole, however long it is. */
export type FrameEvent =
  /** A piece of a message; `first` begins one, `last` ends it. */
  | { readonly kind: "data"; readonly first: boolean; readonly last: boolean; readonly bytes: Uint8Array }
  | { readonly kind: "ping"; readonly bytes: Uint8Array }
  | { readonly kind: "close" }
  /** The client broke the protocol; nothing more will be read. */
  | { readonly kind: "broken"; readonly why: string };

const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
/** Most bytes that a control frame may carry. */
const longestControl = 125;

/** Reads a client's WebSocket frames (RFC 6455), piece by piece. */
export class FrameParser {
  #head = new Uint8Array(14);
  #headFilled = 0;
  #op = 0;
  #final = true;
  #left = 0;
  #mask: Uint8Array | undefined;
  #maskAt = 0;
  #inMessage = false;
  #first = false;
  #control = new Uint8Array();
  #over = false;

  /** Takes what was read; gives what it tells. The bytes are unmasked in place. */
  push(bytes: Uint8Array): FrameEvent[] {
    const events: FrameEvent[] = [];
    for (let at = 0; at < bytes.length && !this.#over;) {
      if (!this.#mask) {
        this.#head[this.#headFilled++] = bytes[at++]!;
        const why = this.#readHead();
        if (why !== undefined) events.push(this.#break(why));
        else if (this.#mask && this.#left === 0) this.#piece(new Uint8Array(), events);
        continue;
      }
      const piece = bytes.subarray(at, at + this.#left);
      at += piece.length;
      this.#left -= piece.length;
      const mask = this.#mask;
      const turn = this.#maskAt;
      for (let i = 0; i < piece.length; i++) piece[i]! ^= mask[(turn + i) & 3]!;
      this.#maskAt = (turn + piece.length) & 3;
      this.#piece(piece, events);
    }
    return events;
  }

  #break(why: string): FrameEvent {
    this.#over = true;
    return { kind: "broken", why };
  }

  /** Reads the head once it is whole; tells what is wrong with it. */
  #readHead(): string | undefined {
    const head = this.#head;
    if (this.#headFilled < 2) return undefined;
    const masked = (head[1]! & 0x80) !== 0;
    const short = head[1]! & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (this.#headFilled < 2 + lengthBytes + 4) {
      // Told as soon as it is seen: a client that breaks the protocol may send no more.
      return this.#headFilled === 2 ? this.#wrong(head[0]!, masked, short) : undefined;
    }
    let length = short;
    if (lengthBytes > 0) {
      length = 0;
      for (let i = 0; i < lengthBytes; i++) length = length * 256 + head[2 + i]!;
    }
    if (!Number.isSafeInteger(length)) return "a frame is too long";
    const op = head[0]! & 0x0f;
    this.#op = op;
    this.#final = (head[0]! & 0x80) !== 0;
    this.#left = length;
    this.#mask = head.slice(2 + lengthBytes, 2 + lengthBytes + 4);
    this.#maskAt = 0;
    if (op < opcode.close) {
      this.#first = op !== opcode.continuation;
      this.#inMessage = true;
    }
    return undefined;
  }

  #wrong(first: number, masked: boolean, length: number): string | undefined {
    const op = first & 0x0f;
    const known = Object.values(opcode).some((o) => o === op);
    if ((first & 0x70) !== 0) return "a frame has reserved bits set";
    if (!known) return `a frame has the unknown opcode ${op}`;
    if (!masked) return "a frame of the client is not masked";
    if (op >= opcode.close && (length > longestControl || (first & 0x80) === 0)) {
      return "a control frame is longer than 125 bytes or in pieces";
    }
    if (op === opcode.continuation && !this.#inMessage) return "a continuation without a message";
    if ((op === opcode.text || op === opcode.binary) && this.#inMessage) return "a message inside another";
    return undefined;
  }

  /** Tells of a piece of the frame at hand, and ends the frame with its last one. */
  #piece(piece: Uint8Array, events: FrameEvent[]): void {
    const ends = this.#left === 0;
    const op = this.#op;
    if (op < opcode.close) {
      const last = ends && this.#final;
      events.push({ kind: "data", first: this.#first, last, bytes: piece });
      this.#first = false;
      if (last) this.#inMessage = false;
    } else {
      const joined = new Uint8Array(this.#control.length + piece.length);
      joined.set(this.#control);
      joined.set(piece, this.#control.length);
      this.#control = joined;
      if (ends) {
        if (op === opcode.ping) events.push({ kind: "ping", bytes: joined });
        if (op === opcode.close) {
          events.push({ kind: "close" });
          this.#over = true;
        }
        this.#control = new Uint8Array();
      }
    }
    if (!ends) return;
    this.#mask = undefined;
    this.#headFilled = 0;
  }
}

function frame(op: number, parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, p) => sum + p.length, 0);
  const head = length < 126 ? [0x80 | op, length] : length < 65_536 ? [0x80 | op, 126, length >> 8, length & 0xff] : [
    0x80 | op,
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
  return concatBytes([Uint8Array.from(head), ...parts]);
}

/** A server's binary message of these parts, in one frame. */
export function binaryFrame(...parts: readonly Uint8Array[]): Uint8Array {
  return frame(opcode.binary, parts);
}

/** The answer to a ping. */
export function pongFrame(bytes: Uint8Array): Uint8Array {
  return frame(opcode.pong, [bytes]);
}

/** The end of a WebSocket: 1000 for a good one, 1002 for a broken protocol, 1011 for a fault of the server. */
export function closeFrame(code: number, why = ""): Uint8Array {
  return frame(opcode.close, [Uint8Array.of(code >> 8, code & 0xff), new TextEncoder().encode(why).subarray(0, 100)]);
}

/** The subprotocols that a client offers. */
export function offeredProtocols(request: IncomingMessage): string[] {
  const offered = request.headers["sec-websocket-protocol"] ?? "";
  return offered.split(",").map((p) => p.trim()).filter((p) => p !== "");
}

/** True for a request that asks for a WebSocket. */
export function isWebSocket(request: IncomingMessage): boolean {
  const { upgrade, connection } = request.headers;
  return (upgrade ?? "").toLowerCase() === "websocket" && /(^|,)\s*upgrade\s*(,|$)/i.test(connection ?? "");
}

/** What is wrong with a WebSocket request, or undefined. */
export function handshakeFault(request: IncomingMessage): string | undefined {
  const { "sec-websocket-key": key, "sec-websocket-version": version } = request.headers;
  if (request.method !== "GET") return "a WebSocket begins with GET";
  if (version !== "13") return "Sec-WebSocket-Version must be 13";
  if (typeof key !== "string" || !/^[A-Za-z0-9+/]{22}==$/.test(key)) {
    return "Sec-WebSocket-Key is no 16 bytes in base64";
  }
  return undefined;
}

/** The head of the answer that opens a WebSocket. */
export function handshake(request: IncomingMessage, protocol: string): Uint8Array {
  const key = request.headers["sec-websocket-key"] ?? "";
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${accept}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
  ];
  return new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`);
}
