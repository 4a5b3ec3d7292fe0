/** As much of SPDY/3.1 as a client of a runtime's streaming server needs. */

const encoder = new TextEncoder();
const version = 3;
const type = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7 } as const;
const fin = 1;

/** What comes of a server's frames. Data comes in pieces: none is held whole. */
export type SpdyEvent =
  | { readonly kind: "data"; readonly stream: number; readonly bytes: Uint8Array; readonly fin: boolean }
  /** The server took a stream. */
  | { readonly kind: "reply"; readonly stream: number; readonly fin: boolean }
  /** The server ended a stream on its own. */
  | { readonly kind: "reset"; readonly stream: number }
  | { readonly kind: "ping"; readonly bytes: Uint8Array }
  | { readonly kind: "goAway" };

/** Longest control frame that is kept for its content; of longer ones only the beginning is needed. */
const keptControl = 64;

/** Reads a server's frames. */
export class SpdyParser {
  #head = new Uint8Array(8);
  #headFilled = 0;
  #left = 0;
  #kept: number[] = [];

  push(bytes: Uint8Array): SpdyEvent[] {
    const events: SpdyEvent[] = [];
    for (let at = 0; at < bytes.length;) {
      if (this.#headFilled < 8) {
        this.#head[this.#headFilled++] = bytes[at++]!;
        if (this.#headFilled < 8) continue;
        const [, , , , , a, b, c] = this.#head;
        this.#left = (a! << 16) | (b! << 8) | c!;
        this.#kept = [];
        if (this.#left > 0) continue;
      }
      const piece = bytes.subarray(at, at + this.#left);
      at += piece.length;
      this.#left -= piece.length;
      this.#piece(piece, events);
      if (this.#left === 0) this.#headFilled = 0;
    }
    return events;
  }

  #piece(piece: Uint8Array, events: SpdyEvent[]): void {
    const head = this.#head;
    const ends = this.#left === 0;
    const flags = head[4]!;
    if ((head[0]! & 0x80) === 0) {
      const stream = number(head, 0);
      events.push({ kind: "data", stream, bytes: piece, fin: ends && (flags & fin) !== 0 });
      return;
    }
    for (const byte of piece.subarray(0, keptControl - this.#kept.length)) this.#kept.push(byte);
    if (!ends) return;
    const body = Uint8Array.from(this.#kept);
    const which = (head[2]! << 8) | head[3]!;
    if (which === type.goAway) events.push({ kind: "goAway" });
    if (body.length < 4) return;
    if (which === type.synReply) events.push({ kind: "reply", stream: number(body, 0), fin: (flags & fin) !== 0 });
    if (which === type.rstStream) events.push({ kind: "reset", stream: number(body, 0) });
    if (which === type.ping) events.push({ kind: "ping", bytes: body.slice(0, 4) });
  }
}

/** The 31-bit number of a stream. */
function number(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! & 0x7f) << 24 | bytes[at + 1]! << 16 | bytes[at + 2]! << 8 | bytes[at + 3]!) >>> 0;
}

function word(value: number): number[] {
  return [(value >>> 24) & 0xff, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function control(which: number, flags: number, body: Uint8Array): Uint8Array {
  const frame = new Uint8Array(8 + body.length);
  frame.set([0x80, version, 0, which, flags, ...word(body.length).slice(1)]);
  frame.set(body, 8);
  return frame;
}

/** An empty stored block. Go's inflater gives out what came before it only when it meets one. */
const flush = [0, 0, 0, 0xff, 0xff] as const;

/**
 * Makes a client's frames. Header blocks are zlib streams, but need not be compressed: theirs are stored blocks, which
 * every inflater reads, and which need no state but whether the stream has begun.
 */
export class SpdyWriter {
  #begun = false;

  /** Opens a stream. @param id odd, and greater than all before */
  open(id: number, headers: Readonly<Record<string, string>>): Uint8Array {
    const block = this.#block(headers);
    const body = new Uint8Array(10 + block.length);
    body.set(word(id));
    body.set(block, 10);
    return control(type.synStream, 0, body);
  }

  #block(headers: Readonly<Record<string, string>>): Uint8Array {
    const entries = Object.entries(headers);
    const plain = [...word(entries.length)];
    for (const [name, value] of entries) {
      for (const text of [name.toLowerCase(), value]) {
        const bytes = encoder.encode(text);
        plain.push(...word(bytes.length), ...bytes);
      }
    }
    const { length } = plain;
    const stored = [0, length & 0xff, length >> 8, ~length & 0xff, (~length >> 8) & 0xff, ...plain, ...flush];
    const begin = this.#begun ? [] : [0x78, 0x01];
    this.#begun = true;
    return Uint8Array.from([...begin, ...stored]);
  }

  /** Data of a stream; with `end` the last. At most 16 MiB less one byte. */
  data(id: number, bytes: Uint8Array, end = false): Uint8Array {
    const frame = new Uint8Array(8 + bytes.length);
    frame.set([...word(id), end ? fin : 0, ...word(bytes.length).slice(1)]);
    frame.set(bytes, 8);
    return frame;
  }

  /** The answer to a server's ping. */
  pong(bytes: Uint8Array): Uint8Array {
    return control(type.ping, 0, bytes);
  }
}
